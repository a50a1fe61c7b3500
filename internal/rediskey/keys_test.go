package rediskey_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/rediskey"
)

var order = es.AggregateType{Context: "order-service", Name: "order"}

// Texts that have broken keys elsewhere.
var ugly = []string{"", "a", "a:b", "b:c", "a.b", "b.c", "c", "a@b", "x:req_idx", "x:ids", "ids", "outbox", "purged", "fence", "dlq",
	"a}b", "{a}", "}{", "{}", "{", "}", "a{b{c}d}", "a\x00", "\x00", " ", "\n", "*", "?", "[ab]", `\`, "^", "😀", "\ue000", "\uffff", "é", "e\u0301"}

func TestKEY01_DistinctPartsGiveDistinctKeys(t *testing.T) {
	t.Parallel()
	seen := map[string]es.AggregateID{}
	check := func(id es.AggregateID) {
		k := rediskey.EventKeys(id)
		for _, key := range []string{k.Stream, k.Requests, k.Member + "|" + k.IDs, rediskey.Snapshot(id)} {
			if other, known := seen[key]; known {
				require.Equal(t, other, id, key)
			}
			seen[key] = id
		}
		requireReadBack(t, k, id.ID, id.Tenant)
	}
	for _, id := range ugly[1:] {
		for _, tenant := range ugly {
			check(order.ID(id).InTenant(tenant))
		}
	}
	for _, typ := range []es.AggregateType{{Context: "a.b", Name: "c"}, {Context: "a", Name: "b.c"}, {Context: "a", Name: "b"}} {
		check(typ.ID("id"))
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 5_000 {
		check(order.ID("x" + randomText(r)).InTenant(randomText(r)))
	}
	require.NotEqual(t, rediskey.Prepare("a.b", "c"), rediskey.Prepare("a", "b.c"))
	require.NotEqual(t, rediskey.Prepare("username", "same"), rediskey.Prepare("email", "same"))
}

func TestKEY02_AllKeysOfAnAggregateShareASlot(t *testing.T) {
	t.Parallel()
	for _, id := range ugly[1:] {
		k := rediskey.EventKeys(order.ID(id).InTenant(id))
		bucket := rediskey.Bucket(id)
		for _, key := range []string{k.Requests, k.IDs, k.Outbox, k.Purged, rediskey.Index(order, bucket),
			rediskey.Outbox(order, bucket), rediskey.Purged(order, bucket), rediskey.Fence(order, bucket)} {
			require.Equal(t, slot(k.Stream), slot(key), "%q", key)
		}
		require.Equal(t, k.IDs, rediskey.Index(order, bucket))
		require.Equal(t, k.Outbox, rediskey.Outbox(order, bucket))
		require.Equal(t, k.Purged, rediskey.Purged(order, bucket))
		for _, key := range []string{k.Stream, rediskey.Snapshot(order.ID(id)), rediskey.Prepare(id, id)} {
			require.Equal(t, []int{1, 1}, []int{strings.Count(key, "{"), strings.Count(key, "}")}, "%q", key)
		}
	}
	topic := rediskey.Event(order)
	for _, key := range []string{rediskey.DeadLetters(topic), rediskey.Retry(topic, "}{"), rediskey.Leases(topic, "{x}"), rediskey.Failed(topic, "}")} {
		require.Equal(t, slot(topic), slot(key), "%q", key)
	}
	require.Equal(t, 4420, slot(rediskey.Prepare("name:{雪}", "key:{east}")))
	require.Equal(t, 4420, slot(rediskey.RolledBack("name:{雪}", "key:{east}")))
}

func TestKEY03_EmptyAndInvalidPartsAreRefused(t *testing.T) {
	t.Parallel()
	for _, id := range []es.AggregateID{
		order.ID(""), order.ID("\xff"), order.ID("a").InTenant("\xed\xa0\x80"), {Type: es.AggregateType{Name: "order"}, ID: "a"},
		{Type: es.AggregateType{Context: "c"}, ID: "a"}, {Type: es.AggregateType{Context: "c", Name: "a{b"}, ID: "a"},
	} {
		require.ErrorIs(t, id.Validate(), es.ErrInvalid)
		// what slips through all the same is not taken for another aggregate when it is read
		id, tenant, err := rediskey.ParseMember(rediskey.EventKeys(id).Member)
		require.True(t, err != nil || utf8.ValidString(id+tenant))
	}
	require.NoError(t, order.ID("a").InTenant("").Validate(), "an empty tenant is Wow's to have")
}

func TestKEY10_KindsNeverMeet(t *testing.T) {
	t.Parallel()
	kinds := map[string]string{}
	add := func(kind string, keys ...string) {
		for _, key := range keys {
			if other, known := kinds[key]; known {
				require.Equal(t, other, kind, key)
			}
			kinds[key] = kind
		}
	}
	names := []string{"a", "a.b", "b.c", "c", "v2:es:YQ.Yg:5", "a:event", "ids", "v2:snapshot:", "x:ids", "wow:redis"}
	for _, context := range names {
		for _, name := range names {
			typ := es.AggregateType{Context: context, Name: name}
			require.NoError(t, typ.Validate())
			for _, id := range ugly[1:] {
				k := rediskey.EventKeys(typ.ID(id))
				add("stream", k.Stream)
				add("requests", k.Requests)
				add("ids", k.IDs)
				add("outbox", k.Outbox)
				add("purged", k.Purged)
				add("snapshot", rediskey.Snapshot(typ.ID(id)))
				add("prepare", rediskey.Prepare(context, id), rediskey.Prepare(id, name))
				add("rolled back", rediskey.RolledBack(context, id), rediskey.RolledBack(id, name))
			}
			for _, bucket := range []int{0, 5, 12, rediskey.Buckets - 1} {
				add("ids", rediskey.Index(typ, bucket))
				add("outbox", rediskey.Outbox(typ, bucket))
				add("purged", rediskey.Purged(typ, bucket))
				add("fence", rediskey.Fence(typ, bucket))
			}
			// Wow joins topics by dots, so types may share a topic (as they do in Wow);
			// a topic never meets another kind, nor one of another suffix.
			add("command", rediskey.Command(typ))
			add("event", rediskey.Event(typ))
			add("state", rediskey.State(typ))
		}
	}
	add("topics", rediskey.Topics())
	add("machine", rediskey.Machine(0), rediskey.Machine(es.MaxMachine))
	for _, topic := range append(names, "topics", "machine.0", "headwater:", "a.b:event", "v2:es:YQ.Yg:5", "v2:prepare:") {
		add("dead letters", rediskey.DeadLetters(topic))
		for _, group := range append(ugly, "g.g:req_idx", "dlq") {
			add("retry", rediskey.Retry(topic, group))
			add("leases", rediskey.Leases(topic, group))
			add("failed", rediskey.Failed(topic, group))
			add("wow lease", rediskey.WowLease(topic, group, "c"))
		}
	}
}

func TestPreparePrefixIsLiteral(t *testing.T) {
	t.Parallel()
	for _, name := range ugly[1:] {
		prefix := rediskey.PreparePrefix(name)
		require.True(t, strings.HasPrefix(rediskey.Prepare(name, "k"), prefix))
		require.NotContains(t, strings.TrimPrefix(prefix, "v2:prepare:{"), "{")
		require.False(t, strings.ContainsAny(prefix, `*?[]\^`), "%q", prefix)
		require.False(t, strings.HasPrefix(rediskey.Prepare(name+"2", "k"), prefix), "order never matches order2")
	}
}

func TestCompareIsUTF16Order(t *testing.T) {
	t.Parallel()
	texts := append([]string{"`", "aa", "z", "中", "\U00010000", "\U0010ffff", "\ufffd", "😀a", "é😀", "é\ue000", "\ud7ff"}, ugly...)
	for _, a := range texts {
		for _, b := range texts {
			requireOrder(t, a, b)
		}
	}
	require.Less(t, rediskey.After("a")[1:], rediskey.EventKeys(order.ID("a\x00")).Member)
	require.Greater(t, rediskey.After("a")[1:], rediskey.EventKeys(order.ID("a")).Member)
}

func FuzzKeys(f *testing.F) {
	for _, s := range ugly {
		f.Add(s, "a", "(0)")
		f.Add("a", s, s)
	}
	f.Fuzz(func(t *testing.T, a, b, tenant string) {
		ida, idb := order.ID(a).InTenant(tenant), order.ID(b).InTenant(tenant)
		if ida.Validate() != nil || idb.Validate() != nil {
			return
		}
		ka, kb := rediskey.EventKeys(ida), rediskey.EventKeys(idb)
		requireReadBack(t, ka, a, tenant)
		require.Equal(t, a == b, ka.Stream == kb.Stream)
		require.Equal(t, a == b, ka.Member == kb.Member)
		requireOrder(t, a, b)
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"0061.KDAp", "d83dde00.", "0061.A", "de00d83d.x", "YQ.KDAp", "YR.", ".YQ"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if id, tenant, err := rediskey.ParseMember(s); err == nil {
			require.Equal(t, s, rediskey.EventKeys(order.ID(id).InTenant(tenant)).Member)
		}
		if id, tenant, err := rediskey.ParseIdentity(s); err == nil {
			require.Equal(t, s, rediskey.EventKeys(order.ID(id).InTenant(tenant)).Identity)
		}
	})
}

func requireReadBack(t *testing.T, k rediskey.Events, id, tenant string) {
	t.Helper()
	gotID, gotTenant, err := rediskey.ParseMember(k.Member)
	require.NoError(t, err)
	require.Equal(t, []string{id, tenant}, []string{gotID, gotTenant})
	gotID, gotTenant, err = rediskey.ParseIdentity(k.Identity)
	require.NoError(t, err)
	require.Equal(t, []string{id, tenant}, []string{gotID, gotTenant})
}

func requireOrder(t *testing.T, a, b string) {
	t.Helper()
	want := compareUnits(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
	got := rediskey.Compare(a, b)
	require.Equal(t, []bool{want < 0, want == 0}, []bool{got < 0, got == 0}, "%q and %q", a, b)
}

func compareUnits(a, b []uint16) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return int(a[i]) - int(b[i])
		}
	}
	return len(a) - len(b)
}

func randomText(r *rand.Rand) string {
	alphabet := []rune("ab:.@{}/-_\x00é中😀\ue000")
	text := make([]rune, r.IntN(6))
	for i := range text {
		text[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(text)
}

// slot is a key's slot in a cluster, computed apart from any client library.
func slot(key string) int {
	if i := strings.IndexByte(key, '{'); i >= 0 {
		if j := strings.IndexByte(key[i+1:], '}'); j > 0 {
			key = key[i+1 : i+1+j]
		}
	}
	var crc uint16
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc) % 16384
}
