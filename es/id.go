package es

import (
	"math/rand/v2"
	"sync"
	"time"
)

// MaxMachine is the highest machine number of an [IDGenerator].
const MaxMachine = 1<<20 - 1

const (
	idAlphabet  = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	idLength    = 8 + 4 + 3 // time, machine, sequence
	maxSequence = 1<<16 - 1
	// calmSequence is where a new millisecond begins its sequence anew; below it the
	// sequence goes on, so that ids spread evenly even at one id each millisecond.
	calmSequence = 1<<15 - 1
	// clockLooks is how often a generator that ran out of sequences looks for a new
	// millisecond, a few microseconds in all, before it takes the next one in advance.
	clockLooks = 100
)

// ID is what the text of an id made by an [IDGenerator] holds. It is CosId's Radix62
// form, Wow's default: 15 characters whose byte order is the order of time.
type ID struct {
	// Time is exact to the millisecond.
	Time time.Time
	// Machine is who made it: no two generators that run at once share a number.
	Machine int
	// Sequence tells ids of one millisecond and machine apart.
	Sequence int
}

// String is the id's text, "" where a part is negative or too large for its place.
func (i ID) String() string {
	var b [idLength]byte
	if !writeRadix62(b[:8], i.Time.UnixMilli()) || !writeRadix62(b[8:12], int64(i.Machine)) || !writeRadix62(b[12:], int64(i.Sequence)) {
		return ""
	}
	return string(b[:])
}

// ParseID reads an id's text. Like Wow it checks the length and the alphabet, and not
// that the parts are ones a generator could make. Else it is an [ErrInvalid].
func ParseID(s string) (ID, error) {
	if len(s) != idLength {
		return ID{}, Invalid("id %q has %d bytes, not %d", s, len(s), idLength)
	}
	ms, ok1 := readRadix62(s[:8])
	machine, ok2 := readRadix62(s[8:12])
	sequence, ok3 := readRadix62(s[12:])
	if !ok1 || !ok2 || !ok3 {
		return ID{}, Invalid("id %q holds a character that is no letter or digit", s)
	}
	return ID{Time: time.UnixMilli(ms).UTC(), Machine: int(machine), Sequence: int(sequence)}, nil
}

// IDGenerator makes ids, each greater than the one before. It is safe for concurrent
// use, never fails and never waits: while the clock is behind the last id, because it was
// set back or its millisecond is used up, ids go on from the last id's millisecond.
// (Wow throws where the clock was set back, and waits for the next millisecond.) Keep one
// for each process: two with the same machine number make the same ids.
type IDGenerator struct {
	clock func() int64 // milliseconds

	mu       sync.Mutex
	last     int64 // millisecond of the last id
	sequence int64 // of the last id
	text     [idLength]byte
}

// NewIDGenerator makes a generator. A machine number outside [0, [MaxMachine]] is an
// [ErrInvalid]. Whoever shares a database, Kotlin nodes included, needs another number.
func NewIDGenerator(machine int) (*IDGenerator, error) {
	if machine < 0 || machine > MaxMachine {
		return nil, Invalid("machine %d is not between 0 and %d", machine, MaxMachine)
	}
	g := &IDGenerator{clock: func() int64 { return time.Now().UnixMilli() }}
	writeRadix62(g.text[:8], g.last)
	writeRadix62(g.text[8:12], int64(machine))
	return g, nil
}

// NewRandomIDs makes ids under a machine id drawn at random: two processes share one
// in a million times, and then only ids of the same millisecond can meet. Give each
// process a machine id of its own where ids are made at a high rate in many.
func NewRandomIDs() func() string {
	g, err := NewIDGenerator(rand.IntN(MaxMachine + 1))
	if err != nil {
		panic(err) // the range is the generator's own
	}
	return g.New
}

// New is the next id.
func (g *IDGenerator) New() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := max(g.clock(), g.last)
	if now > g.last && g.sequence >= calmSequence {
		g.sequence = 0
	}
	if g.sequence++; g.sequence > maxSequence {
		g.sequence = 0
		now = g.later(now)
	}
	if now > g.last {
		writeRadix62(g.text[:8], now)
		g.last = now
	}
	writeRadix62(g.text[12:], g.sequence)
	return string(g.text[:])
}

// later is a millisecond after the last id's: the clock's, where it gets there soon.
func (g *IDGenerator) later(now int64) int64 {
	for look := 0; now == g.last && look < clockLooks; look++ {
		now = max(g.clock(), g.last)
	}
	return max(now, g.last+1)
}

// writeRadix62 fills b from the right, and reports whether n fits.
func writeRadix62(b []byte, n int64) bool {
	u := uint64(n) // a negative number is too large for every place
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = idAlphabet[u%62]
		u /= 62
	}
	return u == 0
}

func readRadix62(s string) (n int64, ok bool) {
	for i := range len(s) {
		var digit byte
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			digit = c - '0'
		case c >= 'A' && c <= 'Z':
			digit = c - 'A' + 10
		case c >= 'a' && c <= 'z':
			digit = c - 'a' + 36
		default:
			return 0, false
		}
		n = n*62 + int64(digit)
	}
	return n, true
}
