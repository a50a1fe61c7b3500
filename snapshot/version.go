package snapshot

import (
	"bytes"
	"context"
	"errors"
	"strconv"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redisrun"
)

// headBytes is how much of a snapshot is read in the hope for its version.
const headBytes = 4096

// Version implements [es.SnapshotStore]. It is what [Store.Save] compares, whoever
// wrote it: of a snapshot in the usual form no more than the head is read, and whether
// [Store.Load] can use the rest is not looked at.
func (s *Store[S]) Version(ctx context.Context, id es.AggregateID) (int, error) {
	version, err := s.version(ctx, id)
	return version, fail("read snapshot version", id, 0, err)
}

func (s *Store[S]) version(ctx context.Context, id es.AggregateID) (int, error) {
	if err := id.Validate(); err != nil {
		return 0, err
	}
	head, err := redisrun.Do(ctx, 0, func() ([]byte, error) {
		return s.rdb.GetRange(ctx, rediskey.Snapshot(id), 0, headBytes-1).Bytes()
	})
	if err != nil {
		return 0, wrongType(err)
	}
	if v, ok := headVersion(head); ok {
		return v, nil
	}
	raw, err := s.get(ctx, id)
	if errors.Is(err, es.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	m, err := s.codec.DecodeSnapshot(raw, nil)
	if err == nil {
		err = checkVersion(m.Version)
	}
	if err != nil {
		return 0, unreadable(raw, err)
	}
	return m.Version, nil
}

// The head of a snapshot, as lua/save_snapshot.lua knows it too: these texts, each
// followed by one without quotes and backslashes, then the version.
var headFields = [][]byte{
	[]byte(`{"contextName":"`), []byte(`,"aggregateName":"`), []byte(`,"aggregateId":"`),
	[]byte(`,"tenantId":"`), []byte(`,"ownerId":"`), []byte(`,"spaceId":"`),
}

// headVersion reads the version without decoding; false where the head does not show it.
func headVersion(head []byte) (int, bool) {
	if rest, packed := bytes.CutPrefix(head, []byte("\xC1HW")); packed {
		if len(rest) < 11 {
			return 0, false
		}
		return parseVersion(rest[1:11])
	}
	for _, field := range headFields {
		rest, ok := bytes.CutPrefix(head, field)
		if !ok {
			return 0, false
		}
		end := bytes.IndexAny(rest, `"\`)
		if end < 0 || rest[end] != '"' {
			return 0, false
		}
		head = rest[end+1:]
	}
	rest, ok := bytes.CutPrefix(head, []byte(`,"version":`))
	if !ok {
		return 0, false
	}
	digits, _, ok := bytes.Cut(rest, []byte{','})
	if !ok {
		return 0, false
	}
	return parseVersion(digits)
}

func parseVersion(digits []byte) (int, bool) {
	v, err := strconv.ParseUint(string(digits), 10, 31)
	return int(v), err == nil
}
