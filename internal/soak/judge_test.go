package soak_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/soak"
	"github.com/headwater-go/headwater/recovery"
)

const group = "g"

var topic = rediskey.Command(soak.Types[0])

// numberOf is the first number of a fate.
func numberOf(t *testing.T, f soak.Fate) int {
	t.Helper()
	for n := 1; n < 10_000; n++ {
		if soak.FateOf(n) == f {
			return n
		}
	}
	t.Fatalf("no number is %s", f)
	return 0
}

func id(n int) string { return fmt.Sprintf("%d-0", n) }

func record(what rune, n int, at int64) soak.Record {
	return soak.Record{What: what, At: at, Topic: topic, Group: group, ID: id(n), N: n, Aggregate: "a", Attempt: 1}
}

func letter(n int, reason recovery.Reason) recovery.Letter {
	return recovery.Letter{Topic: topic, Group: group, Entry: id(n), Reason: reason, Attempts: soak.MaxDeliveries, Error: soak.Cause(n), Aggregate: "a"}
}

// evidence is a soak of these numbers in which all went as it should.
func evidence(t *testing.T) *soak.Evidence {
	t.Helper()
	poison := numberOf(t, soak.Poison)
	e := &soak.Evidence{
		Groups: map[string][]string{topic: {group}}, Confirmed: []int{1, 2, poison}, Steady: "steady",
		Streams: map[string][]soak.Entry{topic: {{ID: id(1), N: 1, Aggregate: "a"}, {ID: id(2), N: 2, Aggregate: "a"}, {ID: id(poison), N: poison, Aggregate: "a"}}},
		Letters: []recovery.Letter{letter(poison, recovery.Limit)},
		Ledgers: map[string][]soak.Record{"steady": {
			record(soak.Begun, 1, 1000), record(soak.Handled, 1, 1010), record(soak.Begun, 2, 1020), record(soak.Handled, 2, 1030),
			record(soak.Begun, poison, 1040), record(soak.Failed, poison, 1050),
		}},
	}
	return e
}

func TestTheJudgeFindsNothingWhereNothingIsWrong(t *testing.T) {
	t.Parallel()
	v := soak.Judge(evidence(t))
	require.Empty(t, v.Faults)
	require.Equal(t, []int{3, 2, 0, 0}, []int{v.Entries, v.Handled, v.Again, v.Recovered})
	require.Equal(t, map[recovery.Reason]int{recovery.Limit: 1}, v.Letters)
}

// Each fault, made once.
func TestTheJudgeNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	poison := numberOf(t, soak.Poison)
	for fault, spoil := range map[string]func(e *soak.Evidence){
		"lost: neither handled nor buried": func(e *soak.Evidence) { e.Ledgers["steady"][3].What = soak.Failed },
		"confirmed and not in the stream":  func(e *soak.Evidence) { e.Confirmed = append(e.Confirmed, 77) },
		"buried more than once":            func(e *soak.Evidence) { e.Letters = append(e.Letters, e.Letters[0]) },
		"buried wrongly":                   func(e *soak.Evidence) { e.Letters[0].Error = "another" },
		"out of order": func(e *soak.Evidence) {
			e.Ledgers["other"] = []soak.Record{record(soak.Begun, poison, 1), record(soak.Begun, 2, 2)}
		},
		"taken from a living consumer": func(e *soak.Evidence) {
			e.Ledgers["other"] = []soak.Record{record(soak.Begun, 1, 1005), record(soak.Handled, 1, 1006)}
		},
	} {
		e := evidence(t)
		spoil(e)
		v := soak.Judge(e)
		require.Len(t, v.Faults, 1, fault)
		require.Len(t, v.Faults[fault], 1, fault)
	}
}

func TestTheJudgeKnowsWhyAMessageMayBeBuried(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fate   soak.Fate
		reason recovery.Reason
		right  bool
	}{
		{soak.Well, recovery.Crashed, false},
		{soak.Slow, recovery.Crashed, false},
		{soak.Flaky, recovery.Limit, false},
		{soak.Killer, recovery.Crashed, true},
		{soak.Permanent, recovery.Permanent, true},
		{soak.Poison, recovery.Permanent, false},
	} {
		e, n := evidence(t), numberOf(t, c.fate)
		e.Confirmed, e.Streams[topic] = nil, []soak.Entry{{ID: id(n), N: n, Aggregate: "a"}}
		e.Letters = []recovery.Letter{letter(n, c.reason)}
		require.Equal(t, c.right, len(soak.Judge(e).Faults["buried wrongly"]) == 0, c)
	}
}

func TestTheJudgeTakesAFailoverIntoAccount(t *testing.T) {
	t.Parallel()
	e := evidence(t)
	e.Confirmed = append(e.Confirmed, 77)
	e.Ledgers["other"] = []soak.Record{record(soak.Begun, 2, 3000), record(soak.Begun, 1, 3001)}
	e.Lossy, e.Troubles = true, []soak.Period{{From: 2000, To: 2100}}
	v := soak.Judge(e)
	require.Empty(t, v.Faults, "entry 1 was written before it and begun after it")
	require.Equal(t, 1, v.LostByRedis)
	e.Troubles[0].From = 4000
	require.Len(t, soak.Judge(e).Faults["out of order"], 1, "it was begun before")
}

func TestALeaseMayPassWhileAServerIsDown(t *testing.T) {
	t.Parallel()
	e := evidence(t)
	e.Ledgers["other"] = []soak.Record{record(soak.Begun, 1, 1005)}
	e.Troubles = []soak.Period{{From: 100, To: 1004}}
	require.Empty(t, soak.Judge(e).Faults)
	e.Troubles[0] = soak.Period{From: 1006, To: 1010}
	require.Len(t, soak.Judge(e).Faults["taken from a living consumer"], 1)
}

func TestALedgerOutlivesAKill(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger")
	l, err := soak.OpenLedger(path)
	require.NoError(t, err)
	require.NoError(t, l.Write(record(soak.Begun, 1, 0)))
	require.NoError(t, l.Write(record(soak.Handled, 1, 0)))
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString("b 17 soak.l")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	records, err := soak.ReadLedger(path)
	require.NoError(t, err)
	require.Len(t, records, 2)
	require.NotZero(t, records[1].At)
	records[1].At = 0
	require.Equal(t, record(soak.Handled, 1, 0), records[1])
}
