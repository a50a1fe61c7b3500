package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/wire"
)

// Every byte at every place of a word, and behind one.
func TestSimpleDocumentsHaveNothingToLookAt(t *testing.T) {
	t.Parallel()
	require.True(t, wire.IsSimple([]byte(`{"id":"a-1","version":1}`)))
	for at := range 19 {
		for c := range 256 {
			doc := []byte("                   ")
			doc[at] = byte(c)
			require.Equal(t, c >= ' ' && c != '\\' && c < 0x80, wire.IsSimple(doc), "byte %#x at %d", c, at)
		}
	}
}
