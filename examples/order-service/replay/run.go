package replay

import (
	"context"
	"errors"
	"hash/fnv"
	"sync"
	"sync/atomic"

	"github.com/headwater-go/headwater/es"
)

// Tally says what became of the commands.
type Tally struct {
	// Applied were carried out now, Duplicates by an earlier replay.
	Applied, Duplicates int
	// Refused counts the aggregates' refusals by reason.
	Refused map[string]int
}

// Refusals counts all refused commands.
func (t Tally) Refusals() int {
	sum := 0
	for _, n := range t.Refused {
		sum += n
	}
	return sum
}

// Commands counts all commands that were answered.
func (t Tally) Commands() int { return t.Applied + t.Duplicates + t.Refusals() }

// Run has the commands carried out by so many workers, those of one aggregate by one
// worker in the order given, and counts them in done as it goes. It ends early when ctx
// does, or at the first fault, with that error and the tally so far. It may be run
// again at any time, from the beginning: what was applied is a duplicate then, and what
// was refused is refused again.
func Run(ctx context.Context, handle es.CommandHandler, commands []es.Command, workers int, done *atomic.Int64) (Tally, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	total := Tally{Refused: map[string]int{}}
	var mu sync.Mutex
	var running sync.WaitGroup
	for _, share := range split(commands, workers) {
		running.Go(func() {
			tally, err := work(ctx, handle, share, done)
			if err != nil {
				stop(err)
			}
			mu.Lock()
			defer mu.Unlock()
			total.add(tally)
		})
	}
	running.Wait()
	return total, context.Cause(ctx)
}

// split deals the commands out so that all of one aggregate are in one share.
func split(commands []es.Command, workers int) [][]es.Command {
	shares := make([][]es.Command, workers)
	for _, c := range commands {
		h := fnv.New32a()
		_, _ = h.Write([]byte(c.Aggregate.String())) // it never fails
		i := h.Sum32() % uint32(workers)
		shares[i] = append(shares[i], c)
	}
	return shares
}

// work carries out one share. Each command expects the version that the aggregate's
// command before it led to. So one that was refused is not decided anew on a state that
// came later: with "pay, confirm" in the log, a second replay would else let it pay.
func work(ctx context.Context, handle es.CommandHandler, commands []es.Command, done *atomic.Int64) (Tally, error) {
	tally := Tally{Refused: map[string]int{}}
	versions := map[es.AggregateID]int{}
	for _, c := range commands {
		if ctx.Err() != nil {
			return tally, nil //nolint:nilerr // whoever ended ctx asks for what was done by then
		}
		version := versions[c.Aggregate]
		c.Expected = &version
		result, err := handle(ctx, c)
		switch {
		case errors.Is(err, es.ErrRefused):
			tally.Refused[Reason(err)]++
		case err != nil:
			return tally, err
		default:
			versions[c.Aggregate] = result.Version
			if result.Duplicate {
				tally.Duplicates++
			} else {
				tally.Applied++
			}
		}
		done.Add(1)
	}
	return tally, nil
}

// Reason is the text of a refusal without whom it concerns.
func Reason(err error) string {
	if errors.Is(err, es.ErrExpectedVersion) {
		return "was refused by an earlier replay, or the aggregate has gone another way"
	}
	var where *es.Error
	if errors.As(err, &where) {
		return where.Err.Error()
	}
	return err.Error()
}

func (t *Tally) add(other Tally) {
	t.Applied += other.Applied
	t.Duplicates += other.Duplicates
	for reason, n := range other.Refused {
		t.Refused[reason] += n
	}
}
