package redisstream

import (
	"time"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/recovery"
)

// entry is a message that this process holds.
type entry struct {
	topic  *topic
	stream string // the topic, or what was replayed to the group
	id     string
	size   int    // in bytes
	key    string // entries of one key follow each other
	msg    any
	bad    error // why it is to be buried
	reason recovery.Reason
	// aggregate is what the decoder said of it: the id of whom it is about.
	aggregate string
	// failed are the functions that are left, where a handler consists of several.
	failed []es.FunctionFailure
	// failures is how often it was handled in vain, as far as is known, and cause why a
	// recovered entry was the last time.
	failures int
	cause    string
	// deliveries of a recovered entry are those of the consumers that had it before.
	deliveries int
	// recovered entries were not read by this process.
	recovered bool
	raised    bool // its delivery was counted already
	// lapses are those of the topic's lease before this process asked for it.
	lapses int64
}

func (e *entry) delivery() es.Delivery {
	return es.Delivery{
		Topic: e.topic.name, ID: e.id, Group: e.topic.group.Name, Attempt: e.failures + 1,
		Sent: sent(e.id), Recovered: e.recovered, Replayed: e.stream != e.topic.name, Failed: e.failed,
	}
}

// meantFor keeps the function that a replayed entry is for.
func (e *entry) meantFor(f es.Function) {
	if f != (es.Function{}) {
		e.failed = []es.FunctionFailure{{Function: f}}
	}
}

// sent is the time that an entry's id begins with.
func sent(id string) time.Time {
	var ms int64
	for i := 0; i < len(id) && id[i] >= '0' && id[i] <= '9'; i++ {
		ms = ms*10 + int64(id[i]-'0')
	}
	return time.UnixMilli(ms).UTC()
}
