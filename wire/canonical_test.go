package wire_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/wire"
)

// sameWithSpace requires that a document and the same one with a space after it, which
// is no longer of canonical form, are read as the same, or refused both.
func sameWithSpace(t *testing.T, codec es.Codec, doc []byte) {
	t.Helper()
	straight, err := codec.DecodeCommit(bytes.Clone(doc))
	spaced, spacedErr := codec.DecodeCommit(append(bytes.Clone(doc), ' '))
	if spacedErr != nil {
		require.Error(t, err, "%s", doc)
		return
	}
	require.NoError(t, err, "%s", doc)
	require.Equal(t, spaced, straight, "%s", doc)
}

func canonicalSeeds(t testing.TB, codec es.Codec) (docs [][]byte) {
	t.Helper()
	bare := someCommit(paid{1})
	bare.Header = nil
	many := someCommit(paid{1}, somePlaced(), paid{2})
	for i := range 20 {
		many.Header.Set(strings.Repeat("k", i+1), "v")
	}
	for _, c := range []es.Commit{someCommit(somePlaced()), someCommit(paid{1}, paid{2}), bare, many} {
		doc, err := codec.EncodeCommit(&c)
		require.NoError(t, err)
		docs = append(docs, doc)
	}
	return docs
}

// Every document near a canonical one is read as a reader reads it: each byte left out,
// doubled, or replaced by what may matter.
func TestCanonicalFormIsReadAsAnyOther(t *testing.T) {
	t.Parallel()
	codec := wire.JSON(carts())
	for _, doc := range canonicalSeeds(t, codec) {
		sameWithSpace(t, codec, doc)
		for i := range doc {
			before, after := doc[:i], doc[i+1:]
			sameWithSpace(t, codec, append(bytes.Clone(before), after...))
			sameWithSpace(t, codec, append(bytes.Clone(doc[:i+1]), doc[i:]...))
			for _, with := range []string{`"`, `{`, `}`, `[`, `]`, `,`, `:`, `0`, `-`, ` `, `\`, "\n", "é", `":"`, `null`} {
				sameWithSpace(t, codec, append(append(bytes.Clone(before), with...), after...))
			}
		}
	}
}

func TestCanonicalFormHasNoDoubleKeysAndNothingBlank(t *testing.T) {
	t.Parallel()
	codec := wire.JSON(carts())
	doc := string(canonicalSeeds(t, codec)[0])
	for from, to := range map[string]string{
		`"upstream_name":`:     `"trace_id":`,
		`"contextName":"shop"`: `"contextName":" "`,
		`"version":3`:          `"version":2147483648`,
		`"revision":"0.0.1"`:   `"revision":"9.9.9"`,
		`"name":"placed"`:      `"name":"unheard"`,
		`"body":{`:             `"body":{"x":{]}},"body":{`,
		`"createTime":`:        `"createTime":1e3,"createTime":`,
	} {
		changed := strings.Replace(doc, from, to, 1)
		require.NotEqual(t, doc, changed, from)
		sameWithSpace(t, codec, []byte(changed))
	}
	sameWithSpace(t, codec, []byte(strings.Replace(doc, `"command-1"`, `"`+strings.Repeat("c", 5000)+`"`, 1)))
}

func FuzzCanonicalForm(f *testing.F) {
	codec := wire.JSON(carts())
	for _, doc := range canonicalSeeds(f, codec) {
		f.Add(doc)
	}
	f.Fuzz(func(t *testing.T, doc []byte) { sameWithSpace(t, codec, doc) })
}
