package cli

import (
	"encoding/json"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/wire"
)

// packed is the first byte of every MessagePack document, and of no JSON.
const packed = 0xc1

// decodeCommit reads a commit of either codec. No Go types are known here, so bodies
// stay as they are.
func decodeCommit(data []byte) (es.Commit, error) {
	if len(data) > 0 && data[0] == packed {
		return wire.MessagePack().DecodeCommit(data)
	}
	return wire.JSON().DecodeCommit(data)
}

// commitJSON is the commit as Wow's JSON: the stored bytes, where they are JSON.
func commitJSON(data []byte, c *es.Commit) []byte {
	if len(data) == 0 || data[0] != packed {
		return data
	}
	if text, err := wire.JSON().EncodeCommit(c); err == nil {
		return text
	}
	return data
}

// snapshotMeta reads all of a snapshot but its state. A codec reads only the snapshots
// of types that it knows, and a document may name the context whose alias t holds.
func snapshotMeta(t es.AggregateType, data []byte) (es.Meta, error) {
	if len(data) > 0 && data[0] == packed {
		return wire.MessagePack(es.Types{Aggregate: t}).DecodeSnapshot(data, nil)
	}
	var named struct{ ContextName, AggregateName string }
	if json.Unmarshal(data, &named) == nil && named.AggregateName == t.Name && named.ContextName != "" {
		t = es.AggregateType{Context: named.ContextName, Name: named.AggregateName}
	}
	return wire.JSON(es.Types{Aggregate: t}).DecodeSnapshot(data, nil)
}
