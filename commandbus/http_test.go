package commandbus_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/commandbus"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redistest"
)

// log is what was logged.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func waitHeader(endpoint string) es.Header {
	var h es.Header
	es.WaitPlan{ID: "0Tvcokgi0001001", Endpoint: endpoint, Wait: es.Wait{Stage: es.StageProcessed}}.Write(&h)
	return h
}

func TestKotlinsNodesAreToldByHTTP(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers []int // the last one goes on
		posts   int64
		logged  bool
	}{
		"accepted":          {[]int{200}, 1, false},
		"busy at first":     {[]int{503, 429, 204}, 3, false},
		"never able":        {[]int{500}, 3, true},
		"not to be changed": {[]int{404}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var posts atomic.Int64
			var signal atomic.Value
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n := int(posts.Add(1))
				data, _ := io.ReadAll(r.Body)
				signal.Store(r.Method + " " + r.URL.Path + " " + r.Header.Get("Content-Type") + " " + string(data))
				w.WriteHeader(c.answers[min(n, len(c.answers))-1])
			}))
			defer server.Close()
			var logged log
			n := commandbus.NewNotifier(nil)
			n.Pause, n.Logger = time.Millisecond, slog.New(slog.NewTextHandler(&logged, nil))
			h := waitHeader(server.URL + "/wow/command/wait")
			typ := es.AggregateType{Context: "order-service", Name: "order"}
			n.Notify(t.Context(), h, es.Signal{Stage: es.StageSnapshot})
			n.Notify(t.Context(), h, es.Signal{ID: "s", CommandID: "c", Aggregate: typ.ID("o-1"), Stage: es.StageProcessed, Time: time.UnixMilli(7)})
			n.Notify(t.Context(), nil, es.Signal{Stage: es.StageProcessed})
			require.NoError(t, n.Drain(t.Context()))
			require.Equal(t, c.posts, posts.Load())
			require.Equal(t, `POST /wow/command/wait application/json {"id":"s","waitCommandId":"0Tvcokgi0001001","commandId":"c",`+
				`"aggregateId":{"contextName":"order-service","aggregateName":"order","aggregateId":"o-1","tenantId":"(0)"},"stage":"PROCESSED",`+
				`"function":{"functionKind":"","contextName":"","processorName":"","name":""},"aggregateVersion":null,"isLastProjection":false,`+
				`"errorCode":"Ok","errorMsg":"","result":{},"commands":[],"signalTime":7,"succeeded":true}`, signal.Load())
			require.Equal(t, c.logged, strings.Contains(logged.String(), "could not be told"))
		})
	}
}

func TestANotifierThatReachesNobodyHoldsUpNobody(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(nil)
	gone.Close()
	o := &redis.Options{Addr: strings.TrimPrefix(gone.URL, "http://"), MaxRetries: -1}
	dead := redis.NewClient(o)
	t.Cleanup(func() { _ = dead.Close() })
	var logged log
	n := commandbus.NewNotifier(dead)
	n.Pause, n.Logger = time.Millisecond, slog.New(slog.NewTextHandler(&logged, nil))
	n.Notify(t.Context(), waitHeader(gone.URL), es.Signal{Stage: es.StageProcessed})
	n.Notify(t.Context(), waitHeader("redis:p1"), es.Signal{Stage: es.StageProcessed})
	n.Notify(t.Context(), waitHeader("redis:p}{1"), es.Signal{Stage: es.StageProcessed})
	n.Notify(t.Context(), waitHeader("ftp://x"), es.Signal{Stage: es.StageProcessed})
	n.Notify(t.Context(), waitHeader(""), es.Signal{Stage: es.StageProcessed})
	n.Notify(t.Context(), waitHeader("redis:p1"), es.Signal{Stage: es.StageProcessed, Result: map[string]any{"f": func() {}}})
	require.NoError(t, n.Drain(t.Context()))
	for _, text := range []string{"endpoint=" + gone.URL, "processes=1", "redis:p}{1", "ftp://x", "result of a handler"} {
		require.Contains(t, logged.String(), text)
	}
}

func TestTheHandlerTakesWhatKotlinsNodesPost(t *testing.T) {
	t.Parallel()
	s := newSide(t, redistest.Shared(t).Client(t))
	run(t, s.gateway)
	server := httptest.NewServer(s.gateway.Handler())
	defer server.Close()
	s.gateway.URL = server.URL
	post := func(method, body string) int {
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL, strings.NewReader(body))
		require.NoError(t, err)
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		return answer.StatusCode
	}
	require.Equal(t, http.StatusMethodNotAllowed, post(http.MethodGet, ""))
	require.Equal(t, http.StatusBadRequest, post(http.MethodPost, "{}"))
	require.Equal(t, http.StatusBadRequest, post(http.MethodPost, strings.Repeat(" ", 2<<20)))
	s.work(t, 1, answer(commandbus.NewNotifier(nil))) // it has no Redis to tell over, as Kotlin's
	for n := range 20 {
		r, err := s.gateway.SendAndWait(t.Context(), s.pay("a-1", n+1), es.Wait{})
		require.NoError(t, err)
		require.Equal(t, n+1, r.Version)
	}
	require.Zero(t, s.gateway.Strays())
}
