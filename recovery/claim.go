package recovery

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/lua"
)

// Entry is a pending entry that this consumer has taken over, or found again. Call
// [Group.Raise] just before handling it.
type Entry struct {
	ID string
	// Fields are the message's own, also where it comes from a retry stream.
	Fields Fields
	// Function is the one that an entry of a retry stream is for, where it is for one.
	Function es.Function
	// Deliveries is the server's count, which taking it over has not raised.
	Deliveries int
	// Failures counts what [Group.Fail] counted, in all consumers; First is when it
	// failed first, and Cause why it failed last. Zero where it never did.
	Failures int
	First    time.Time
	Cause    string
	// Owner is who had it before: this consumer itself where it was found again.
	Owner string
	// Replays and Origin are those of a [Letter]; set for a retry stream's entries.
	Replays int
	Origin  string
}

// claim claims entries of one consumer and hands them to take. It says whether claiming
// from that consumer may go on.
func (s *sweep) claim(ctx context.Context, from owner, ids []string) (taken []Entry, goOn bool, err error) {
	idle := ""
	if from.state == isAbsent {
		idle = strconv.FormatInt(s.minIdleForeign().Milliseconds(), 10)
	}
	keys := []string{s.stream, rediskey.Leases(s.Topic, s.Name)}
	args := []any{s.Name, s.Consumer, from.name, idle}
	for _, id := range ids {
		args = append(args, id)
	}
	reply, err := s.Group.run(ctx, lua.ClaimEntries, keys, args...)
	if err != nil {
		return nil, false, err
	}
	if reply == "late" || reply == "alive" {
		s.swept.Waits = s.swept.Waits || reply == "late"
		return nil, false, nil
	}
	entries, gone, err := readClaimed(reply, from.name)
	if err != nil {
		return nil, false, err
	}
	s.swept.Gone = append(s.swept.Gone, gone...)
	if len(entries) == 0 {
		return nil, true, nil
	}
	taken, err = s.fetch(ctx, entries)
	if err != nil {
		if from.name != s.Consumer { // they are its own now, and known not to be held
			for _, e := range entries {
				s.suspects = append(s.suspects, e.ID)
			}
		}
		return nil, false, err
	}
	s.left -= len(taken)
	if len(taken) > 0 {
		s.take(taken)
	}
	return taken, true, nil
}

func readClaimed(reply any, owner string) (entries []Entry, gone []string, err error) {
	lists := readValues(reply)
	if len(lists) != 2 {
		return nil, nil, unexpected(reply)
	}
	claimed := readValues(lists[0])
	for i := 0; i < len(claimed); i += 2 {
		entries = append(entries, Entry{ID: claimed.text(i), Deliveries: int(claimed.number(i + 1)), Owner: owner})
	}
	gone, err = textsOf(lists[1])
	return entries, gone, err
}

// fetch reads the records and the failures of claimed entries. What 6.2 has claimed
// although its record is gone is acknowledged. Nothing is read inside a script, where
// many large records would hold the server.
func (s *sweep) fetch(ctx context.Context, claimed []Entry) ([]Entry, error) {
	records := make([]*redis.Cmd, len(claimed))
	fields := make([]string, len(claimed))
	var failures *redis.SliceCmd
	_, err := do(ctx, s.Group, func() ([]redis.Cmder, error) {
		return s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, e := range claimed {
				fields[i] = s.failure(s.stream, e.ID)
				records[i] = p.Do(ctx, "XRANGE", s.stream, e.ID, e.ID)
			}
			failures = p.HMGet(ctx, rediskey.Failed(s.Topic, s.Name), fields...)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	var found []Entry
	var gone []string
	for i, e := range claimed {
		reply := readValues(records[i].Val())
		if len(reply) == 0 {
			gone = append(gone, e.ID)
			continue
		}
		record := readValues(reply[0])
		if len(record) != 2 {
			return nil, unexpected(reply)
		}
		if e.Fields, err = textsOf(record[1]); err != nil {
			return nil, err
		}
		if s.stream != s.Topic {
			// Fields that cannot be unpacked are none: the message is undecodable then.
			e.Function = RetryFunction(e.Fields)
			e.Fields, e.Replays, e.Origin, _ = ReadRetry(e.Fields)
		}
		e.Failures, e.First, e.Cause = readFailures(values(failures.Val()).text(i))
		found = append(found, e)
	}
	if len(gone) > 0 {
		if _, err := s.Ack(ctx, s.stream, gone); err != nil {
			return nil, err
		}
		s.swept.Gone = append(s.swept.Gone, gone...)
	}
	return found, nil
}
