package migrate

import (
	"encoding/json"
	"strings"
	"sync"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/wire"
)

// codec reads commits. It knows no types, so bodies stay as they are.
var codec = wire.JSON()

// snapshots reads snapshots, which need a codec that knows their type.
type snapshots struct{ codecs sync.Map }

func (s *snapshots) decode(text string) (es.Meta, error) {
	var head struct {
		ContextName, AggregateName string
	}
	if err := json.Unmarshal(bytesOf(text), &head); err != nil {
		return es.Meta{}, err
	}
	t := es.AggregateType{Context: head.ContextName, Name: head.AggregateName}
	if err := t.Validate(); err != nil {
		return es.Meta{}, err
	}
	known, ok := s.codecs.Load(t)
	if !ok {
		known, _ = s.codecs.LoadOrStore(t, wire.JSON(es.Types{Aggregate: t}))
	}
	return known.(*wire.JSONCodec).DecodeSnapshot(bytesOf(text), nil) //nolint:forcetypeassert // nothing else is stored
}

// foreign reports a document that is not Wow's: no JSON object, or one without the
// members that all of Wow's have.
func foreign(text string) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	return !strings.HasPrefix(text, "{") || !strings.Contains(text, `"contextName"`) && !strings.Contains(text, `"aggregateId"`)
}
