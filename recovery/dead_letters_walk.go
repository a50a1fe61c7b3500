package recovery

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redisrun"
)

// lettersPage is how many letters one command reads.
const lettersPage = 50

// walk goes through the letters of several topics in the order of their ids.
type walk struct {
	rdb         redis.UniversalClient
	newestFirst bool
	sources     []*source
}

// source is the letters of one topic.
type source struct {
	topic string
	// from and to are the bounds of what is not read yet, as XRANGE takes them.
	from, to string
	page     []entry
	ended    bool
}

// newWalk begins after a letter, or with the first where that is Letter{}.
func newWalk(rdb redis.UniversalClient, topics []string, newestFirst bool, after Letter) (*walk, error) {
	w := &walk{rdb: rdb, newestFirst: newestFirst}
	for _, topic := range topics {
		s := &source{topic: topic, from: "-", to: "+"}
		if newestFirst {
			s.from, s.to = s.to, s.from
		}
		w.sources = append(w.sources, s)
		if after.ID == "" {
			continue
		}
		if _, err := parseID(after.ID); err != nil {
			return w, err
		}
		// Letters of one id are in the order of their topics.
		if s.from = after.ID; topic <= after.Topic {
			s.from = "(" + after.ID
		}
	}
	return w, nil
}

// next is the next letter; not ok after the last.
func (w *walk) next(ctx context.Context) (l Letter, ok bool, err error) {
	var best *source
	for _, s := range w.sources {
		if err := w.fill(ctx, s); err != nil {
			return Letter{}, false, err
		}
		if len(s.page) > 0 && (best == nil || w.before(s, best)) {
			best = s
		}
	}
	if best == nil {
		return Letter{}, false, nil
	}
	e := best.page[0]
	best.page = best.page[1:]
	l, err = readLetter(best.topic, e.id, e.fields)
	if err != nil {
		l.Fields = nil // the rest of it can be read
	}
	return l, true, nil
}

// fill reads the next page of a source that has none.
func (w *walk) fill(ctx context.Context, s *source) (err error) {
	if len(s.page) > 0 || s.ended {
		return nil
	}
	command := "XRANGE"
	if w.newestFirst {
		command = "XREVRANGE"
	}
	s.page, err = readEntries(ctx, w.rdb, command, rediskey.DeadLetters(s.topic), s.from, s.to, lettersPage)
	if s.ended = len(s.page) < lettersPage; !s.ended {
		s.from = "(" + s.page[len(s.page)-1].id
	}
	return err
}

func (w *walk) before(a, b *source) bool {
	order := a.page[0].at.compare(b.page[0].at)
	if w.newestFirst {
		order = -order
	}
	return order < 0 || order == 0 && a.topic < b.topic
}

// entry is an entry of a stream.
type entry struct {
	id     string
	at     entryID
	fields Fields
}

// readEntries reads a range with all its fields in order, which go-redis's own type,
// a map, does not keep.
func readEntries(ctx context.Context, rdb redis.UniversalClient, command, stream, from, to string, count int) ([]entry, error) {
	reply, err := redisrun.Do(ctx, 0, func() ([]any, error) {
		return rdb.Do(ctx, command, stream, from, to, "COUNT", count).Slice()
	})
	if err != nil {
		return nil, err
	}
	entries := make([]entry, 0, len(reply))
	for _, r := range reply {
		e := readValues(r)
		at, err := parseID(e.text(0))
		if err != nil || len(e) != 2 {
			return nil, es.Corrupt("%s answers %v", command, r)
		}
		names := readValues(e[1])
		fields := make(Fields, len(names))
		for i := range names {
			fields[i] = names.text(i)
		}
		entries = append(entries, entry{e.text(0), at, fields})
	}
	return entries, nil
}

// entryID is the id of a stream's entry, in numbers.
type entryID struct{ ms, sequence uint64 }

// parseID takes a whole id; anything else, such as the signs that XRANGE takes, is an
// [es.ErrInvalid].
func parseID(id string) (entryID, error) {
	first, second, ok := strings.Cut(id, "-")
	ms, err1 := strconv.ParseUint(first, 10, 64)
	sequence, err2 := strconv.ParseUint(second, 10, 64)
	if !ok || err1 != nil || err2 != nil {
		return entryID{}, es.Invalid("%q is no id of a stream's entry", id)
	}
	return entryID{ms, sequence}, nil
}

func (i entryID) compare(o entryID) int {
	return cmp.Or(cmp.Compare(i.ms, o.ms), cmp.Compare(i.sequence, o.sequence))
}
