package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/legacy"
)

const requestsSuffix = ":req_idx"

// measured is what is asked of a key before it is read.
type measured struct {
	typ   *redis.StatusCmd
	end   *redis.DurationCmd
	size  *redis.IntCmd
	own   *redis.IntCmd    // members of the set of requests beside a stream
	owner *redis.StatusCmd // type of the stream beside a set of requests
	count *redis.IntCmd    // members, where nothing else is asked for
}

// measure asks for types, ends and sizes. It keeps what is to be read; the others are
// records that say why not.
func (r *auditor) measure(ctx context.Context, batch []candidate) (keep []candidate, others []*record, err error) {
	asked := make([]measured, len(batch))
	err = r.pipeline(ctx, func(p redis.Pipeliner) {
		for i, c := range batch {
			asked[i] = r.ask(ctx, p, c)
		}
	})
	if err != nil {
		return nil, nil, err
	}
	for i, c := range batch {
		other, err := r.classify(ctx, &c, asked[i])
		switch {
		case err != nil:
			return nil, nil, err
		case other != nil:
			others = append(others, other)
		case c.found.Kind != "":
			keep = append(keep, c)
		}
	}
	return keep, others, nil
}

func (r *auditor) ask(ctx context.Context, p redis.Pipeliner, c candidate) measured {
	m := measured{typ: p.Type(ctx, c.key)}
	if r.KeysOnly {
		m.count = cardinality(ctx, p, c)
		return m
	}
	m.end, m.size = p.PTTL(ctx, c.key), p.MemoryUsage(ctx, c.key)
	switch c.found.Kind {
	case legacy.Events:
		m.own = p.SCard(ctx, c.key+requestsSuffix)
	case legacy.Requests:
		m.owner = p.Type(ctx, strings.TrimSuffix(c.key, requestsSuffix))
	}
	return m
}

// err is what kept the server from an answer, where one is needed.
func (m measured) err() error {
	errs := []error{m.typ.Err()}
	for _, c := range []*redis.IntCmd{m.own, m.count} {
		if c != nil && !isWrongType(c.Err()) {
			errs = append(errs, c.Err())
		}
	}
	if m.end != nil {
		errs = append(errs, m.end.Err())
	}
	if m.owner != nil {
		errs = append(errs, m.owner.Err())
	}
	return errors.Join(errs...)
}

func cardinality(ctx context.Context, p redis.Pipeliner, c candidate) *redis.IntCmd {
	switch c.found.Kind {
	case legacy.Requests, legacy.SharedRequests:
		return p.SCard(ctx, c.key)
	case legacy.Snapshot:
		return p.Exists(ctx, c.key)
	case legacy.Prepare:
		return p.HLen(ctx, c.key)
	}
	return p.ZCard(ctx, c.key)
}

// classify completes c by what the server says of its key, or says why it is not to be
// read. A set of requests whose stream is there is read with the stream: c then has no kind.
func (r *auditor) classify(ctx context.Context, c *candidate, m measured) (*record, error) {
	if err := m.err(); err != nil {
		return nil, r.explain(ctx, fmt.Errorf("%q: %w", c.key, err))
	}
	typ := m.typ.Val()
	if !r.wants(c.found) {
		return r.untouched(r.problem(OtherType, keyText(c.key), "")), nil
	}
	if !utf8.ValidString(c.key) {
		return r.untouched(r.problem(NotUTF8, keyText(c.key), "")), nil
	}
	if typ == "none" || m.end != nil && m.end.Val() == gone {
		return r.untouched(r.problem(Gone, c.key, "it vanished during the audit")), nil
	}
	f, ok := legacy.Recognize(c.key, typ)
	if !ok {
		return r.untouched(r.problem(WrongType, c.key, "it is a "+typ)), nil
	}
	if m.owner != nil && f.Kind == legacy.Requests && m.owner.Val() == "zset" {
		c.found.Kind = ""
		return nil, nil //nolint:nilnil // it is neither kept nor told of
	}
	c.found = f
	if r.KeysOnly {
		c.count = m.count.Val()
		return nil, nil //nolint:nilnil // it is kept
	}
	if c.size = m.size.Val(); m.size.Err() != nil { // the user may not ask: it may be large
		c.size = unknownSize
	}
	if m.own != nil {
		c.own = m.own.Val() * typicalRequest
	}
	if end := m.end.Val(); end != forever {
		c.problems = append(c.problems, r.problem(Expires, c.key, "in "+end.String()))
	}
	return nil, nil //nolint:nilnil // it is kept
}

// keyText is a key as a manifest writes it.
func keyText(key string) string {
	if utf8.ValidString(key) {
		return key
	}
	return fmt.Sprintf("%q", key)
}

// What PTTL answers: for a key that is not there, and for one without an end.
const (
	gone    = -2
	forever = -1
)

// unknownSize is that of a key which is read by pages because it may be large.
const unknownSize = pageBytes + 1

// typicalRequest is about what a request id takes in memory.
const typicalRequest = 64

// wants reports whether a key is of a type that is to be migrated, as far as its name tells.
func (r *auditor) wants(f legacy.Found) bool {
	return len(r.Types) == 0 || f.Kind == legacy.Prepare || slices.ContainsFunc(r.Types, f.Of)
}

// askShared finds out which types have era C's set of requests.
func (r *auditor) askShared(ctx context.Context, batch []candidate) error {
	var ask []string
	r.mu.Lock()
	for _, c := range batch {
		if s := r.stem(c.found.Stem); c.found.Eras&legacy.C != 0 && c.found.Kind == legacy.Events && !s.asked && !slices.Contains(ask, c.found.Stem) {
			ask = append(ask, c.found.Stem)
		}
	}
	r.mu.Unlock()
	for _, name := range ask {
		n, err := do(ctx, r.server, func() (int64, error) { return r.rdb.Exists(ctx, name+":es"+requestsSuffix).Result() })
		if err != nil {
			return err
		}
		r.mu.Lock()
		s := r.stem(name)
		s.asked, s.shared = true, n > 0
		r.mu.Unlock()
	}
	return nil
}

// resolve says whose a document is that stands under a key of c: the aggregate as the
// layout wrote it, and as the canonical keys will. ok is false where the type's name in
// the key is another one.
func (r *auditor) resolve(f legacy.Found, doc es.AggregateID) (source, target es.AggregateID, ok bool) {
	separator := "."
	if f.Eras == legacy.A {
		separator = ":"
	}
	alias, ok := strings.CutSuffix(f.Stem, separator+doc.Type.Name)
	if !ok || alias == "" {
		return doc, doc, false
	}
	if doc.Type.Alias = alias; alias == doc.Type.Context {
		doc.Type.Alias = ""
	}
	source, target = doc, doc
	for _, t := range r.Types {
		if f.Eras == legacy.A && t.Context == doc.Type.Context && t.Name == doc.Type.Name && (alias == t.Context || alias == t.Scope()) {
			target.Type = t
		}
	}
	return source, target, true
}
