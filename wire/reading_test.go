package wire_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/wire"
)

type reading struct {
	Kind, What, Doc, Rewritten string
	Accepted                   bool
	Values                     document
}

// refusedByUs are the documents that Wow reads and this codec does not, each with why.
var refusedByUs = map[string]string{
	"escaped lone surrogate in string": "no Go string can hold a lone surrogate; replacing it would change an id in silence",
	"command contextName null":         "no table is for a blank context; Wow finds the class without one",
	"command aggregateName null":       "no table is for a blank name",
	"command contextName empty":        "no table is for a blank context",
	"command aggregateName blank":      "no table is for a blank name",
}

// rewrittenOtherwise are documents whose rewriting by Wow is the JVM's: bytes that are
// not ours to change, or a defect that we do not copy.
var rewrittenOtherwise = map[string]string{
	"name null":             "a command without a name is written with its type's",
	"name empty":            "a command without a name is written with its type's",
	"unknown name and type": "Wow unescapes the raw body; ours stays as it was",
	"unknown context":       `Wow nests the state of an unknown aggregate under "actual" when it writes again`,
	"revision 1.2.0 event":  "Wow's class writes the double 1 as 1.0, Go as 1",
}

func isCorruptOrUnknown(err error) bool {
	return errors.Is(err, es.ErrCorrupt) || errors.Is(err, es.ErrUnknownType)
}

func commandReader(j es.Codec) func(*testing.T, reading) ([]byte, error) {
	return func(t *testing.T, v reading) ([]byte, error) {
		c, err := j.DecodeCommand([]byte(v.Doc))
		if err != nil {
			return nil, err
		}
		again, err := j.EncodeCommand(&c)
		require.NoError(t, err)
		requireBody(t, v.Values.BodyRaw, c.Body)
		want := v.Values.command()
		want.Body, c.Body, want.Digest = nil, nil, c.Digest // Wow has no digests
		require.Equal(t, want, c)
		return again, nil
	}
}

func requireCommit(t *testing.T, want document, got es.Commit) {
	t.Helper()
	for i, e := range want.Events {
		require.Equal(t, e.Sequence, got.Events[i].Sequence)
		require.Equal(t, e.IsLast, got.Events[i].Last)
		requireBody(t, e.BodyRaw, got.Events[i].Body)
		got.Events[i].Body = nil
	}
	c := want.commit()
	for i := range c.Events {
		c.Events[i].Body = nil
	}
	require.Equal(t, c, got)
}

func commitReader(j es.Codec) func(*testing.T, reading) ([]byte, error) {
	return func(t *testing.T, v reading) ([]byte, error) {
		c, err := j.DecodeCommit([]byte(v.Doc))
		if err != nil {
			return nil, err
		}
		again, err := j.EncodeCommit(&c)
		require.NoError(t, err)
		requireCommit(t, v.Values, c)
		return again, nil
	}
}

func stateReader(j es.Codec) func(*testing.T, reading) ([]byte, error) {
	return func(t *testing.T, v reading) ([]byte, error) {
		var state orderState
		e, err := j.DecodeStateEvent([]byte(v.Doc), &state)
		if err != nil {
			return nil, err
		}
		again, err := j.EncodeStateEvent(&e)
		require.NoError(t, err)
		require.Equal(t, state, e.State)
		if rewrittenOtherwise[v.What] == "" {
			requireBody(t, v.Values.StateRaw, state)
		}
		require.Equal(t, v.Values.FirstOperator, e.FirstOperator)
		require.Equal(t, at(v.Values.FirstEventTime), e.FirstEventTime)
		require.Equal(t, v.Values.Deleted, e.Deleted)
		requireTags(t, v.Values.Tags, e.Tags)
		requireCommit(t, v.Values, e.Commit)
		return again, nil
	}
}

func requireTags(t *testing.T, want, got es.Tags) {
	t.Helper()
	if len(want) == 0 {
		require.Empty(t, got)
		return
	}
	require.Equal(t, want, got)
}

func snapshotReader(j es.Codec) func(*testing.T, reading) ([]byte, error) {
	return func(t *testing.T, v reading) ([]byte, error) {
		var state orderState
		m, err := j.DecodeSnapshot([]byte(v.Doc), &state)
		if err != nil {
			return nil, err
		}
		again, err := j.EncodeSnapshot(&m, state)
		require.NoError(t, err)
		requireBody(t, v.Values.StateRaw, state)
		requireTags(t, v.Values.Tags, m.Tags)
		want := v.Values.meta()
		want.Tags, m.Tags = nil, nil
		require.Equal(t, want, m)
		return again, nil
	}
}

func TestEveryDocumentIsReadAsWowReadsIt(t *testing.T) {
	t.Parallel()
	var m messages
	vectors(t, "messages", &m)
	require.Len(t, m.Reading, 423)
	mars := orders()
	mars.Aggregate.Context = "mars-service"
	readers := map[string]func(*testing.T, reading) ([]byte, error){
		// Wow finds a command's class whatever the context; here the table must be known.
		"command":     commandReader(wire.JSON(orders(), mars)),
		"eventStream": commitReader(wire.JSON(orders())),
		"stateEvent":  stateReader(wire.JSON(orders())),
		"snapshot":    snapshotReader(wire.JSON(orders())),
	}
	for _, v := range m.Reading {
		t.Run(v.Kind+" "+v.What, func(t *testing.T) {
			t.Parallel()
			again, err := readers[v.Kind](t, v)
			if refusedByUs[v.What] != "" || refusedByUs[v.Kind+" "+v.What] != "" || !v.Accepted {
				require.Error(t, err)
				require.True(t, isCorruptOrUnknown(err), err.Error())
				return
			}
			require.NoError(t, err)
			if rewrittenOtherwise[v.What] == "" {
				require.Equal(t, v.Rewritten, string(again))
			}
		})
	}
}
