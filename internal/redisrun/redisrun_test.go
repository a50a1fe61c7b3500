package redisrun_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redisrun"
)

// serverError is the error that the client makes of a server's words.
type serverError string

func (e serverError) Error() string { return string(e) }
func (serverError) RedisError()     {}

var _ redis.Error = serverError("")

// kinds are all that Explain may say.
var kinds = []error{es.ErrUnavailable, es.ErrOutOfMemory, es.ErrCorrupt, es.ErrUncertain}

// requireKinds says that err is of these kinds and no other.
func requireKinds(t *testing.T, err error, want ...error) {
	t.Helper()
	for _, kind := range kinds {
		require.Equal(t, slices.Contains(want, kind), errors.Is(err, kind), "%v is %v", err, kind)
	}
}

func TestExplainGoesByTheFirstWord(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]error{
		"OOM command not allowed when used memory > 'maxmemory'.":     {es.ErrOutOfMemory, es.ErrUnavailable},
		"READONLY You can't write against a read only replica.":       {es.ErrUnavailable},
		"LOADING Redis is loading the dataset in memory":              {es.ErrUnavailable},
		"NOREPLICAS Not enough good replicas to write.":               {es.ErrUnavailable},
		"MISCONF Redis is configured to save RDB snapshots, but":      {es.ErrUnavailable},
		"BUSY Redis is busy running a script.":                        {es.ErrUnavailable},
		"CLUSTERDOWN The cluster is down":                             {es.ErrUnavailable},
		"TRYAGAIN Multiple keys request during rehashing of slot":     {es.ErrUnavailable},
		"MASTERDOWN Link with MASTER is down":                         {es.ErrUnavailable},
		"MOVED 3999 127.0.0.1:6381":                                   {es.ErrUnavailable},
		"ASK 3999 127.0.0.1:6381":                                     {es.ErrUnavailable},
		"LOADING":                                                     {es.ErrUnavailable},
		"WRONGTYPE Operation against a key holding the wrong kind of": {es.ErrCorrupt},
		"NOPERM this user has no permissions to run the 'get'":        nil,
		"CROSSSLOT Keys in request don't hash to the same slot":       nil,
		"NOSCRIPT No matching script.":                                nil,
		"BUSYGROUP Consumer Group name already exists":                nil, // not BUSY
		"ERR OOM is not the first word":                               nil,
		"ERR unknown command":                                         nil,
		"":                                                            nil,
	} {
		cause := serverError(text)
		for _, err := range []error{cause, fmt.Errorf("wrapped: %w", cause), fmt.Errorf("twice: %w", fmt.Errorf("wrapped: %w", cause))} {
			explained := redisrun.Explain(err)
			requireKinds(t, explained, want...)
			require.ErrorIs(t, explained, cause, "the server's own words are kept")
			if want == nil {
				require.Equal(t, err, explained)
			}
		}
	}
}

func TestExplainPassesNilOn(t *testing.T) {
	t.Parallel()
	require.NoError(t, redisrun.Explain(nil))
	require.Equal(t, redis.Nil, redisrun.Explain(redis.Nil))
	wrapped := fmt.Errorf("wrapped: %w", redis.Nil)
	require.Equal(t, wrapped, redisrun.Explain(wrapped))
}

func TestExplainCallsALostReplyUncertain(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, os.ErrDeadlineExceeded, redis.ErrPoolTimeout, redis.ErrClosed,
		context.Canceled, context.DeadlineExceeded, &net.OpError{Op: "read", Err: errors.New("connection reset by peer")},
		errors.New("OOM in the text of another error is no server's word"),
	} {
		explained := redisrun.Explain(fmt.Errorf("wrapped: %w", err))
		requireKinds(t, explained, es.ErrUncertain)
		require.ErrorIs(t, explained, err)
	}
}

// answers returns one error after the other, and then the reply.
type answers struct {
	errs  []error
	calls int
}

func (a *answers) next() (string, error) {
	a.calls++
	if a.calls <= len(a.errs) {
		return "", a.errs[a.calls-1]
	}
	return "reply", nil
}

func TestDoWaitsOutWhatPassesByItself(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"LOADING", "BUSY", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN", "READONLY", "MOVED", "ASK"} {
		err := serverError(word + " for now")
		a := &answers{errs: []error{err, fmt.Errorf("wrapped: %w", err), err}}
		reply, got := redisrun.Do(t.Context(), time.Minute, a.next)
		require.NoError(t, got, word)
		require.Equal(t, "reply", reply)
		require.Equal(t, 4, a.calls)
	}
}

func TestDoCallsOnceWhereNothingWillPass(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		nil, redis.Nil, io.EOF, context.Canceled, serverError("OOM x"), serverError("MISCONF x"), serverError("NOREPLICAS x"),
		serverError("WRONGTYPE x"), serverError("NOPERM x"), serverError("BUSYGROUP x"), errors.New("LOADING is not the server's word here"),
	} {
		a := &answers{}
		if err != nil {
			a.errs = []error{err}
		}
		_, got := redisrun.Do(t.Context(), time.Minute, a.next)
		require.Equal(t, redisrun.Explain(err), got)
		require.Equal(t, 1, a.calls, "%v", err)
	}
}

func TestDoEndsWithTheFirstErrorThatDoesNotPass(t *testing.T) {
	t.Parallel()
	a := &answers{errs: []error{serverError("LOADING x"), serverError("BUSY x"), serverError("OOM x"), serverError("LOADING x")}}
	_, err := redisrun.Do(t.Context(), time.Minute, a.next)
	requireKinds(t, err, es.ErrOutOfMemory, es.ErrUnavailable)
	require.Equal(t, 3, a.calls)

	a = &answers{errs: []error{serverError("LOADING x"), redis.Nil}}
	_, err = redisrun.Do(t.Context(), time.Minute, a.next)
	require.Equal(t, redis.Nil, err)
}

func TestDoEndsWhenPatienceEnds(t *testing.T) {
	t.Parallel()
	calls := 0
	start := time.Now()
	_, err := redisrun.Do(t.Context(), 150*time.Millisecond, func() (int, error) {
		calls++
		return 0, serverError("LOADING x")
	})
	requireKinds(t, err, es.ErrUnavailable)
	require.Greater(t, calls, 2)
	require.Less(t, calls, 30, "it backs off")
	require.Less(t, time.Since(start), redisrun.DefaultPatience)
}

func TestDoEndsWhenTheContextEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	_, err := redisrun.Do(ctx, time.Hour, func() (int, error) {
		if calls++; calls == 3 {
			cancel()
		}
		return 0, serverError("LOADING x")
	})
	require.Equal(t, 3, calls)
	requireKinds(t, err, es.ErrUnavailable) // what the server said last: nothing was done
}

// The errors of the client itself, as it makes them of a server's reply.
func TestExplainKnowsTheClientsOwnErrors(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"OOM", "READONLY", "LOADING", "NOREPLICAS", "MISCONF", "BUSY", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN", "MOVED 1 127.0.0.1:1", "ASK 1 127.0.0.1:1"} {
		rdb := redis.NewClient(&redis.Options{Addr: refusing(t, word+" words"), MaxRetries: -1, Protocol: 2, DisableIdentity: true})
		t.Cleanup(func() { _ = rdb.Close() })
		err := redisrun.Explain(rdb.Get(t.Context(), "k").Err())
		require.ErrorIs(t, err, es.ErrUnavailable, word)
		require.Equal(t, word == "OOM", errors.Is(err, es.ErrOutOfMemory))
		require.NotErrorIs(t, err, es.ErrUncertain)
	}
}

// refusing is the address of a server that answers every request with one error.
func refusing(t *testing.T, text string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go answerAll(conn, text)
		}
	}()
	return l.Addr().String()
}

func answerAll(conn net.Conn, text string) {
	defer conn.Close() //nolint:errcheck // the client is gone
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "*") {
			if _, err := io.WriteString(conn, "-"+text+"\r\n"); err != nil {
				return
			}
		}
	}
}
