package es_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

// goldenIDs were written by Wow's CosId. "radix36" is another form of ids, chosen by
// configuration, which is not ours; "liveGenerator" describes one run of theirs.
type goldenIDs struct {
	States []struct {
		goldenParts
		ID, Rejected string
		Parsed       goldenParts
	}
	Parse []struct {
		goldenParts
		ID, Rejected string
	}
	ScriptedClock []struct {
		What        string
		Calls       int
		ClockReads  []json.RawMessage
		LastResults []struct {
			goldenParts
			ID, Error string
		}
	}
	MachineRange []struct {
		Machine     int
		Constructor json.RawMessage
	}
}

type goldenParts struct {
	Timestamp         int64
	Machine, Sequence int
}

func (p goldenParts) id() es.ID {
	return es.ID{Time: time.UnixMilli(p.Timestamp).UTC(), Machine: p.Machine, Sequence: p.Sequence}
}

func readGoldenIDs(t testing.TB) (golden goldenIDs) {
	t.Helper()
	data, err := os.ReadFile("testdata/cosid.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &golden))
	return golden
}

func TestGoldenIDStates(t *testing.T) {
	t.Parallel()
	states := readGoldenIDs(t).States
	require.Len(t, states, 26)
	for _, s := range states {
		require.Equal(t, s.ID, s.id().String(), "%+v", s) // "" where Wow rejects it
		if s.Rejected != "" {
			continue
		}
		id, err := es.ParseID(s.ID)
		require.NoError(t, err)
		require.Equal(t, s.Parsed.id(), id)
	}
}

func TestGoldenIDParse(t *testing.T) {
	t.Parallel()
	parse := readGoldenIDs(t).Parse
	require.Len(t, parse, 21)
	for _, p := range parse {
		id, err := es.ParseID(p.ID)
		if p.Rejected != "" {
			require.ErrorIs(t, err, es.ErrInvalid, "%q", p.ID)
			require.Zero(t, id)
			continue
		}
		require.NoError(t, err, "%q", p.ID)
		require.Equal(t, p.id(), id)
		require.Equal(t, p.ID, id.String())
	}
}

func TestGoldenIDSequence(t *testing.T) {
	t.Parallel()
	scripts := readGoldenIDs(t).ScriptedClock
	require.Len(t, scripts, 6)
	for _, s := range scripts {
		t.Run(s.What, func(t *testing.T) {
			t.Parallel()
			g, err := es.NewIDGeneratorAt(1, scriptedClock(t, s.ClockReads))
			require.NoError(t, err)
			var ids []string
			for range s.Calls {
				ids = append(ids, g.New())
			}
			for i, want := range s.LastResults {
				got := ids[len(ids)-len(s.LastResults)+i]
				if want.Error != "" { // Wow throws; ours goes on from the last millisecond
					require.Contains(t, want.Error, "ClockBackwardsException")
					require.Equal(t, goldenParts{1000, 1, 2}.id().String(), got)
					continue
				}
				require.Equal(t, want.ID, got)
			}
		})
	}
}

func TestGoldenIDMachineRange(t *testing.T) {
	t.Parallel()
	machines := readGoldenIDs(t).MachineRange
	require.Len(t, machines, 4)
	for _, m := range machines {
		g, err := es.NewIDGenerator(m.Machine)
		if string(m.Constructor) != `"ok"` {
			require.ErrorIs(t, err, es.ErrInvalid)
			continue
		}
		require.NoError(t, err)
		id, err := es.ParseID(g.New())
		require.NoError(t, err)
		require.Equal(t, []int{m.Machine, 1}, []int{id.Machine, id.Sequence})
		require.WithinDuration(t, time.Now(), id.Time, time.Minute)
	}
}

func TestIDsGoOnWhileTheClockStandsOrGoesBack(t *testing.T) {
	t.Parallel()
	now := int64(1_700_000_000_000)
	g, err := es.NewIDGeneratorAt(7, func() int64 { return now })
	require.NoError(t, err)
	last := ""
	step := func(n int) es.ID {
		for range n {
			id := g.New()
			require.Greater(t, id, last)
			last = id
		}
		id, err := es.ParseID(last)
		require.NoError(t, err)
		return id
	}
	start := now
	require.Equal(t, es.ID{Time: time.UnixMilli(start).UTC(), Machine: 7, Sequence: 65535}, step(65535))
	require.Equal(t, es.ID{Time: time.UnixMilli(start + 1).UTC(), Machine: 7}, step(1), "a standing clock: the next millisecond is taken in advance")
	now -= 3_600_000
	require.Equal(t, time.UnixMilli(start+3).UTC(), step(2*65536).Time, "an hour back: only the sequence counts")
	now = start + 1000
	require.Equal(t, time.UnixMilli(now).UTC(), step(1).Time)
	now = -5
	require.Equal(t, time.UnixMilli(start+1000).UTC(), step(1).Time)
}

func TestIDsAreUniqueAndRiseForEachCaller(t *testing.T) {
	t.Parallel()
	g, err := es.NewIDGenerator(es.MaxMachine)
	require.NoError(t, err)
	const callers, each = 8, 5000
	ids := make([][]string, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for range each {
				ids[i] = append(ids[i], g.New())
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for _, mine := range ids {
		require.True(t, slices.IsSorted(mine))
		for _, id := range mine {
			seen[id] = true
		}
	}
	require.Len(t, seen, callers*each)
}

func FuzzParseID(f *testing.F) {
	for _, p := range readGoldenIDs(f).Parse {
		f.Add(p.ID)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := es.ParseID(s)
		if err != nil {
			require.ErrorIs(t, err, es.ErrInvalid)
			return
		}
		require.Equal(t, s, id.String())
	})
}

func BenchmarkIDGenerator(b *testing.B) {
	g, err := es.NewIDGenerator(1)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		g.New()
	}
}

func ExampleNewIDGenerator() {
	ids, err := es.NewIDGenerator(1) // another number in each process
	if err != nil {
		panic(err)
	}
	first, second := ids.New(), ids.New()
	fmt.Println(len(first), first < second)
	// Output: 15 true
}

func ExampleParseID() {
	id, err := es.ParseID("0Tvcokgi0001001")
	fmt.Println(id.Time.Format(time.RFC3339), id.Machine, id.Sequence, err)
	// Output: 2023-11-14T22:13:20Z 1 1 <nil>
}

// scriptedClock reads each entry once, or as often as it says, and the last for ever.
func scriptedClock(t *testing.T, reads []json.RawMessage) func() int64 {
	t.Helper()
	var times []int64
	for _, r := range reads {
		var repeated struct {
			MS    int64
			Times int
		}
		if json.Unmarshal(r, &repeated) != nil {
			require.NoError(t, json.Unmarshal(r, &repeated.MS))
			repeated.Times = 1
		}
		times = append(times, slices.Repeat([]int64{repeated.MS}, repeated.Times)...)
	}
	return func() int64 {
		now := times[0]
		if len(times) > 1 {
			times = times[1:]
		}
		return now
	}
}
