package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
)

// The states of a migration, as its target keeps them.
const (
	stateNone      = ""
	stateCopying   = "copying"
	stateCopied    = "copied"
	stateVerified  = "verified"
	stateFinishing = "finishing"
	stateFinished  = "finished"
)

// step is one run of a step after the audit.
type step struct {
	tally
	name           string
	pace           Pace
	source, target server
	m              *manifest
	meter          *meter
	state          string // as it was when the step began
}

// start reads the manifest and looks at both sides.
func start(ctx context.Context, name string, p Pace, source, target redis.UniversalClient, in io.ReadSeeker) (*step, error) {
	m, err := openManifest(in)
	if err != nil {
		return nil, err
	}
	s := &step{
		name: name, pace: p, source: server{source, p}, target: server{target, p},
		m: m, meter: newMeter(name, p, m.end.Report.Legacy()),
	}
	s.result.Manifest = m.end.Checksum
	at, err := s.source.look(ctx)
	if err != nil {
		return nil, err
	}
	if at.Mode != m.head.Source.Mode || at.Database != m.head.Source.Database {
		return nil, es.Invalid("the manifest is of another place: a %s, database %d", m.head.Source.Mode, m.head.Source.Database)
	}
	if _, err := s.target.look(ctx); err != nil {
		return nil, err
	}
	s.state, err = do(ctx, s.target, func() (string, error) { return target.HGet(ctx, s.marker(), "state").Result() })
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	return s, err
}

func (s *step) marker() string { return rediskey.Migration(s.m.end.Checksum) }

// enter writes the state that the migration is in from now on.
func (s *step) enter(ctx context.Context, state string) error {
	_, err := do(ctx, s.target, func() (int64, error) { return s.target.rdb.HSet(ctx, s.marker(), "state", state).Result() })
	return err
}

// done is what a step returns.
func (s *step) done(err error) (Result, error) {
	s.result.Finished = err == nil
	if err != nil {
		err = fmt.Errorf("%s: %w", s.name, err)
	}
	return s.result, err
}

// each calls f with the records that pass want, as many as fill a page, side by side.
func (s *step) each(ctx context.Context, want func(*record) bool, f func(ctx context.Context, group []*record) error) error {
	p := newPool(ctx, s.pace.parallel())
	err := s.collect(want, func(group []*record, bytes int64) bool {
		return p.run(func(ctx context.Context) error {
			if err := f(ctx, group); err != nil {
				return err
			}
			return s.meter.passed(ctx, len(group), bytes)
		})
	})
	if failed := p.end(); failed != nil {
		return failed
	}
	return err
}

// collect makes groups of records; take reports whether it goes on.
func (s *step) collect(want func(*record) bool, take func(group []*record, bytes int64) bool) error {
	var group []*record
	var bytes int64
	for rec, err := range s.m.records() {
		if err != nil {
			return err
		}
		if !want(rec) {
			continue
		}
		if len(group) > 0 && (bytes+rec.Bytes > pageBytes || len(group) == batchKeys) {
			if !take(group, bytes) {
				return nil
			}
			group, bytes = nil, 0
		}
		group, bytes = append(group, rec), bytes+rec.Bytes
	}
	if len(group) > 0 {
		take(group, bytes)
	}
	return nil
}

// large reports a record that is read by pages.
func (rec *record) large() bool { return rec.Bytes > pageBytes }
