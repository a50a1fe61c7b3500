package recovery

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redisrun"
	"github.com/headwater-go/headwater/lua"
)

// EphemeralPrefix begins the names of groups that end with their only consumer, as
// those of broadcast subscriptions do: [Reap] destroys such a group once no consumer of
// it holds a lease. No other group may have such a name.
const EphemeralPrefix = "headwater:ephemeral:"

// IsEphemeral reports whether a group ends with its consumer, by its name.
func IsEphemeral(group string) bool { return strings.HasPrefix(group, EphemeralPrefix) }

// ReapOptions are the knobs of [Reap].
type ReapOptions struct {
	// DeadFor is for how long a consumer's lease must have run out before it is gone for
	// good; one that left is gone at once. Defaults to 10 minutes.
	DeadFor time.Duration
	// IdleForeign is for how long a consumer that never had a lease of ours, such as a
	// Kotlin node's, must have been idle. Defaults to 24 hours.
	IdleForeign time.Duration
	// DryRun changes nothing, and returns what would go.
	DryRun bool
}

// Member is a consumer of a group.
type Member struct{ Group, Consumer string }

// Reaped is what [Reap] removed.
type Reaped struct {
	Consumers []Member
	// Groups are the ephemeral groups that were destroyed.
	Groups []string
}

// Reap removes, from every group of a topic, the consumers that are gone for good and
// hold no message, and the ephemeral groups that nobody reads, with all their keys. A
// consumer that holds messages stays until others have claimed them. An ephemeral group
// without any lease is given DeadFor to get one.
//
// For each group one script looks and removes: a consumer that comes back in between
// loses nothing. ctx ends it between the groups; what was done until then is returned.
func Reap(ctx context.Context, rdb redis.UniversalClient, topic string, o ReapOptions) (Reaped, error) {
	var done Reaped
	err := checkTopic(topic)
	if err == nil && (o.DeadFor < 0 || o.IdleForeign < 0) {
		err = es.Invalid("a duration is negative")
	}
	var groups []string
	if err == nil {
		groups, err = groupsOf(ctx, rdb, topic)
	}
	for _, group := range groups {
		if err == nil {
			err = reap(ctx, rdb, topic, group, o, &done)
		}
	}
	if err != nil {
		return done, &es.Error{Op: "reap " + clip(topic), Err: err}
	}
	return done, nil
}

// groupsOf are the names of a stream's groups; a stream that is missing has none.
func groupsOf(ctx context.Context, rdb redis.UniversalClient, stream string) ([]string, error) {
	infos, err := redisrun.Do(ctx, 0, func() ([]redis.XInfoGroup, error) { return rdb.XInfoGroups(ctx, stream).Result() })
	if err != nil && strings.Contains(err.Error(), "no such key") { // its first word is ERR
		return nil, nil
	}
	names := make([]string, len(infos))
	for i := range infos {
		names[i] = infos[i].Name
	}
	return names, err
}

func reap(ctx context.Context, rdb redis.UniversalClient, topic, group string, o ReapOptions, done *Reaped) error {
	keys := []string{topic, rediskey.Retry(topic, group), rediskey.Leases(topic, group), rediskey.Failed(topic, group)}
	args := []any{group, ms(o.DeadFor, 10*time.Minute), ms(o.IdleForeign, 24*time.Hour), "", ""}
	if IsEphemeral(group) {
		args[3] = "ephemeral"
	}
	if o.DryRun {
		args[4] = "dry"
	}
	for {
		reply, err := redisrun.Do(ctx, 0, func() (any, error) { return lua.ReapConsumers.Run(ctx, rdb, keys, args...) })
		if err != nil {
			return err
		}
		r := readValues(reply)
		for i := 2; i < len(r); i++ {
			done.Consumers = append(done.Consumers, Member{group, r.text(i)})
		}
		if r.text(1) == "destroyed" {
			done.Groups = append(done.Groups, group)
		}
		if r.text(0) != "more" {
			return nil
		}
	}
}

// ms is d, or its default, as a script takes it.
func ms(d, byDefault time.Duration) string {
	if d == 0 {
		d = byDefault
	}
	return strconv.FormatInt(milliseconds(d), 10)
}
