package estest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

// Ids and names of every kind live a full life, beside all the others.
var keyChecks = []check[es.EventStore]{
	{"KEY-04 odd ids live one full life", keyOddIDs},
	{"KEY-04 odd tenants live one full life", keyOddTenants},
	{"KEY-04 odd ids of commits, commands and requests", keyOddTexts},
	{"KEY-01 parts are never joined", keyJoined},
	{"KEY-10 types and contexts are worlds of their own", keyTypes},
}

// live is the whole life of an aggregate; what it leaves is returned.
func live(t *testing.T, s es.EventStore, id es.AggregateID) []es.Commit {
	t.Helper()
	requireStored(t, s, id)
	commits := commitsOf(id, 1, 2)
	store(t, s, commits...)
	again, err := s.Append(t.Context(), es.AppendOptions{}, commits[1])
	require.NoError(t, err)
	require.True(t, again.Same)
	requireRefused(t, s, es.ErrVersionConflict, commitOf(id, 2))
	known := commitOf(id, 3)
	known.RequestID = commits[0].RequestID
	requireRefused(t, s, es.ErrDuplicateRequest, known)
	return commits
}

// requireLives says that each aggregate is as [live] left it.
func requireLives(t *testing.T, s es.EventStore, ids []es.AggregateID) {
	t.Helper()
	lives := make([][]es.Commit, len(ids))
	for i, id := range ids {
		lives[i] = live(t, s, id)
	}
	for i, id := range ids {
		requireStored(t, s, id, lives[i]...)
		last, err := s.Last(t.Context(), id)
		require.NoError(t, err)
		requireSame(t, lives[i][1], last)
		found, err := s.Find(t.Context(), id, 1)
		require.NoError(t, err)
		requireSame(t, lives[i][0], found)
		found, err = s.FindRequest(t.Context(), id, lives[i][0].RequestID)
		require.NoError(t, err)
		requireSame(t, lives[i][0], found)
	}
}

func keyOddIDs(t *testing.T, k kit[es.EventStore]) {
	var ids []es.AggregateID
	for _, odd := range oddIDs() {
		ids = append(ids, k.typ.ID(odd))
	}
	requireLives(t, k.store, ids)
}

func keyOddTenants(t *testing.T, k kit[es.EventStore]) {
	var ids []es.AggregateID
	for _, odd := range append(oddIDs(), "") {
		ids = append(ids, k.typ.ID("of "+nameOf(odd)).InTenant(odd))
	}
	requireLives(t, k.store, ids)
}

func keyOddTexts(t *testing.T, k kit[es.EventStore]) {
	id := k.typ.ID("a-1")
	var commits []es.Commit
	for i, odd := range oddIDs() {
		c := commitOf(id, i+1)
		c.ID, c.CommandID, c.RequestID, c.OwnerID, c.SpaceID, c.Events[0].ID = odd, odd, odd, odd, odd, odd
		c.Derive()
		commits = append(commits, c)
	}
	store(t, k.store, commits...)
	requireStored(t, k.store, id, commits...)
	for _, c := range commits {
		found, err := k.store.FindRequest(t.Context(), id, c.RequestID)
		require.NoError(t, err)
		requireSame(t, c, found)
		again := commitOf(id, len(commits)+1)
		again.RequestID = c.RequestID
		requireRefused(t, k.store, es.ErrDuplicateRequest, again)
	}
}

func keyJoined(t *testing.T, k kit[es.EventStore]) {
	requireLives(t, k.store, []es.AggregateID{
		k.typ.ID("a@ac").InTenant("t"), k.typ.ID("a").InTenant("ac@t"),
		k.typ.ID("c").InTenant("a:b"), k.typ.ID("b:c").InTenant("a"),
		k.typ.ID("x").InTenant("y.z"), k.typ.ID("x.y").InTenant("z"),
		k.typ.ID("p").InTenant("p:req_idx"), k.typ.ID("p:req_idx").InTenant("p"),
		k.typ.ID("AaAa"), k.typ.ID("BBBB"), // one hash, one bucket
	})
}

func keyTypes(t *testing.T, k kit[es.EventStore]) {
	n := k.typ.Name
	types := []es.AggregateType{
		k.typ,
		{Context: "estest", Name: n + "2"},
		{Context: "estest2", Name: n},
		{Context: "estest.a", Name: n},
		{Context: "estest", Name: "a." + n},
		{Context: "a long context", Alias: "alias", Name: n},
		{Context: "estest", Name: n + ":odd @/" + "*[x]?雪"},
	}
	s := k.open(types...)
	var ids []es.AggregateID
	for _, typ := range types {
		ids = append(ids, typ.ID("a-1").InTenant(typ.Context))
	}
	requireLives(t, s, ids)
}
