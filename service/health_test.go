package service_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/service"
)

func get(t *testing.T, h http.Handler, method, path string) (code int, body string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
	if w.Code == http.StatusOK || w.Code == http.StatusServiceUnavailable {
		require.Equal(t, "application/json", w.Header().Get("Content-Type"))
		require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	}
	return w.Code, w.Body.String()
}

func TestAPI07_LivenessAnswersFromTheProcessAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var down atomic.Bool
		s := silently(
			service.Part{Name: "redis", Run: idle, Health: func(context.Context) error {
				if down.Load() {
					return errDown
				}
				return nil
			}},
			service.Part{Name: "other", Run: idle},
		)
		h := s.Handler()
		code, body := get(t, h, "GET", "/readyz")
		require.Equal(t, http.StatusServiceUnavailable, code, "it has not begun")
		require.JSONEq(t, `{"live":true,"ready":false,"phase":""}`, body)
		r := start(t, s)
		code, body = get(t, h, "GET", "/readyz")
		require.Equal(t, http.StatusOK, code)
		require.JSONEq(t, `{"live":true,"ready":true,"phase":"running","parts":[
			{"name":"redis","ready":true,"state":"running"},{"name":"other","ready":true,"state":"running"}]}`, body)

		down.Store(true)
		code, body = get(t, h, "GET", "/readyz")
		require.Equal(t, http.StatusServiceUnavailable, code)
		require.JSONEq(t, `{"live":true,"ready":false,"phase":"running","parts":[
			{"name":"redis","ready":false,"state":"running","error":"down"},{"name":"other","ready":true,"state":"running"}]}`, body)
		code, body = get(t, h, "GET", "/livez")
		require.Equal(t, http.StatusOK, code)
		require.JSONEq(t, `{"live":true,"phase":"running"}`, body)

		down.Store(false)
		code, _ = get(t, h, "HEAD", "/readyz")
		require.Equal(t, http.StatusOK, code, "it recovers by itself")
		code, _ = get(t, h, "POST", "/readyz")
		require.Equal(t, http.StatusMethodNotAllowed, code)

		r.stop()
		require.NoError(t, <-r.ended)
		code, _ = get(t, h, "GET", "/livez")
		require.Equal(t, http.StatusServiceUnavailable, code, "it has ended")
		code, _ = get(t, h, "GET", "/readyz")
		require.Equal(t, http.StatusServiceUnavailable, code)
	})
}

func TestAServiceThatStopsIsNotReady(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var d diary
		s := silently(service.Part{Name: "asked", Run: idle, Health: func(context.Context) error { return nil }}, d.part("slow", time.Minute/4))
		r := start(t, s)
		require.True(t, s.Health(t.Context()).Ready)
		r.stop()
		time.Sleep(time.Second)
		h := s.Health(t.Context())
		require.Equal(t, service.Stopping, h.Phase)
		require.True(t, h.Live)
		require.False(t, h.Ready)
		require.True(t, h.Parts[0].Ready, "it still runs")
		require.NoError(t, <-r.ended)
	})
}

func TestAPI07_ASlowPartCannotHoldAProbe(t *testing.T) {
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		var asked atomic.Int32
		s := silently(
			service.Part{Name: "stuck", Run: idle, Health: func(context.Context) error { asked.Add(1); <-release; return nil }},
			service.Part{Name: "slow", Run: idle, Health: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
			service.Part{Name: "mad", Run: idle, Health: func(context.Context) error { panic("mad") }},
			service.Part{Name: "fine", Run: idle, Health: func(context.Context) error { time.Sleep(time.Second / 2); return nil }},
		)
		r := start(t, s)
		for range 5 {
			began := time.Now()
			h := s.Health(t.Context())
			require.Equal(t, time.Second, time.Since(began), "all are asked side by side")
			require.False(t, h.Ready)
			require.Contains(t, h.Parts[0].Error, "no answer within 1s")
			require.NotEmpty(t, h.Parts[1].Error)
			require.Contains(t, h.Parts[2].Error, "panic: mad")
			require.True(t, h.Parts[3].Ready)
		}
		require.EqualValues(t, 1, asked.Load(), "who does not answer is not asked again")
		close(release)
		time.Sleep(time.Second)
		h := s.Health(t.Context())
		require.True(t, h.Parts[0].Ready)

		hurried, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		began := time.Now()
		require.False(t, s.Health(hurried).Parts[3].Ready)
		require.Equal(t, time.Millisecond, time.Since(began))
		r.stop()
		require.NoError(t, <-r.ended)
		time.Sleep(time.Minute)
	})
}

func TestLagIsShownOrUnknownAndNoMatterOfReadiness(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := silently(
			service.Part{Name: "some", Run: idle, Lag: func(context.Context) (int64, error) { return 42, nil }},
			service.Part{Name: "none", Run: idle, Lag: func(context.Context) (int64, error) { return 0, nil }},
			service.Part{Name: "unknown", Run: idle, Lag: func(context.Context) (int64, error) { return 0, errors.New("no counter") }},
			service.Part{Name: "slow", Run: idle, Lag: func(ctx context.Context) (int64, error) { time.Sleep(time.Minute); return 1, nil }},
		)
		r := start(t, s)
		code, body := get(t, s.Handler(), "GET", "/readyz")
		require.Equal(t, http.StatusOK, code)
		require.JSONEq(t, `{"live":true,"ready":true,"phase":"running","parts":[
			{"name":"some","ready":true,"state":"running","lag":42},{"name":"none","ready":true,"state":"running","lag":0},
			{"name":"unknown","ready":true,"state":"running","lag_error":"no counter"},
			{"name":"slow","ready":true,"state":"running","lag_error":"no answer within 1s: context deadline exceeded"}]}`, body)
		r.stop()
		require.NoError(t, <-r.ended)
		time.Sleep(time.Minute)
	})
}
