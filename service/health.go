package service

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
)

// Phase is how far a service has come. Before Run it is "".
type Phase string

// The phases, in order.
const (
	Preparing Phase = "preparing"
	Running   Phase = "running"
	Stopping  Phase = "stopping"
	Ended     Phase = "ended"
)

// State is how a part is.
type State string

// The states of a part. It is ready while it runs, and when it has ended without an error.
const (
	PartPreparing  State = "preparing"
	PartRunning    State = "running"
	PartRestarting State = "restarting"
	PartEnded      State = "ended"
	PartFailed     State = "failed"
)

// Health is how a service is.
type Health struct {
	// Live says that the process should be left alone: it is so until Run has ended,
	// whatever the parts say, since killing a process mends no database.
	Live bool `json:"live"`
	// Ready says that the service runs, and all of its parts can do their work.
	Ready bool         `json:"ready"`
	Phase Phase        `json:"phase"`
	Parts []PartHealth `json:"parts,omitempty"`
}

// PartHealth is how a part is.
type PartHealth struct {
	Name  string `json:"name"`
	Ready bool   `json:"ready"`
	State State  `json:"state"`
	// Error is why it is not ready.
	Error string `json:"error,omitempty"`
	// Restarts counts them since the service began.
	Restarts int `json:"restarts,omitempty"`
	// Lag counts what waits for the part; nil = it is not known, for the reason LagError
	// where the part has a Lag.
	Lag      *int64 `json:"lag,omitempty"`
	LagError string `json:"lag_error,omitempty"`
}

// Health asks all parts, side by side. It returns within ProbeTimeout, or when ctx is
// done: who has not answered is not ready. A part that does not heed its context is not
// asked again until it has answered.
func (s *Service) Health(ctx context.Context) Health {
	s.mu.Lock()
	h := Health{Live: s.phase != Ended, Ready: s.phase == Running, Phase: s.phase, Parts: make([]PartHealth, len(s.parts))}
	ask := s.phase == Running || s.phase == Stopping
	parts := s.parts
	for i, p := range parts {
		fine := p.state == PartRunning || p.state == PartEnded && p.problem == ""
		h.Parts[i] = PartHealth{Name: p.Name, Ready: fine, State: p.state, Error: p.problem, Restarts: p.restarts}
	}
	s.mu.Unlock()
	var asking sync.WaitGroup
	for i, p := range parts {
		if ask && h.Parts[i].State == PartRunning {
			asking.Go(func() { s.probe(ctx, p, &h.Parts[i]) })
		}
	}
	asking.Wait()
	for i := range h.Parts {
		h.Ready = h.Ready && h.Parts[i].Ready
	}
	return h
}

// flight is a probe that is on its way.
type flight struct {
	answered, counted chan struct{} // Health has, and Lag has
	err, lagErr       error
	lag               int64
}

// probe joins the probe of a part that is on its way, or begins one.
func (s *Service) probe(ctx context.Context, p *part, h *PartHealth) {
	if p.Health == nil && p.Lag == nil {
		return
	}
	s.mu.Lock()
	f := p.flight
	if f == nil {
		f = &flight{answered: make(chan struct{}), counted: make(chan struct{})}
		p.flight = f
		go s.fly(p, f) //nolint:gosec,contextcheck // who asked first may leave before the others
	}
	s.mu.Unlock()
	ctx, over := context.WithTimeout(ctx, s.ProbeTimeout)
	defer over()
	if err := s.await(ctx, f.answered); err != nil {
		h.Ready, h.Error = false, err.Error()
	} else if f.err != nil {
		h.Ready, h.Error = false, f.err.Error()
	}
	if p.Lag == nil {
		return
	}
	err := s.await(ctx, f.counted)
	if err == nil {
		err = f.lagErr
	}
	if err == nil {
		h.Lag = &f.lag
	} else {
		h.LagError = err.Error()
	}
}

func (s *Service) await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("no answer within %v: %w", s.ProbeTimeout, ctx.Err())
	}
}

func (s *Service) fly(p *part, f *flight) {
	ctx, cancel := context.WithTimeout(context.Background(), s.ProbeTimeout)
	defer cancel()
	if p.Health != nil {
		f.err = guarded(ctx, p.Health)
	}
	close(f.answered)
	if p.Lag != nil {
		f.lagErr = guarded(ctx, func(ctx context.Context) (err error) {
			f.lag, err = p.Lag(ctx)
			return err
		})
	}
	s.mu.Lock()
	p.flight = nil
	s.mu.Unlock()
	close(f.counted)
}

// Handler answers GET /livez and /readyz with a [Health] as JSON, and with the status
// 200 or 503. The first asks no part. Errors are shown as they are, so it belongs where
// no stranger comes.
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		phase := s.phase
		s.mu.Unlock()
		live := phase != Ended
		answer(w, live, struct {
			Live  bool  `json:"live"`
			Phase Phase `json:"phase"`
		}{live, phase})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		h := s.Health(r.Context())
		answer(w, h.Ready, h)
	})
	return mux
}

func answer(w http.ResponseWriter, ok bool, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if !ok {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(body) //nolint:errchkjson // it is always JSON, and who hung up does not need it
}

func (s *Service) enter(p Phase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase = p
}

// set says how a part is, and what is wrong with it.
func (s *Service) set(p *part, state State, problem error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state == PartRestarting {
		p.restarts++
	}
	p.state, p.problem = state, ""
	if problem != nil {
		p.problem = problem.Error()
	}
}
