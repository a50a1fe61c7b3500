package snapshot_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redistest"
	"github.com/headwater-go/headwater/snapshot"
)

// hostile are texts that try to pass themselves off as the version.
var hostile = []string{
	`"version":9,`, `\"version\":9,`, `x","version":9,"y":"`, `x\","version":9,"y":"`, `","spaceId":"","version":9,`,
	`\`, `\\`, `"`, `\"`, `a\u0022,"version":9,`, `%d+`, `[^"\]*`, "\x00", "\n", "\t\r\b\f\v\x1f\x7f",
	"{", "}", "é", "订单", "😀", "\u2028", "\U0010FFFF", `{"contextName":"`, "\u00c1HW\u00000000000009",
	strings.Repeat("x", es.MaxIDBytes), strings.Repeat(`"`, es.MaxIDBytes), strings.Repeat("😀", es.MaxIDBytes/4), " ", "(0)", "",
}

// FuzzGuardAgreesWithTheCodec: whatever the texts of a snapshot are, the script sees the
// version that the codec reads, in both formats.
func FuzzGuardAgreesWithTheCodec(f *testing.F) {
	for _, text := range hostile {
		f.Add(text, "tenant", "owner", "space", "event", 3)
		f.Add("id", text, text, text, text, 3)
		f.Add(text, text, text, text, text, es.MaxVersion)
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		f.Add(randomText(random), randomText(random), randomText(random), randomText(random), randomText(random),
			random.IntN(es.MaxVersion)>>random.IntN(31))
	}
	rdb := redistest.Shared(f).Client(f)
	base := newID()
	f.Fuzz(func(t *testing.T, text, tenant, owner, space, event string, version int) {
		id := base.Type.ID(text).InTenant(tenant)
		snap := cartAt(id, version)
		snap.OwnerID, snap.SpaceID, snap.EventID, snap.State.Owner = owner, space, event, text
		if id.Validate() != nil || version < 1 || version > es.MaxVersion || !utf8.ValidString(owner+space+event) ||
			len(owner) > 4000 || len(space) > 4000 {
			t.Skip("not text that a codec writes")
		}
		for name, s := range map[string]*snapshot.Store[cart]{
			"json": newStore(rdb, id), "packed": snapshot.New[cart](rdb, packedCodec(id)),
		} {
			require.NoError(t, s.Drop(t.Context(), id), name)
			require.NoError(t, s.Save(t.Context(), snap), name)
			got, err := s.Load(t.Context(), id)
			require.NoError(t, err, name)
			require.Equal(t, version, got.Version, name)
			requireVersion(t, s, id, version)

			older, newer := snap, snap
			older.Version, newer.Version = version-1, min(version+1, es.MaxVersion)
			require.NoError(t, s.Save(t.Context(), older), name)
			requireVersion(t, s, id, version)
			require.NoError(t, s.Save(t.Context(), newer), name)
			requireVersion(t, s, id, newer.Version)
		}
	})
}

func randomText(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(6) {
		if r.IntN(2) == 0 {
			b.WriteString(hostile[r.IntN(len(hostile)-6)]) // without the long ones
		} else {
			b.WriteRune(rune(r.IntN(0x300)))
		}
	}
	return b.String()
}

func TestHostileTextInTheNamesOfAContextFoolsNobody(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	for _, text := range []string{`c","version":9,"x":"`, `c\`, `c"`, "c\n"} {
		id := newID()
		id.Type.Context, id.Type.Name = text, text+id.Type.Name
		s := newStore(rdb, id)
		require.NoError(t, s.Save(t.Context(), cartAt(id, 3)))
		require.NoError(t, s.Save(t.Context(), cartAt(id, 2)))
		requireVersion(t, s, id, 3)
		require.NoError(t, s.Save(t.Context(), cartAt(id, 4)))
		requireVersion(t, s, id, 4)
	}
}

func TestStateThatLooksLikeASnapshotFoolsNobody(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	for _, text := range []string{"plain", `escaped"`} { // with an escape, the head shows nothing
		id := newID().InTenant(text)
		s := snapshot.New[es.Raw](rdb, jsonCodec(id))
		inner := es.Raw(`{"contextName":"c","aggregateName":"a","aggregateId":"i","tenantId":"t","ownerId":"o","spaceId":"s","version":99,"x":1}`)
		for _, version := range []int{3, 4, 2} {
			require.NoError(t, s.Save(t.Context(), es.Snapshot[es.Raw]{Meta: cartAt(id, version).Meta, State: inner}))
		}
		requireVersion(t, s, id, 4)
	}
}

func TestStateThatIsNestedTooDeepForCJSONIsGuardedByItsHead(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	id := newID()
	s := newStore(rdb, id)
	require.NoError(t, s.Save(t.Context(), cartAt(id, 5)))
	deep := strings.Replace(stored(t, rdb, id), `"lines":[`, `"lines":[`+strings.Repeat("[", 2000)+strings.Repeat("]", 2000)+`,`, 1)
	put(t, rdb, id, deep)
	require.NoError(t, s.Save(t.Context(), cartAt(id, 4)))
	require.Equal(t, deep, stored(t, rdb, id))
	requireVersion(t, s, id, 5)
	require.NoError(t, s.Save(t.Context(), cartAt(id, 5)))
	require.NotEqual(t, deep, stored(t, rdb, id))
}

func TestBigSnapshotIsGuardedByItsHead(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	id := newID()
	s := newStore(rdb, id)
	big := cartAt(id, 5)
	big.State.Owner = strings.Repeat("x", snapshot.DefaultMaxBytes-2000)
	require.NoError(t, s.Save(t.Context(), big))
	require.NoError(t, s.Save(t.Context(), cartAt(id, 4)))
	requireVersion(t, s, id, 5)
	got, err := s.Load(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, big.State, got.State)
}
