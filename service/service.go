package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/headwater-go/headwater/es"
)

// ErrGrace says that a part had not ended when the grace was over.
var ErrGrace = errors.New("did not end within the grace")

// PartError says which part ended the service.
type PartError struct {
	Part string
	Err  error
}

// Error is "part orders: no such host".
func (e *PartError) Error() string { return "part " + e.Part + ": " + e.Err.Error() }

// Unwrap gives [errors.Is] and [errors.As] the cause.
func (e *PartError) Unwrap() error { return e.Err }

// Part is one thing that a service does: a subscription, a relay, an HTTP server. Only
// the name must be set.
type Part struct {
	// Name tells the part from the others in errors, logs and health.
	Name string
	// Prepare makes what the part needs, such as its groups. The parts are prepared one
	// after another, in order, before any of them runs; so nothing is sent that a part
	// would miss. While it returns an [es.ErrUnavailable] it is tried again; any other
	// error ends the service. It must be safe to repeat.
	Prepare func(ctx context.Context) error
	// Run does the part's work until ctx is done, and then ends what it began. The parts
	// are started in order, and none waits for the one before it: what must be there is
	// made by Prepare. A nil before ctx is done says that the work is finished: the
	// others go on. A part without Run is there to be prepared and asked for its health.
	Run func(ctx context.Context) error
	// Restarts is how often in a row Prepare and Run are called again after an error of
	// Run, or a panic, each time after a longer pause. A row ends when Run lasted for
	// MaxBackoff. Defaults to 0: an error ends the service, whose supervisor starts a
	// clean process. The buses heal by themselves and need none. An [es.Permanent] error
	// ends the service in any case.
	Restarts int
	// Health says why the part cannot do its work now; nil = it can. It is called beside
	// Run, by one probe at a time, and its context ends after ProbeTimeout.
	Health func(ctx context.Context) error
	// Lag counts what waits for the part. It is shown, and no matter of readiness; an
	// error says that it is not known.
	Lag func(ctx context.Context) (int64, error)
}

// Service runs parts. Its fields are set before Run, and not changed then.
type Service struct {
	// Parts in the order in which they start; they stop in reverse, each after the one
	// behind it has ended. So what sends stands behind what handles.
	Parts []Part
	// Grace is what all parts together get to end; what a part takes is gone for those
	// before it. Defaults to 25 s, since many supervisors kill after 30 s.
	Grace time.Duration
	// Backoff is the pause before a first restart; it doubles up to MaxBackoff, with
	// jitter. Defaults to 1 s and 30 s.
	Backoff, MaxBackoff time.Duration
	// ProbeTimeout is what a part's Health and Lag may take. Defaults to 1 s.
	ProbeTimeout time.Duration
	// Logger hears of restarts and of what start-up waits for. Defaults to [slog.Default].
	Logger *slog.Logger

	mu    sync.Mutex
	phase Phase
	parts []*part
}

// closing is what a stop may take besides the grace: parts that are late are told so.
const closing = 900 * time.Millisecond

// Run prepares the parts, starts them, and blocks until ctx is done, all of them have
// finished, or one of them fails; then it stops them. It returns within a second of the
// grace. It returns nil, or the [PartError] that ended the service first, joined with
// those that came up while it stopped; parts that did not end in time are an
// [ErrGrace], and abandoned. Signals are the caller's: see [os/signal.NotifyContext].
// A service runs once.
func (s *Service) Run(ctx context.Context) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.enter(Ended)
	for _, p := range s.parts {
		if err := s.prepare(ctx, p); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	failed, finished := s.start(ctx)
	var cause *part
	select {
	case <-ctx.Done():
	case cause = <-failed:
	case <-finished:
		select { // the last of them may have failed
		case cause = <-failed:
		default:
		}
	}
	s.enter(Stopping)
	return s.stop(cause) //nolint:contextcheck // ctx is done
}

// begin checks what was set, once.
func (s *Service) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase != "" {
		return es.Invalid("a service runs once")
	}
	if err := s.validate(); err != nil {
		return err
	}
	setDefault(&s.Grace, 25*time.Second)
	setDefault(&s.Backoff, time.Second)
	setDefault(&s.MaxBackoff, max(30*time.Second, s.Backoff))
	setDefault(&s.ProbeTimeout, time.Second)
	if s.Logger == nil {
		s.Logger = slog.Default()
	}
	for _, p := range s.Parts {
		s.parts = append(s.parts, newPart(p))
	}
	s.phase = Preparing
	return nil
}

func (s *Service) validate() error {
	if len(s.Parts) == 0 {
		return es.Invalid("a service without parts")
	}
	for i, p := range s.Parts {
		switch {
		case strings.TrimSpace(p.Name) == "":
			return es.Invalid("part %d has no name", i+1)
		case slices.ContainsFunc(s.Parts[:i], func(o Part) bool { return o.Name == p.Name }):
			return es.Invalid("two parts are named %q", p.Name)
		case p.Restarts < 0:
			return es.Invalid("restarts of part %q are negative", p.Name)
		}
	}
	if s.Grace < 0 || s.Backoff < 0 || s.MaxBackoff < 0 || s.ProbeTimeout < 0 || s.MaxBackoff != 0 && s.MaxBackoff < s.Backoff {
		return es.Invalid("a duration is out of range")
	}
	return nil
}

func setDefault(field *time.Duration, value time.Duration) {
	if *field == 0 {
		*field = value
	}
}

// start runs the parts.
func (s *Service) start(ctx context.Context) (failed chan *part, finished chan struct{}) {
	s.enter(Running)
	failed, finished = make(chan *part, len(s.parts)), make(chan struct{})
	for _, p := range s.parts {
		// Each is stopped in its turn, not by ctx.
		var running context.Context
		running, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
		go s.run(running, p, failed)
	}
	go func() {
		for _, p := range s.parts {
			<-p.ended
		}
		close(finished)
	}()
	return failed, finished
}

// stop ends the parts, the last first, and returns what went wrong.
func (s *Service) stop(cause *part) error {
	grace, over := context.WithTimeout(context.Background(), s.Grace)
	defer over()
	for _, p := range slices.Backward(s.parts) {
		p.cancel()
		p.endsBefore(grace)
	}
	late, gone := context.WithTimeout(context.Background(), closing)
	defer gone()
	var errs []error
	if cause != nil {
		errs = append(errs, &PartError{cause.Name, cause.err})
	}
	for _, p := range s.parts {
		if !p.endsBefore(late) {
			errs = append(errs, &PartError{p.Name, fmt.Errorf("%w of %v", ErrGrace, s.Grace)})
		} else if p != cause && p.err != nil {
			errs = append(errs, &PartError{p.Name, p.err})
		}
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}
