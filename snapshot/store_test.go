package snapshot_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/snapshot"
)

func TestSavedSnapshotComesBackWhole(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		id := newID()
		s := newStore(rdb, id)
		want := cartAt(id, 3)
		require.NoError(t, s.Save(t.Context(), want))
		got, err := s.Load(t.Context(), id)
		require.NoError(t, err)
		require.NotEmpty(t, got.Schema)
		want.Schema = got.Schema
		want.Stored = []byte(stored(t, rdb, id))
		require.Equal(t, want, got, "the alias too, which no snapshot holds")
		requireVersion(t, s, id, 3)
	})
}

func TestSaveStampsTheTimeOfASnapshotThatHasNone(t *testing.T) {
	t.Parallel()
	id := newID()
	s := newStore(redistest.Shared(t).Client(t), id)
	snap := cartAt(id, 1)
	snap.SnapshotTime = time.Time{}
	before := time.Now().Truncate(time.Millisecond)
	require.NoError(t, s.Save(t.Context(), snap))
	got, err := s.Load(t.Context(), id)
	require.NoError(t, err)
	require.WithinRange(t, got.SnapshotTime, before, time.Now())
}

func TestSNAP01_StoredVersionNeverGoesDown(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		id := newID()
		s := newStore(rdb, id)
		for round := range 100 {
			low, high := 10*round+7, 10*round+10
			var wait sync.WaitGroup
			for _, version := range []int{high, low} {
				wait.Go(func() {
					if err := s.Save(t.Context(), cartAt(id, version)); err != nil {
						t.Errorf("save of version %d: %v", version, err)
					}
				})
			}
			wait.Wait()
			requireVersion(t, s, id, high)
		}
	})
}

func TestSNAP01_NewestOf200ShuffledSavesWins(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		id := newID()
		s := newStore(rdb, id)
		var wait sync.WaitGroup
		for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(200) {
			wait.Go(func() {
				if err := s.Save(t.Context(), cartAt(id, i+1)); err != nil {
					t.Errorf("save of version %d: %v", i+1, err)
				}
			})
		}
		wait.Wait()
		got, err := s.Load(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, cartAt(id, 200).State, got.State)
		require.Equal(t, 200, got.Version)
	})
}

func TestStoreWorksOnAPipeliningClient(t *testing.T) {
	t.Parallel()
	pipelining, err := redistest.Shared(t).Client(t).AutoPipeline()
	require.NoError(t, err)
	t.Cleanup(func() { _ = pipelining.Close() })
	id := newID()
	s := newStore(pipelining, id)
	var wait sync.WaitGroup
	for version := range 50 {
		wait.Go(func() {
			if err := s.Save(t.Context(), cartAt(id, version)); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	got, err := s.Load(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, 49, got.Version)
	require.NoError(t, s.Drop(t.Context(), id))
	_, err = s.Load(t.Context(), id)
	require.ErrorIs(t, err, es.ErrNotFound)
}

func TestSTO14_ClientThatReadsFromReplicasFindsAtWorstAnOlderSnapshot(t *testing.T) {
	t.Parallel()
	cluster := redistest.NewCluster(t, 1)
	o := cluster.Options()
	o.ReadOnly = true
	replicas := redis.NewClusterClient(o)
	t.Cleanup(func() { _ = replicas.Close() })
	id := newID()
	s, onMaster := newStore(replicas, id), newStore(cluster.Client(t), id)
	for version := 1; version <= 50; version++ {
		require.NoError(t, s.Save(t.Context(), cartAt(id, version)))
		require.NoError(t, s.Save(t.Context(), cartAt(id, version-1)))
		requireVersion(t, onMaster, id, version)
		got, err := s.Load(t.Context(), id)
		if !errors.Is(err, es.ErrNotFound) {
			require.NoError(t, err)
			require.LessOrEqual(t, got.Version, version)
			require.Equal(t, cartAt(id, got.Version).State, got.State)
		}
	}
}

func TestReplaceNeedsExactlyTheBytesSeen(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		id := newID()
		s := newStore(rdb, id)
		replace := func(old string, version int) bool {
			done, err := s.Replace(t.Context(), []byte(old), cartAt(id, version))
			require.NoError(t, err)
			return done
		}
		require.False(t, replace("", 1), "a missing key is not an empty one")
		put(t, rdb, id, "\x00junk\xff")
		require.False(t, replace("\x00junk", 1))
		require.Equal(t, "\x00junk\xff", stored(t, rdb, id))
		require.True(t, replace("\x00junk\xff", 1))
		requireVersion(t, s, id, 1)
		require.True(t, replace("\x00junk\xff", 1), "the answer was lost and the call sent again")
		require.False(t, replace("\x00junk\xff", 2))
		put(t, rdb, id, "")
		require.True(t, replace("", 0))
	})
}

func TestDropRemovesOneSnapshot(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	id := newID()
	other := id.InTenant("other")
	s := newStore(rdb, id)
	require.NoError(t, s.Save(t.Context(), cartAt(id, 1)))
	require.NoError(t, s.Save(t.Context(), cartAt(other, 2)))
	require.NoError(t, s.Drop(t.Context(), id))
	require.NoError(t, s.Drop(t.Context(), id), "nothing to drop")
	requireVersion(t, s, id, 0)
	requireVersion(t, s, other, 2)
}

func TestOversizedSnapshotIsNotSent(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	id := newID()
	s := newStore(rdb, id)
	big := cartAt(id, 1)
	big.State.Owner = strings.Repeat("x", snapshot.DefaultMaxBytes)
	requireTooLarge(t, rdb, s, big)

	s.MaxBytes = 1000
	big.State.Owner = strings.Repeat("x", 1000)
	requireTooLarge(t, rdb, s, big)
	require.NoError(t, s.Save(t.Context(), cartAt(id, 1)))
}

func requireTooLarge(t *testing.T, rdb redis.Cmdable, s *snapshot.Store[cart], big es.Snapshot[cart]) {
	t.Helper()
	require.ErrorIs(t, s.Save(t.Context(), big), es.ErrTooLarge)
	_, err := s.Replace(t.Context(), nil, big)
	require.ErrorIs(t, err, es.ErrTooLarge)
	require.Zero(t, rdb.Exists(t.Context(), rediskey.Snapshot(big.Aggregate)).Val())
}

func TestWhatCannotBeStoredIsRefused(t *testing.T) {
	t.Parallel()
	id := newID()
	s := newStore(redistest.Shared(t).Client(t), id)
	nameless := id
	nameless.ID = ""
	for what, bad := range map[string]es.Snapshot[cart]{
		"negative version":  cartAt(id, -1),
		"version too large": cartAt(id, es.MaxVersion+1),
		"no id":             cartAt(nameless, 1),
	} {
		require.ErrorIs(t, s.Save(t.Context(), bad), es.ErrInvalid, what)
		_, err := s.Replace(t.Context(), nil, bad)
		require.ErrorIs(t, err, es.ErrInvalid, what)
	}
	_, err := s.Load(t.Context(), nameless)
	require.ErrorIs(t, err, es.ErrInvalid)
	_, err = s.Version(t.Context(), nameless)
	require.ErrorIs(t, err, es.ErrInvalid)
	require.ErrorIs(t, s.Drop(t.Context(), nameless), es.ErrInvalid)
	require.NoError(t, s.Save(t.Context(), cartAt(id, es.MaxVersion)))
	requireVersion(t, s, id, es.MaxVersion)
}

func TestErrorsSayWhere(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	id := newID()
	s := newStore(rdb, id)
	_, err := s.Load(t.Context(), id)
	require.EqualError(t, err, "load snapshot "+id.String()+": not found")

	put(t, rdb, id, "{")
	err = s.Save(t.Context(), cartAt(id, 7))
	require.EqualError(t, err, "save snapshot "+id.String()+" version 7: corrupt: what is stored shows no version")
	var where *es.Error
	require.ErrorAs(t, err, &where)
	require.Equal(t, id, where.Aggregate)
}
