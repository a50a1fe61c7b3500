package estest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

// patience is how long a test waits for what must happen.
const patience = 60 * time.Second

// received is one call of a handler.
type received struct {
	letter
	es.Delivery
}

// reader is a subscription that runs, and what its handler was called for.
type reader struct {
	mu    sync.Mutex
	got   []received
	stop  context.CancelFunc
	ended chan struct{}
	err   error
}

// read subscribes, until the test ends at the latest. A handle of nil handles everything.
func (b bus) read(t *testing.T, s es.Subscription, handle func(context.Context, received) error) *reader {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r := &reader{stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		r.err = b.subscribe(ctx, s, func(ctx context.Context, l letter) error {
			d, _ := es.DeliveryOf(ctx)
			call := received{l, d}
			r.mu.Lock()
			r.got = append(r.got, call)
			r.mu.Unlock()
			if handle == nil {
				return nil
			}
			return handle(ctx, call)
		})
	}()
	t.Cleanup(func() {
		stop()
		<-r.ended
	})
	return r
}

func (r *reader) calls() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]received(nil), r.got...)
}

// wait waits until the handler was called n times, and returns what for.
func (r *reader) wait(t *testing.T, n int) []received {
	t.Helper()
	eventually(t, func() bool {
		select {
		case <-r.ended:
			return true
		default:
			return len(r.calls()) >= n
		}
	})
	got := r.calls()
	require.Len(t, got, n, "calls of the handler; the subscription ended with %v", r.ending())
	return got
}

// ending is the error of a subscription that has ended.
func (r *reader) ending() error {
	select {
	case <-r.ended:
		return r.err
	default:
		return nil
	}
}

// end stops the subscription, which is no error.
func (r *reader) end(t *testing.T) {
	t.Helper()
	r.stop()
	select {
	case <-r.ended:
		require.NoError(t, r.err, "a context that is done ends it with nil")
	case <-time.After(patience):
		require.Fail(t, "it did not end with its context")
	}
}

func eventually(t *testing.T, happened func() bool) {
	t.Helper()
	require.Eventually(t, happened, patience, 2*time.Millisecond)
}

// sendAll sends one message after the other.
func (b bus) sendAll(t *testing.T, letters ...letter) {
	t.Helper()
	for _, l := range letters {
		require.NoError(t, b.send(t.Context(), l))
	}
}

func lettersOf(calls []received) []letter {
	letters := []letter{}
	for _, c := range calls {
		letters = append(letters, c.letter)
	}
	return letters
}

func numbersOf(calls []received) []int {
	numbers := []int{}
	for _, c := range calls {
		numbers = append(numbers, c.number)
	}
	return numbers
}
