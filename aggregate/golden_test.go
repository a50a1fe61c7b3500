package aggregate_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

// said is a command or a commit, as far as the one follows from the other.
type said struct {
	ID, Name, CommandID, OwnerID, SpaceID, RequestID string

	Header  [][2]string
	Version int
}

func (s said) header() (h es.Header) {
	for _, f := range s.Header {
		h = append(h, es.HeaderField{Key: f[0], Value: f[1]})
	}
	return h
}

func TestCommitTakesFromItsCommandWhatWowTakes(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/propagation.json") // written by Wow v8.10.10
	require.NoError(t, err)
	var vectors struct {
		Propagation []struct {
			What            string
			Command, Commit said
		}
	}
	require.NoError(t, json.Unmarshal(data, &vectors))
	require.Len(t, vectors.Propagation, 7)
	for _, v := range vectors.Propagation {
		t.Run(v.What, func(t *testing.T) {
			t.Parallel()
			r, store := newRepository()
			id := r.Decider.Type.ID("order-1")
			for n := 1; n < v.Commit.Version; n++ { // Wow's aggregate stood one version below
				c := es.NewCommand(id, add{1})
				c.AllowCreate, c.OwnerID, c.SpaceID = n == 1, v.Commit.OwnerID, v.Commit.SpaceID
				handle(t, r, c)
			}
			c := es.NewCommand(id, add{1})
			c.ID, c.Name, c.RequestID, c.OwnerID, c.SpaceID = v.Command.ID, v.Command.Name, v.Command.RequestID, v.Command.OwnerID, v.Command.SpaceID
			c.Header, c.AllowCreate = v.Command.header(), true
			handle(t, r, c)

			got, err := store.Last(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, v.Commit.header(), got.Header, "the same keys in the same order")
			require.Equal(t, v.Commit.Version, got.Version)
			require.Equal(t, []string{v.Commit.CommandID, v.Commit.RequestID, v.Commit.OwnerID, v.Commit.SpaceID},
				[]string{got.CommandID, got.RequestID, got.OwnerID, got.SpaceID})
			require.Equal(t, v.Command.header(), c.Header, "the command's own header is left alone")
		})
	}
}

func TestCommandWithoutATraceBeginsOne(t *testing.T) {
	t.Parallel()
	r, store := newRepository()
	c := es.NewCreateCommand(r.Decider.Type.ID("c-1"), add{1})
	c.ID, c.Header = "command-1", es.Header{{Key: es.HeaderUpstreamID, Value: "an event"}, {Key: es.HeaderUserAgent, Value: "curl"}}
	handle(t, r, c)
	got, err := store.Last(t.Context(), c.Aggregate)
	require.NoError(t, err)
	require.Equal(t, es.Header{
		{Key: es.HeaderTraceID, Value: "command-1"}, {Key: es.HeaderUpstreamID, Value: "command-1"},
		{Key: es.HeaderUpstreamName, Value: "add"}, {Key: es.HeaderUserAgent, Value: "curl"},
	}, got.Header)
}
