package soak

import (
	"fmt"
	"strings"
	"time"

	"github.com/headwater-go/headwater/commandbus"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/eventbus"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/wire"
)

// What every subscription of a soak has: so short that a minute shows many recoveries.
const (
	Lease         = 2 * time.Second
	Sweep         = 500 * time.Millisecond
	Grace         = 5 * time.Second
	MaxDeliveries = 3

	// Aggregates is how many of each type there are.
	Aggregates = 200

	boundedContext = "soak"
)

// Do is the command with a number.
type Do struct{ N int }

// CommandName implements [es.CommandBody].
func (Do) CommandName() string { return "do" }

// Done is the event with a number.
type Done struct{ N int }

// EventName implements [es.EventBody].
func (Done) EventName() string { return "done" }

// Types are the aggregate types whose messages are sent: two, so that a cluster spreads
// their topics.
var Types = []es.AggregateType{{Context: boundedContext, Name: "left"}, {Context: boundedContext, Name: "right"}}

// Codec knows the messages of all types.
func Codec() es.Codec {
	var tables []es.Types
	for _, t := range Types {
		tables = append(tables, es.Types{Aggregate: t, Commands: []es.Type{{Body: Do{}}}, Events: []es.Type{{Body: Done{}}}})
	}
	return wire.JSON(tables...)
}

// The groups: one carries out commands, two get every commit.
var (
	CommandGroup = commandbus.Group(boundedContext)
	EventGroups  = []string{eventbus.Group(boundedContext, "ProjectionDispatcher"), eventbus.Group(boundedContext, "StatelessSagaDispatcher")}
)

// Groups are the groups of each topic.
func Groups() map[string][]string {
	groups := map[string][]string{}
	for _, t := range Types {
		groups[rediskey.Command(t)] = []string{CommandGroup}
		groups[rediskey.Event(t)] = EventGroups
	}
	return groups
}

func subscription(group string) es.Subscription {
	return es.Subscription{
		Group: group, Aggregates: Types, Start: es.FromBeginning, Workers: 16, MaxDeliveries: MaxDeliveries,
		Backoff: 50 * time.Millisecond, MaxBackoff: time.Second, Lease: Lease, Sweep: Sweep, Grace: Grace,
	}
}

// Open reads a message of a topic: its number, and its aggregate.
func Open(codec es.Codec, topic string, data []byte) (n int, aggregate string, err error) {
	if strings.HasSuffix(topic, ":command") {
		c, err := codec.DecodeCommand(data)
		body, _ := c.Body.(Do)
		return body.N, c.Aggregate.ID, err
	}
	c, err := codec.DecodeCommit(data)
	if err != nil || len(c.Events) == 0 {
		return 0, "", err
	}
	body, _ := c.Events[0].Body.(Done)
	return body.N, c.Aggregate.ID, nil
}

// Fate is what becomes of a message in the hands of its handlers.
type Fate string

// The fates there are. Only those of commands kill, so that a process which reads
// commits alone lives on.
const (
	Well      Fate = "well"
	Flaky     Fate = "flaky"     // fails once or twice, and is handled then
	Panics    Fate = "panics"    // panics once
	Slow      Fate = "slow"      // takes longer than a lease
	Poison    Fate = "poison"    // always fails
	Permanent Fate = "permanent" // fails for good at once
	Crash     Fate = "crash"     // kills the process that reads it, and no other
	Killer    Fate = "killer"    // kills every process that handles it
)

// killer is the one number that kills; it is even, so a command.
const killer = 1200

// IsCommand says whether a number is sent as a command or as a commit.
func IsCommand(n int) bool { return n%2 == 0 }

// FateOf is the fate of a number.
func FateOf(n int) Fate {
	switch {
	case n == killer:
		return Killer
	case IsCommand(n) && n%1102 == 0:
		return Crash
	case n%211 == 0:
		return Poison
	case n%223 == 0:
		return Permanent
	case n%197 == 0:
		return Slow
	case n%101 == 0:
		return Panics
	case n%53 == 0:
		return Flaky
	}
	return Well
}

// Cause is the text of the error with which a number fails.
func Cause(n int) string { return fmt.Sprintf("number %d was made to fail", n) }
