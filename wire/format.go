package wire

import (
	"fmt"

	"github.com/headwater-go/headwater/es"
)

// magic begins every document of [MessagePack]: a byte that MessagePack itself never
// uses and that begins no JSON, then "HW". The kind of document follows.
const magic = "\xc1HW"

// Kinds of documents.
const (
	kindCommand    = 'c'
	kindCommit     = 'e'
	kindStateEvent = 's'
	kindSnapshot   = 'S'
	kindValue      = 'v'
)

// versionDigits is the width of the version at the head of a packed snapshot.
const versionDigits = 10

func isPacked(data []byte) bool { return len(data) > 0 && data[0] == magic[0] }

// unpackKind returns what follows the head of a packed document of one kind.
func unpackKind(data []byte, kind byte) ([]byte, error) {
	switch {
	case len(data) > 0 && !isPacked(data):
		return nil, fmt.Errorf("%w: it does not begin like this package's MessagePack", es.ErrWrongFormat)
	case len(data) <= len(magic) || string(data[:len(magic)]) != magic:
		return nil, es.Corrupt("no head")
	case data[len(magic)] != kind:
		return nil, es.Corrupt("a document of kind %q, not %q", data[len(magic)], kind)
	}
	return data[len(magic)+1:], nil
}
