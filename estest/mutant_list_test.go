package estest_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/estest"
	"github.com/headwater-go/headwater/memory"
)

var mutants = map[string]mutant{
	"a lost reply is a conflict": appender("STO-02 the very same commits again are a success",
		func(s *memory.EventStore, ctx context.Context, o es.AppendOptions, commits []es.Commit) (es.Appended, error) {
			done, err := s.Append(ctx, o, commits...)
			if done.Same {
				return es.Appended{}, es.ErrVersionConflict
			}
			return done, err
		}),
	"the same version is the same commit": appender("a second first commit conflicts",
		func(s *memory.EventStore, ctx context.Context, o es.AppendOptions, commits []es.Commit) (es.Appended, error) {
			done, err := s.Append(ctx, o, commits...)
			if errors.Is(err, es.ErrVersionConflict) {
				return es.Appended{Same: true}, nil
			}
			return done, err
		}),
	"a conflict is answered before a known request": appender("STO-03 a known request is refused at every version",
		func(s *memory.EventStore, ctx context.Context, o es.AppendOptions, commits []es.Commit) (es.Appended, error) {
			if last, err := s.Last(ctx, commits[0].Aggregate); err == nil && last.Version != commits[0].Version-1 {
				return es.Appended{}, es.ErrVersionConflict
			}
			return s.Append(ctx, o, commits...)
		}),
	"commits are stored one by one": appender("several commits are stored all or none",
		func(s *memory.EventStore, ctx context.Context, o es.AppendOptions, commits []es.Commit) (done es.Appended, err error) {
			for i := range commits {
				if done, err = s.Append(ctx, o, commits[i]); err != nil {
					return done, err
				}
			}
			return done, nil
		}),
	"a conflict takes the next version": appender("STO-01 a hundred writers of one version have one winner",
		func(s *memory.EventStore, ctx context.Context, o es.AppendOptions, commits []es.Commit) (es.Appended, error) {
			done, err := s.Append(ctx, o, commits...)
			for errors.Is(err, es.ErrVersionConflict) && len(commits) == 1 {
				commits[0].Version++
				done, err = s.Append(ctx, o, commits...)
			}
			return done, err
		}),
	"errors without a place": appender("a version that is taken or skipped conflicts",
		func(s *memory.EventStore, ctx context.Context, o es.AppendOptions, commits []es.Commit) (es.Appended, error) {
			done, err := s.Append(ctx, o, commits...)
			return done, bare(err)
		}),
	"the context is forgotten": appender("a closed context",
		func(s *memory.EventStore, ctx context.Context, o es.AppendOptions, commits []es.Commit) (es.Appended, error) {
			return s.Append(context.WithoutCancel(ctx), o, commits...)
		}),
	"the tenant is forgotten": appender("KEY-05 an id belongs to one tenant",
		func(s *memory.EventStore, ctx context.Context, o es.AppendOptions, commits []es.Commit) (es.Appended, error) {
			for i := range commits {
				commits[i].Aggregate.Tenant = es.DefaultTenant
			}
			return s.Append(ctx, o, commits...)
		}),
	"ids are trimmed": appender("KEY-04 odd ids live one full life",
		func(s *memory.EventStore, ctx context.Context, o es.AppendOptions, commits []es.Commit) (es.Appended, error) {
			for i := range commits {
				commits[i].Aggregate = trimmed(commits[i].Aggregate)
			}
			return s.Append(ctx, o, commits...)
		}),
	"names are joined": appender("KEY-10 types and contexts are worlds of their own",
		func(s *memory.EventStore, ctx context.Context, o es.AppendOptions, commits []es.Commit) (es.Appended, error) {
			for i := range commits {
				t := &commits[i].Aggregate.Type
				t.Context, t.Alias, t.Name = "joined", "", t.Context+"."+t.Name
			}
			return s.Append(ctx, o, commits...)
		}),
	"numbers pass through a double": loader("JSON-02 integers come back exactly", func(c es.Commit) *es.Commit {
		for i, e := range c.Events {
			if body, ok := e.Body.(estest.Changed); ok {
				body.Number = int64(float64(body.Number))
				c.Events[i].Body = body
			}
		}
		return &c
	}),
	"text is cut at a NUL": loader("JSON-13 texts come back exactly", func(c es.Commit) *es.Commit {
		for i, e := range c.Events {
			if body, ok := e.Body.(estest.Changed); ok {
				body.Data, _, _ = strings.Cut(body.Data, "\x00")
				c.Events[i].Body = body
			}
		}
		return &c
	}),
	"a page is all": loader("STO-13 long streams load whole", func(c es.Commit) *es.Commit {
		if c.Version > 1000 {
			return nil
		}
		return &c
	}),
	"the header is sorted": loader("headers keep their order", func(c es.Commit) *es.Commit {
		for i := range c.Header {
			for j := range i {
				if c.Header[j].Key > c.Header[i].Key {
					c.Header[i], c.Header[j] = c.Header[j], c.Header[i]
				}
			}
		}
		return &c
	}),
	"the documented cursor skips": scanner("KEY-04 all ids, in the order of their UTF-16 units",
		func(s *memory.EventStore, ctx context.Context, t es.AggregateType, after string) iter.Seq2[es.AggregateID, error] {
			if after == "" {
				after = "(0)"
			}
			return s.Scan(ctx, t, after)
		}),
	"code points are sorted": scanner("KEY-04 all ids, in the order of their UTF-16 units",
		func(s *memory.EventStore, ctx context.Context, t es.AggregateType, after string) iter.Seq2[es.AggregateID, error] {
			return sortedBy(s.Scan(ctx, t, after), func(a, b es.AggregateID) int { return strings.Compare(a.ID, b.ID) })
		}),
	"the cursor counts": scanner("after any cursor, known or not",
		func(s *memory.EventStore, ctx context.Context, t es.AggregateType, after string) iter.Seq2[es.AggregateID, error] {
			return s.Scan(ctx, t, strings.TrimSuffix(after, "b"))
		}),
	"a repeat may always publish": outbox("STO-02 the same again is answered by the note", func(b badOutbox) badOutbox {
		b.append = func(a es.Appended, o es.AppendOptions) es.Appended {
			a.Publish = a.Publish || a.Same && o.Note
			return a
		}
		return b
	}),
	"everybody may publish": outbox("LOST-09 a note stands until its commits are published", func(b badOutbox) badOutbox {
		b.append = func(a es.Appended, o es.AppendOptions) es.Appended {
			a.Publish = o.Note
			return a
		}
		return b
	}),
	"a note is moved from anywhere": outbox("a note elsewhere is left as it is", func(b badOutbox) badOutbox {
		b.published = func(s *memory.EventStore, ctx context.Context, id es.AggregateID, from, through int) (int, error) {
			for note, err := range s.Unpublished(ctx, id.Type) {
				if err == nil && note.Aggregate == id {
					from = note.Version
				}
			}
			return s.Published(ctx, id, from, max(from, through))
		}
		return b
	}),
	"a note is removed with its first commit": outbox("publishers that follow the notes publish all in order", func(b badOutbox) badOutbox {
		b.published = func(s *memory.EventStore, ctx context.Context, id es.AggregateID, from, _ int) (int, error) {
			return s.Published(ctx, id, from, es.MaxVersion)
		}
		return b
	}),
	"the tenant of a snapshot is forgotten": snapshots("KEY-05 aggregates are worlds of their own",
		func(s *memory.SnapshotStore[estest.State]) es.SnapshotStore[estest.State] {
			return badSnapshots{SnapshotStore: s, edit: func(s *es.Snapshot[estest.State]) { s.Aggregate.Tenant = "t2" }}
		}),
	"the first snapshot stays": snapshots("an equal version replaces",
		func(s *memory.SnapshotStore[estest.State]) es.SnapshotStore[estest.State] {
			return badSnapshots{SnapshotStore: s, edit: func(snapshot *es.Snapshot[estest.State]) {
				if v, err := s.Version(context.Background(), snapshot.Aggregate); err == nil && v == snapshot.Version && v > 0 {
					snapshot.Version--
				}
			}}
		}),
	"anything is replaced": snapshots("replacing needs the very bytes",
		func(s *memory.SnapshotStore[estest.State]) es.SnapshotStore[estest.State] {
			return badSnapshots{SnapshotStore: s, replace: func(s *memory.SnapshotStore[estest.State], ctx context.Context, _ []byte, snapshot es.Snapshot[estest.State]) (bool, error) {
				return true, s.Save(ctx, snapshot)
			}}
		}),
	"reprepare creates": prepareKey("texts/PREP-05 a free key is not reprepared",
		func(p *memory.PrepareKey[string]) es.PrepareKey[string] {
			return badPrepare{PrepareKey: p, reprepare: func(p *memory.PrepareKey[string], ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
				done, err := p.Reprepare(ctx, key, value, ttl)
				if err == nil && !done {
					return p.Prepare(ctx, key, value, ttl)
				}
				return done, err
			}}
		}),
	"what has ended is still got": prepareKey("texts/PREP-02 what has ended is free",
		func(p *memory.PrepareKey[string]) es.PrepareKey[string] {
			return badPrepare{PrepareKey: p, get: func(p *memory.PrepareKey[string], ctx context.Context, key string) (string, error) {
				held, err := p.GetValue(ctx, key)
				return held.Value, err
			}}
		}),
	"look, then prepare": prepareKey("PREP-13 one of many prepares",
		func(p *memory.PrepareKey[string]) es.PrepareKey[string] {
			return badPrepare{PrepareKey: p, prepare: func(p *memory.PrepareKey[string], ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
				if _, err := p.Get(ctx, key); err == nil {
					return false, nil
				}
				time.Sleep(time.Millisecond) // the race that the mutant is about
				_, err := p.Prepare(ctx, key, value, ttl)
				return err == nil, err
			}}
		}),
	"a past end is no error": prepareKey("PREP-10 ends that cannot be",
		func(p *memory.PrepareKey[string]) es.PrepareKey[string] {
			return badPrepare{PrepareKey: p, prepare: func(p *memory.PrepareKey[string], ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
				if ttl < 0 {
					return true, nil
				}
				return p.Prepare(ctx, key, value, ttl)
			}}
		}),
}
