// Package doctor looks for what is wrong with the servers, the streams and the stores, and
// says it with a code that has a page.
package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/cmd/headwater/internal/inspect"
)

// Level is how bad a finding is.
type Level string

// The levels.
const (
	Error   Level = "error"   // something is lost or stands still, or soon will
	Warning Level = "warning" // it is likely to go wrong some day
	Note    Level = "note"    // good to know
	Unknown Level = "unknown" // it could not be looked at
)

// Finding is one thing that is wrong.
type Finding struct {
	Code  string `json:"code"`
	Level Level  `json:"level"`
	// Where is a server, a topic, a group or an aggregate type; "" = all of it.
	Where string `json:"where,omitempty"`
	Text  string `json:"text"`
	// Fixed says what the fix did.
	Fixed string `json:"fixed,omitempty"`
	fix   func(context.Context) (string, error)
}

// Options are the knobs of [Look].
type Options struct {
	// Full looks at every key and every aggregate, not at some.
	Full bool
	// Fix does what is safe.
	Fix bool
}

// visit is one look at everything.
type visit struct {
	Options
	rdb      redis.UniversalClient
	findings []Finding
	nodes    []node
	topics   []string
	streams  []inspect.Stream
	groups   []inspect.Group
}

// node is what a server says of itself.
type node struct {
	inspect.Node
	info inspect.Info
}

// Look makes all checks. What cannot be looked at is a finding too.
func Look(ctx context.Context, rdb redis.UniversalClient, o Options) ([]Finding, error) {
	v := &visit{Options: o, rdb: rdb}
	if err := v.read(ctx); err != nil {
		return nil, err
	}
	for _, check := range []func(context.Context){
		v.memory, v.persistence, v.replicas, v.version, v.connections, v.cluster, v.clocks,
		v.retention, v.readers, v.deadLetters, v.notes, v.reservations, v.legacy, v.index, v.rights,
	} {
		check(ctx)
		if ctx.Err() != nil {
			return v.findings, ctx.Err()
		}
	}
	slices.SortStableFunc(v.findings, func(a, b Finding) int {
		return slices.Index(order, a.Level) - slices.Index(order, b.Level)
	})
	if o.Fix {
		for i := range v.findings {
			if f := &v.findings[i]; f.fix != nil {
				var err error
				if f.Fixed, err = f.fix(ctx); err != nil {
					f.Fixed = "not fixed: " + err.Error()
				}
			}
		}
	}
	return v.findings, nil
}

var order = []Level{Error, Unknown, Warning, Note}

func (v *visit) read(ctx context.Context) error {
	err := inspect.EachNode(ctx, v.rdb, func(ctx context.Context, n inspect.Node) error {
		info, err := inspect.ReadInfo(ctx, n.Client)
		if err != nil {
			v.unable(n.Addr, "INFO", err)
		}
		v.nodes = append(v.nodes, node{n, info})
		return nil
	})
	if err != nil {
		return err
	}
	if v.topics, err = inspect.TopicsOf(ctx, v.rdb); err != nil {
		v.unable("", "the index of topics", err)
	}
	for _, topic := range v.topics {
		s, err := inspect.ReadStream(ctx, v.rdb, topic)
		if err != nil {
			v.unable(topic, "the stream", err)
			continue
		}
		groups, err := inspect.ReadGroups(ctx, v.rdb, topic)
		if err != nil {
			v.unable(topic, "the groups", err)
		}
		v.streams, v.groups = append(v.streams, s), append(v.groups, groups...)
	}
	return nil
}

func (v *visit) add(code string, level Level, where, format string, args ...any) *Finding {
	v.findings = append(v.findings, Finding{Code: code, Level: level, Where: where, Text: fmt.Sprintf(format, args...)})
	return &v.findings[len(v.findings)-1]
}

// unable tells what could not be looked at.
func (v *visit) unable(where, what string, err error) {
	v.add("HW000", Unknown, where, "%s: %v", what, err)
}

// config is a setting; not ok where the server does not tell.
func (v *visit) config(ctx context.Context, n node, name string) (string, bool) {
	values, err := n.Client.ConfigGet(ctx, name).Result()
	if err != nil {
		v.unable(n.Addr, "setting "+name, err)
		return "", false
	}
	value, ok := values[name]
	return strings.TrimSpace(value), ok
}
