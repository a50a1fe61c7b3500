package otel

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/metric"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/recovery"
)

// patience is how long one collection waits for Redis.
const patience = 2 * time.Second

// groups are those that this process subscribes to.
type groups struct {
	rdb    redis.UniversalClient
	health es.Health

	mu  sync.Mutex
	all map[string]map[string]int // by topic and group: how many consumers here

	lag, pending, healthy metric.Int64ObservableGauge
	oldest                metric.Float64ObservableGauge
}

func newGroups(rdb redis.UniversalClient) *groups {
	return &groups{rdb: rdb, all: map[string]map[string]int{}}
}

func (g *groups) observe(ctx context.Context, o es.Observation) {
	g.health.Observe(ctx, o)
	switch o := o.(type) {
	case es.Subscribed:
		g.add(o.Topic, o.Group, 1)
	case es.Unsubscribed:
		g.add(o.Topic, o.Group, -1)
	}
}

func (g *groups) add(topic, group string, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all[topic] == nil {
		g.all[topic] = map[string]int{}
	}
	if g.all[topic][group] += n; g.all[topic][group] <= 0 {
		delete(g.all[topic], group)
	}
	if len(g.all[topic]) == 0 {
		delete(g.all, topic)
	}
}

// subscribed is a copy of what is subscribed to.
func (g *groups) subscribed() map[string][]string {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := map[string][]string{}
	for topic, groups := range g.all {
		for group := range groups {
			all[topic] = append(all[topic], group)
		}
	}
	return all
}

func (g *groups) register(meter metric.Meter) (metric.Registration, error) {
	var errs [4]error
	g.healthy, errs[0] = meter.Int64ObservableGauge("headwater.subscription.healthy", metric.WithUnit("1"),
		metric.WithDescription("1 where all of this process's subscriptions of the group work on the topic, else 0."))
	g.lag, errs[1] = meter.Int64ObservableGauge("headwater.group.lag", metric.WithUnit("{message}"),
		metric.WithDescription("Messages that the group has not read; absent where it is not known."))
	g.pending, errs[2] = meter.Int64ObservableGauge("headwater.group.pending", metric.WithUnit("{message}"),
		metric.WithDescription("Messages that the group has read and not acknowledged."))
	g.oldest, errs[3] = meter.Float64ObservableGauge("headwater.group.oldest_pending", metric.WithUnit("s"),
		metric.WithDescription("How long ago the oldest pending message was written; absent where there is none."))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	return meter.RegisterCallback(g.collect, g.healthy, g.lag, g.pending, g.oldest)
}

func (g *groups) collect(ctx context.Context, o metric.Observer) error {
	all := g.subscribed()
	g.collectHealth(o, all)
	if g.rdb == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var errs []error
	for topic, groups := range all {
		if err := g.ask(ctx, o, topic, groups); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (g *groups) collectHealth(o metric.Observer, all map[string][]string) {
	type key struct{ topic, group string }
	bad := map[key]bool{}
	for _, p := range g.health.Problems() {
		bad[key{p.Topic, groupLabel(p.Group)}] = true
	}
	for topic, groups := range all {
		for _, group := range groups {
			one := int64(1)
			if bad[key{topic, groupLabel(group)}] {
				one = 0
			}
			o.ObserveInt64(g.healthy, one, of(topic, group))
		}
	}
}

// ask asks for the groups of a topic. Those of broadcasts are one for each process and
// would be one series: they are left out.
func (g *groups) ask(ctx context.Context, o metric.Observer, topic string, names []string) error {
	wanted := map[string]bool{}
	for _, name := range names {
		if !recovery.IsEphemeral(name) {
			wanted[name] = true
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	infos, err := g.rdb.XInfoGroups(ctx, topic).Result()
	var reply redis.Error
	if errors.As(err, &reply) && reply.Error() == "ERR no such key" {
		return nil // there is nothing to say of it yet
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, info := range infos {
		if wanted[info.Name] {
			errs = append(errs, g.say(ctx, o, topic, info))
		}
	}
	return errors.Join(errs...)
}

func (g *groups) say(ctx context.Context, o metric.Observer, topic string, info redis.XInfoGroup) error {
	o.ObserveInt64(g.pending, info.Pending, of(topic, info.Name))
	lag, known, err := g.lagOf(ctx, topic, info)
	if known {
		o.ObserveInt64(g.lag, lag, of(topic, info.Name))
	}
	if err != nil || info.Pending == 0 {
		return err
	}
	age, found, err := g.age(ctx, topic, info.Name)
	if found {
		o.ObserveFloat64(g.oldest, age.Seconds(), of(topic, info.Name))
	}
	return err
}

// lagOf is the lag of a group, where it is known. A server before 7.0 does not say, which
// the client takes for 0 of 0 entries read; who has been given the last entry lags by none.
func (g *groups) lagOf(ctx context.Context, topic string, info redis.XInfoGroup) (lag int64, known bool, err error) {
	if info.Lag > 0 || info.Lag == 0 && info.EntriesRead > 0 {
		return info.Lag, true, nil
	}
	stream, err := g.rdb.XInfoStream(ctx, topic).Result()
	if err != nil {
		return 0, false, err
	}
	return 0, stream.LastGeneratedID == info.LastDeliveredID, nil
}

// age is how long ago the oldest pending message was written, by the server's clock.
func (g *groups) age(ctx context.Context, topic, group string) (age time.Duration, found bool, err error) {
	pending, err := g.rdb.XPending(ctx, topic, group).Result()
	if err != nil || pending.Count == 0 {
		return 0, false, err
	}
	now, err := g.serverTime(ctx, topic)
	if err != nil {
		return 0, false, err
	}
	text, _, _ := strings.Cut(pending.Lower, "-")
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, false, err
	}
	return max(0, now.Sub(time.UnixMilli(ms))), true, nil
}

// serverTime is the clock of the master that has the topic, which made its ids.
func (g *groups) serverTime(ctx context.Context, topic string) (time.Time, error) {
	if cluster, ok := g.rdb.(*redis.ClusterClient); ok {
		node, err := cluster.MasterForKey(ctx, topic)
		if err != nil {
			return time.Time{}, err
		}
		return node.Time(ctx).Result()
	}
	return g.rdb.Time(ctx).Result()
}
