package soak

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/headwater-go/headwater/recovery"
)

// Entry is an entry of a topic, as it stands in the stream at the end.
type Entry struct {
	ID string
	// N and Aggregate are those of the message; Undecodable says that it is none.
	N           int
	Aggregate   string
	Undecodable bool
}

// Period is a time, in ms.
type Period struct{ From, To int64 }

// Evidence is all that is known when a soak has ended.
type Evidence struct {
	// Groups are the groups of each topic, Streams its entries.
	Groups  map[string][]string
	Streams map[string][]Entry
	Letters []recovery.Letter
	// Ledgers are those of all processes, by name.
	Ledgers map[string][]Record
	// Steady is the ledger of the process that nothing was done to; "" = there is none.
	Steady string
	// Confirmed are the numbers that the server has said to have.
	Confirmed []int
	// Troubles are when servers were harmed.
	Troubles []Period
	// Lossy says that each of them may have lost the last writes, so that what was
	// confirmed is missing, and what was delivered is delivered again.
	Lossy bool
}

// Verdict is what a soak has shown.
type Verdict struct {
	// Faults are what must not be, by kind.
	Faults map[string][]string
	// Entries counts those that are in the streams, LostByRedis the confirmed numbers that
	// no stream has any more.
	Entries, LostByRedis int
	// Handled counts the handled deliveries, Again those of them that were no first ones,
	// Recovered those that another process had before.
	Handled, Again, Recovered int
	// Letters counts the dead letters by reason.
	Letters map[recovery.Reason]int
}

func (v *Verdict) fault(kind, format string, args ...any) {
	v.Faults[kind] = append(v.Faults[kind], fmt.Sprintf(format, args...))
}

// place is an entry in the hands of a group.
type place struct{ topic, group, id string }

// Judge looks for every number.
func Judge(e *Evidence) *Verdict {
	v := &Verdict{Faults: map[string][]string{}, Letters: map[recovery.Reason]int{}}
	handled := map[place]int{}
	for name, records := range e.Ledgers {
		for _, r := range records {
			if r.What == Handled {
				v.Handled++
				handled[place{r.Topic, r.Group, r.ID}]++
				if r.Recovered {
					v.Recovered++
				}
			}
		}
		v.order(name, records, e)
	}
	v.Again = v.Handled - len(handled)
	v.arrival(e)
	v.fates(e, handled)
	v.theft(e)
	return v
}

// arrival looks for confirmed numbers that are in no stream.
func (v *Verdict) arrival(e *Evidence) {
	there := map[int]bool{}
	for _, entries := range e.Streams {
		v.Entries += len(entries)
		for _, entry := range entries {
			there[entry.N] = true
		}
	}
	for _, n := range e.Confirmed {
		switch {
		case there[n]:
		case e.Lossy:
			v.LostByRedis++
		default:
			v.fault("confirmed and not in the stream", "number %d", n)
		}
	}
}

// fates looks for what each group has made of each entry.
func (v *Verdict) fates(e *Evidence, handled map[place]int) {
	letters := map[place][]recovery.Letter{}
	for _, l := range e.Letters {
		v.Letters[l.Reason]++
		at := place{l.Topic, l.Group, l.Entry}
		letters[at] = append(letters[at], l)
	}
	for topic, entries := range e.Streams {
		for _, group := range e.Groups[topic] {
			for _, entry := range entries {
				at := place{topic, group, entry.ID}
				what := fmt.Sprintf("%s %s: entry %s, number %d (%s)", topic, group, entry.ID, entry.N, FateOf(entry.N))
				of := letters[at]
				switch {
				case len(of) > 1:
					v.fault("buried more than once", "%s: %d letters", what, len(of))
				case len(of) == 1:
					if reason := wrongLetter(&entry, &of[0]); reason != "" {
						v.fault("buried wrongly", "%s: %s after %d attempts, %q: %s", what, of[0].Reason, of[0].Attempts, of[0].Error, reason)
					}
				case handled[at] == 0:
					v.fault("lost: neither handled nor buried", "%s", what)
				}
			}
		}
	}
}

// wrongLetter says what is wrong with an entry's letter; "" = nothing.
func wrongLetter(entry *Entry, l *recovery.Letter) string {
	if entry.Undecodable {
		if l.Reason != recovery.Undecodable {
			return "it is undecodable"
		}
		return ""
	}
	want := map[Fate]recovery.Reason{Poison: recovery.Limit, Permanent: recovery.Permanent, Killer: recovery.Crashed}[FateOf(entry.N)]
	switch {
	case want == "":
		return "it could have been handled"
	case l.Reason != want:
		return "it should be " + string(want)
	case want == recovery.Limit && l.Attempts < MaxDeliveries: // a death before the burial may cost one more
		return fmt.Sprintf("it should have been tried %d times", MaxDeliveries)
	case want != recovery.Crashed && !strings.Contains(l.Error, Cause(entry.N)):
		return "it has another cause"
	case l.Aggregate != entry.Aggregate:
		return "it names another aggregate"
	}
	return ""
}

// order looks for entries that a process began after later ones of the same aggregate,
// though nobody had delivered them before.
func (v *Verdict) order(ledger string, records []Record, e *Evidence) {
	type lane struct{ topic, group, aggregate string }
	last := map[lane]Record{}
	for _, r := range records {
		if r.What != Begun {
			continue
		}
		at := lane{r.Topic, r.Group, r.Aggregate}
		before, ok := last[at]
		if ok && compareIDs(r.ID, before.ID) < 0 {
			if !r.Recovered && !e.deliveredBefore(r) {
				v.fault("out of order", "%s: %s %s %s: number %d (%s, attempt %d) was begun after number %d (%s, recovered %t)",
					ledger, r.Topic, r.Group, r.Aggregate, r.N, r.ID, r.Attempt, before.N, before.ID, before.Recovered)
			}
			continue
		}
		last[at] = r
	}
}

// deliveredBefore says that an entry was written before a trouble that loses writes had
// ended, and begun after it began: another master may have delivered it before.
func (e *Evidence) deliveredBefore(r Record) bool {
	ms, _, _ := strings.Cut(r.ID, "-")
	written, _ := strconv.ParseInt(ms, 10, 64) // ids come from Redis
	return e.Lossy && slices.ContainsFunc(e.Troubles, func(p Period) bool { return written <= p.To && r.At >= p.From })
}

// troubled says that servers were harmed so shortly before that a lease may have passed.
func (e *Evidence) troubled(at int64) bool {
	return slices.ContainsFunc(e.Troubles, func(p Period) bool { return at >= p.From && at <= p.To+2*Lease.Milliseconds() })
}

// theft looks for entries that others began while the steady process was handling them.
func (v *Verdict) theft(e *Evidence) {
	begun, holds := map[place]int64{}, map[place][]Period{}
	for _, r := range e.Ledgers[e.Steady] {
		at := place{r.Topic, r.Group, r.ID}
		if r.What == Begun {
			begun[at] = r.At
		} else {
			holds[at] = append(holds[at], Period{begun[at], r.At})
		}
	}
	for name, records := range e.Ledgers {
		for _, r := range records {
			if name == e.Steady || r.What != Begun || e.troubled(r.At) {
				continue
			}
			for _, h := range holds[place{r.Topic, r.Group, r.ID}] {
				if r.At > h.From && r.At < h.To {
					v.fault("taken from a living consumer", "%s began %s %s %s (number %d, %s) %d ms after its owner, which was at it for %d ms",
						name, r.Topic, r.Group, r.ID, r.N, FateOf(r.N), r.At-h.From, h.To-h.From)
				}
			}
		}
	}
}

// compareIDs compares ids of entries: <milliseconds>-<number>.
func compareIDs(a, b string) int {
	ams, an, _ := strings.Cut(a, "-")
	bms, bn, _ := strings.Cut(b, "-")
	return cmp.Or(compareNumbers(ams, bms), compareNumbers(an, bn))
}

// compareNumbers compares decimal numbers without leading zeros.
func compareNumbers(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}
