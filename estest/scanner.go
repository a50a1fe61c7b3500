package estest

import (
	"context"
	"crypto/rand"
	"slices"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

// ScanStore is what [TestScanner] needs: ids come from appending.
type ScanStore interface {
	es.Appender
	es.Scanner
}

// TestScanner tests what [es.Scanner] promises; newStore is as for [TestEventStore].
func TestScanner[S ScanStore](t *testing.T, newStore func(t *testing.T, types ...es.Types) S) {
	open := func(t *testing.T, types ...es.Types) ScanStore { return newStore(t, types...) }
	runChecks(t, open, []check[ScanStore]{
		{"a type without aggregates has no ids", scanNothing},
		{"KEY-04 all ids, in the order of their UTF-16 units", scanOrder},
		{"after any cursor, known or not", scanAfter},
		{"cursors of the documentation", scanDocumented},
		{"the loop's end is the limit", scanLimit},
		{"an aggregate is listed once", scanOnce},
		{"KEY-05 with its tenant, and the winner's only", scanTenants},
		{"types and contexts are worlds of their own", scanTypes},
		{"thousands of ids", scanMany},
		{"what is there before is found beside writers", scanBesideWriters},
		{"what cannot be scanned", scanFaults},
	})
}

// create appends a first commit for each id, many at a time.
func create(t *testing.T, s es.Appender, ids ...es.AggregateID) {
	t.Helper()
	for part := range slices.Chunk(ids, 100) {
		require.Equal(t, len(part), together(t, len(part), nil, func(i int) error {
			_, err := s.Append(t.Context(), es.AppendOptions{}, commitOf(part[i], 1))
			return err
		}))
	}
}

func idsOf(typ es.AggregateType, texts ...string) []es.AggregateID {
	ids := make([]es.AggregateID, len(texts))
	for i := range texts {
		ids[i] = typ.ID(texts[i])
	}
	return ids
}

// inOrder sorts texts by their UTF-16 code units.
func inOrder(texts []string) []string {
	texts = slices.Clone(texts)
	slices.SortFunc(texts, func(a, b string) int {
		return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
	})
	return texts
}

func requireScan(t *testing.T, s es.Scanner, typ es.AggregateType, after string, want ...string) {
	t.Helper()
	got := []string{}
	for _, id := range collect(t, s.Scan(t.Context(), typ, after)) {
		require.Equal(t, typ, id.Type)
		got = append(got, id.ID)
	}
	require.Equal(t, append([]string{}, want...), got, "after %q", after)
}

func scanNothing(t *testing.T, k kit[ScanStore]) {
	requireScan(t, k.store, k.typ, "")
	requireScan(t, k.store, k.typ, "a")
}

func scanOrder(t *testing.T, k kit[ScanStore]) {
	create(t, k.store, idsOf(k.typ, oddIDs()...)...)
	sorted := inOrder(oddIDs())
	requireScan(t, k.store, k.typ, "", sorted...)
	require.Less(t, slices.Index(sorted, "😀"), slices.Index(sorted, "\ue000"), "units, not code points")
}

func scanAfter(t *testing.T, k kit[ScanStore]) {
	ids := inOrder(oddIDs())
	create(t, k.store, idsOf(k.typ, ids...)...)
	for i, id := range ids {
		requireScan(t, k.store, k.typ, id, ids[i+1:]...)
	}
	for _, unknown := range []string{"\x01", "(0", "(0)\x00", "A-", "a\x00\x00", "ab", "zzz", "~~~", "😀😀", "\ud7ff", "\uffff", "\U0010FFFFx"} {
		all := inOrder(append(slices.Clone(ids), unknown))
		requireScan(t, k.store, k.typ, unknown, all[slices.Index(all, unknown)+1:]...)
	}
}

func scanDocumented(t *testing.T, k kit[ScanStore]) {
	create(t, k.store, idsOf(k.typ, "P-003", "P-001", "P-004", "P-002")...)
	requireScan(t, k.store, k.typ, "P-001", "P-002", "P-003", "P-004")
	requireScan(t, k.store, k.typ, "P-004")
	requireScan(t, k.store, k.typ, "P", "P-001", "P-002", "P-003", "P-004")
}

func scanLimit(t *testing.T, k kit[ScanStore]) {
	var texts []string
	for i := range 20 {
		texts = append(texts, string(rune('a'+i)))
	}
	create(t, k.store, idsOf(k.typ, texts...)...)
	var got []string
	for after := ""; ; {
		page := 0
		for id, err := range k.store.Scan(t.Context(), k.typ, after) {
			require.NoError(t, err)
			got, after = append(got, id.ID), id.ID
			if page++; page == 3 {
				break
			}
		}
		if page < 3 {
			break
		}
	}
	require.Equal(t, texts, got, "twenty ids in pages of three")
}

func scanOnce(t *testing.T, k kit[ScanStore]) {
	store(t, k.store, commitsOf(k.typ.ID("a-1"), 1, 3)...)
	requireScan(t, k.store, k.typ, "", "a-1")
	_, err := k.store.Append(t.Context(), es.AppendOptions{}, commitOf(k.typ.ID("a-2"), 2))
	require.ErrorIs(t, err, es.ErrVersionConflict)
	_, err = k.store.Append(t.Context(), es.AppendOptions{}, commitOf(k.typ.ID("a-3"), 1), es.Commit{})
	require.ErrorIs(t, err, es.ErrInvalid)
	requireScan(t, k.store, k.typ, "", "a-1")
}

func scanTenants(t *testing.T, k kit[ScanStore]) {
	ids := []es.AggregateID{k.typ.ID("1").InTenant("tenant-1"), k.typ.ID("2").InTenant(""), k.typ.ID("3").InTenant("a.b:{雪}\x00")}
	create(t, k.store, ids...)
	_, err := k.store.Append(t.Context(), es.AppendOptions{}, commitOf(ids[0].InTenant("tenant-2"), 1))
	require.ErrorIs(t, err, es.ErrDuplicateAggregate)
	require.Equal(t, ids, collect(t, k.store.Scan(t.Context(), k.typ, "")))
}

func scanTypes(t *testing.T, k kit[ScanStore]) {
	types := []es.AggregateType{
		k.typ, {Context: "estest", Name: k.typ.Name + "2"}, {Context: "estest2", Name: k.typ.Name},
		{Context: "estest.a", Name: k.typ.Name}, {Context: "estest", Name: "a." + k.typ.Name},
		{Context: "a long context", Alias: "alias", Name: k.typ.Name},
	}
	s := k.open(types...)
	for _, typ := range types {
		create(t, s, typ.ID(typ.Context+" "+typ.Name))
	}
	for _, typ := range types {
		requireScan(t, s, typ, "", typ.Context+" "+typ.Name)
	}
}

func scanMany(t *testing.T, k kit[ScanStore]) {
	var texts []string
	for range 2500 {
		texts = append(texts, rand.Text())
	}
	create(t, k.store, idsOf(k.typ, texts...)...)
	texts = inOrder(texts)
	requireScan(t, k.store, k.typ, "", texts...)
	requireScan(t, k.store, k.typ, texts[1233], texts[1234:]...)
}

func scanBesideWriters(t *testing.T, k kit[ScanStore]) {
	var before []string
	for range 200 {
		before = append(before, "old "+rand.Text())
	}
	create(t, k.store, idsOf(k.typ, before...)...)
	require.Equal(t, 4, together(t, 4, nil, func(i int) error {
		for range 50 {
			if i == 0 {
				if _, err := k.store.Append(t.Context(), es.AppendOptions{}, commitOf(k.typ.ID("new "+rand.Text()), 1)); err != nil {
					return err
				}
				continue
			}
			var got []string
			for id, err := range k.store.Scan(t.Context(), k.typ, "old ") {
				if err != nil {
					return err
				}
				got = append(got, id.ID)
			}
			if !slices.Equal(got, inOrder(before)) {
				return es.Corrupt("%d ids instead of 200, or in another order", len(got))
			}
		}
		return nil
	}))
}

func scanFaults(t *testing.T, k kit[ScanStore]) {
	create(t, k.store, k.typ.ID("a-1"))
	requireEnds(t, k.store.Scan(closed(t), k.typ, ""), context.Canceled)
	requireEnds(t, k.store.Scan(t.Context(), k.typ, "a\xff"), es.ErrInvalid)
	for _, typ := range []es.AggregateType{{}, {Context: "estest"}, {Name: "x"}, {Context: "estest", Name: "{x}"}} {
		requireEnds(t, k.store.Scan(t.Context(), typ, ""), es.ErrInvalid)
	}
}
