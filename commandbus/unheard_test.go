package commandbus_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/commandbus"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/wire"
)

// WAIT-06: whoever may not read answers hears so at once, and nothing was sent.
func TestWAIT06_RefusedReplyKeysAreAnErrorAtOnce(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]string{
		"no keys":    "+@all ~commandbus*",
		"no reading": "+@all -xread ~*",
		"no expiry":  "+@all -pexpire ~*",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Standalone(t)
			admin := server.Client(t)
			args := []any{"ACL", "SETUSER", "caller", "on", ">secret"}
			for word := range strings.FieldsSeq(rule) {
				args = append(args, word)
			}
			require.NoError(t, admin.Do(t.Context(), args...).Err())
			o := server.Options()
			o.Username, o.Password = "caller", "secret"
			rdb := redis.NewClient(o)
			t.Cleanup(func() { _ = rdb.Close() })
			s := newSide(t, rdb)
			run(t, s.gateway)
			_, err := s.gateway.SendAndWait(t.Context(), s.pay("a-1", 1), es.Wait{})
			require.ErrorIs(t, err, es.ErrUnavailable)
			require.ErrorContains(t, err, "not sent")
			require.ErrorContains(t, err, "NOPERM")
			require.Zero(t, admin.XLen(t.Context(), s.typ.String()+":command").Val())
		})
	}
}

// WAIT-06: nothing runs that could receive.
func TestWAIT06_AGatewayThatDoesNotRunSendsNothing(t *testing.T) {
	t.Parallel()
	s := newSide(t, redistest.Shared(t).Client(t))
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := s.gateway.SendAndWait(short, s.pay("a-1", 1), es.Wait{})
	require.ErrorIs(t, err, es.ErrUnavailable)
	require.ErrorContains(t, err, "Gateway.Run")
	require.Zero(t, s.rdb.Exists(t.Context(), s.typ.String()+":command").Val())
	_, err = s.gateway.SendAndWait(t.Context(), s.pay("a-1", 1), es.Wait{Stage: es.StageSent})
	require.NoError(t, err, "SENT needs nobody who receives")
}

// The server comes back empty while one waits: who waits from then on is answered.
func TestAServerThatCameBackEmptyIsWaitedOnAgain(t *testing.T) {
	t.Parallel()
	server := redistest.Standalone(t)
	s := newSide(t, server.Client(t))
	run(t, s.gateway)
	_, err := s.gateway.SendAndWait(t.Context(), s.pay("a-1", 1), es.Wait{Stage: es.StageSent})
	require.NoError(t, err)
	lost := make(chan error, 1)
	go func() {
		short, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := s.gateway.SendAndWait(short, s.pay("a-1", 1), es.Wait{})
		lost <- err
	}()
	require.Eventually(t, func() bool { return s.gateway.Waiting() == 1 }, time.Minute, time.Millisecond)
	server.Restart(t)
	require.ErrorIs(t, <-lost, es.ErrUncertain)
	s.work(t, 1, answer(commandbus.NewNotifier(s.rdb)))
	require.Eventually(t, func() bool {
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r, err := s.gateway.SendAndWait(short, s.pay("a-1", 5), es.Wait{})
		return err == nil && r.Version == 5
	}, time.Minute, 10*time.Millisecond)
}

func TestACommandThatBecomesADeadLetterHasFailed(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newSide(t, rdb)
		s.bus.Notifier = commandbus.NewNotifier(rdb)
		run(t, s.gateway)
		s.work(t, 4, func(_ context.Context, c es.Command) (es.Result, error) {
			if c.Body.(pay).Cents == 1 {
				return es.Result{}, es.Permanent(errors.New("never"))
			}
			return es.Result{}, errors.New("not now")
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r, err := s.gateway.SendAndWait(ctx, s.pay("a-1", 1), es.Wait{Stage: es.StageProjected})
		require.EqualError(t, err, "never")
		require.Equal(t, es.StageProcessed, r.Stage)
		_, err = s.gateway.SendAndWait(ctx, s.pay("a-2", 2), es.Wait{})
		require.EqualError(t, err, "not now")

		older := s.typ // whose table names another body
		codec := wire.JSON(es.Types{Aggregate: older, Commands: []es.Type{{Body: Deposit{}}}})
		g := commandbus.NewGateway(rdb, commandbus.New(rdb, codec))
		run(t, g)
		_, err = g.SendAndWait(ctx, es.NewCommand(older.ID("a-3"), Deposit{1}), es.Wait{})
		require.ErrorContains(t, err, "unknown type")
		require.ErrorIs(t, err, es.ErrInvalid)
	})
}
