package memory_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/memory"
)

// In the bubble the clock stands still between the calls, so the millisecond is exact.
func TestPREP03_AReservationEndsInTheVeryMillisecondOfItsEnd(t *testing.T) {
	t.Parallel()
	const ttl = 1500 * time.Microsecond // which is rounded up to 2 ms
	for name, call := range map[string]func(p *memory.PrepareKey[string]) (held bool, err error){
		"get": func(p *memory.PrepareKey[string]) (bool, error) {
			_, err := p.Get(t.Context(), "k")
			return err == nil, nil
		},
		"prepare": func(p *memory.PrepareKey[string]) (bool, error) {
			free, err := p.Prepare(t.Context(), "k", "other", 0)
			return !free, err
		},
		"reprepare": func(p *memory.PrepareKey[string]) (bool, error) { return p.Reprepare(t.Context(), "k", "other", 0) },
		"reprepare from": func(p *memory.PrepareKey[string]) (bool, error) {
			return p.ReprepareFrom(t.Context(), "k", "v", "v", 0)
		},
		"rollback":      func(p *memory.PrepareKey[string]) (bool, error) { return p.Rollback(t.Context(), "k") },
		"rollback from": func(p *memory.PrepareKey[string]) (bool, error) { return p.RollbackFrom(t.Context(), "k", "v") },
	} {
		for after, want := range map[time.Duration]bool{0: true, time.Millisecond: true, 2 * time.Millisecond: false, 3 * time.Millisecond: false} {
			synctest.Test(t, func(t *testing.T) {
				p := memory.NewPrepareKey[string]()
				done, err := p.Prepare(t.Context(), "k", "v", ttl)
				require.NoError(t, err)
				require.True(t, done)
				time.Sleep(after)
				held, err := call(p)
				require.NoError(t, err)
				require.Equal(t, want, held, "%s after %s", name, after)
			})
		}
	}
}
