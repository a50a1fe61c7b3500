package recovery

import (
	"strconv"
	"strings"
	"time"

	"github.com/headwater-go/headwater/es"
)

// Reason says why a message became a dead letter.
type Reason string

// The reasons there are.
const (
	// Undecodable: its bytes are no message.
	Undecodable Reason = "undecodable"
	// UnknownType: it names a type that the reader does not know.
	UnknownType Reason = "unknown type"
	// Permanent: the handler said that no retry will mend it.
	Permanent Reason = "permanent"
	// Limit: it failed as often as a message may.
	Limit Reason = "limit"
	// Crashed: it was handed over from consumers that died too often.
	Crashed Reason = "crashed"
)

// MaxErrorBytes is the size limit of the error text that a failure or a letter keeps.
const MaxErrorBytes = 4 << 10

// Fields are the names and values of a stream entry, in turn, in the order written; a
// name may come twice.
type Fields []string

// Get is the first value of a name.
func (f Fields) Get(name string) (string, bool) {
	for i := 0; i+1 < len(f); i += 2 {
		if f[i] == name {
			return f[i+1], true
		}
	}
	return "", false
}

// Letter is a message that one group could not handle.
type Letter struct {
	// ID is the letter's own id among the topic's dead letters; unset while it is written.
	ID    string
	Topic string
	Group string
	// Consumer buried it.
	Consumer string
	Reason   Reason
	// Error is the last error's text, valid UTF-8 of at most [MaxErrorBytes].
	Error string
	// Attempts counts the calls of the handler since it was published or last replayed.
	Attempts int
	// First and Last are when it failed first and last, by the server's clock.
	First, Last time.Time
	// Stream and Entry are where it was read: the topic, or the group's retry stream.
	Stream, Entry string
	// Origin is the entry's id in the topic, which is Entry unless it was replayed.
	Origin string
	// Aggregate is the aggregate's id where it is known.
	Aggregate string
	// Function is the one of the group's functions that failed; the zero Function where
	// the group has but one handler, or what is left is not known.
	Function es.Function
	// Replays counts how often it was replayed before.
	Replays int
	// Fields are the message's own, unchanged.
	Fields Fields
}

// The fields of a letter in the stream of dead letters; lua/bury_entry.lua writes them.
// A message's own fields stand behind all others, each with a prefix, so that none is
// mistaken; more than maxPlain of them are packed into one field, as <length>:<bytes> of
// each name and value. An entry of a retry stream has replays, origin, the function and its own fields.
const (
	fieldStream    = "stream"
	fieldEntry     = "entry"
	fieldGroup     = "group"
	fieldConsumer  = "consumer"
	fieldReason    = "reason"
	fieldError     = "error"
	fieldFirst     = "first" // ms
	fieldLast      = "last"  // ms
	fieldAttempts  = "attempts"
	fieldAggregate = "aggregate"
	fieldReplays   = "replays"
	fieldOrigin    = "origin"
	fieldContext   = "context" // of the function; the three are written where there is one
	fieldProcessor = "processor"
	fieldFunction  = "function"
	prefixOwn      = "f:"
	fieldPacked    = "packed"

	maxPlain = 1000
)

// readLetter is the letter that an entry of the topic's dead letters holds.
func readLetter(topic, id string, f Fields) (Letter, error) {
	own, err := unwrap(f)
	l := Letter{ID: id, Topic: topic, Fields: own}
	for name, to := range map[string]*string{
		fieldStream: &l.Stream, fieldEntry: &l.Entry, fieldOrigin: &l.Origin, fieldGroup: &l.Group,
		fieldConsumer: &l.Consumer, fieldError: &l.Error, fieldAggregate: &l.Aggregate,
	} {
		*to, _ = f.Get(name)
	}
	l.Function = RetryFunction(f)
	reason, _ := f.Get(fieldReason)
	l.Reason = Reason(reason)
	l.Attempts, l.Replays = int(f.number(fieldAttempts)), int(f.number(fieldReplays))
	l.First, l.Last = f.time(fieldFirst), f.time(fieldLast)
	return l, err
}

// ReadRetry takes an entry of a retry stream apart: the message's own fields, how often
// it was replayed, and its id in the topic.
func ReadRetry(f Fields) (own Fields, replays int, origin string, err error) {
	own, err = unwrap(f)
	origin, _ = f.Get(fieldOrigin)
	return own, int(f.number(fieldReplays)), origin, err
}

// RetryFunction is the function that an entry of a retry stream is for; the zero
// Function where it is for all.
func RetryFunction(f Fields) (fn es.Function) {
	fn.Context, _ = f.Get(fieldContext)
	fn.Processor, _ = f.Get(fieldProcessor)
	fn.Name, _ = f.Get(fieldFunction)
	return fn
}

func (f Fields) number(name string) int64 {
	text, _ := f.Get(name)
	n, _ := strconv.ParseInt(text, 10, 64) // 0 where it is missing
	return n
}

func (f Fields) time(name string) time.Time {
	if ms := f.number(name); ms != 0 {
		return time.UnixMilli(ms).UTC()
	}
	return time.Time{}
}

// wrap is what the fields of a message become in a letter and in a retry stream.
func wrap(own Fields) Fields {
	if len(own)/2 > maxPlain {
		var b strings.Builder
		for _, s := range own {
			b.WriteString(strconv.Itoa(len(s)))
			b.WriteByte(':')
			b.WriteString(s)
		}
		return Fields{fieldPacked, b.String()}
	}
	f := make(Fields, 0, len(own))
	for i := 0; i+1 < len(own); i += 2 {
		f = append(f, prefixOwn+own[i], own[i+1])
	}
	return f
}

// unwrap is the fields of the message in a letter or in an entry of a retry stream.
func unwrap(f Fields) (Fields, error) {
	var own Fields
	for i := 0; i+1 < len(f); i += 2 {
		if f[i] == fieldPacked {
			return unpack(f[i+1])
		}
		if name, ok := strings.CutPrefix(f[i], prefixOwn); ok {
			own = append(own, name, f[i+1])
		}
	}
	return own, nil
}

func unpack(packed string) (Fields, error) {
	var own Fields
	for rest := packed; rest != ""; {
		length, after, ok := strings.Cut(rest, ":")
		n, err := strconv.Atoi(length)
		if !ok || err != nil || n < 0 || n > len(after) {
			return nil, es.Corrupt("packed fields end at byte %d of %d", len(packed)-len(rest), len(packed))
		}
		own, rest = append(own, after[:n]), after[n:]
	}
	if len(own)%2 != 0 {
		return nil, es.Corrupt("packed fields have a name without a value")
	}
	return own, nil
}
