package rediskey_test

import (
	"encoding/json"
	"os"
	"strconv"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

type entry struct {
	Context, Alias, Aggregate, ID, Tenant, Identity, EventStream, RequestIndex string
	IDsIndex                                                                   string `json:"idsIndex"`
	IndexMember, IndexPrefix, IndexUpper, Scope, Snapshot                      string
	Bucket, EventSlot, SnapshotSlot                                            int
}

func (e entry) aggregate() es.AggregateID {
	return es.AggregateID{Type: es.AggregateType{Context: e.Context, Alias: e.Alias, Name: e.Aggregate}, Tenant: e.Tenant, ID: e.ID}
}

func bucketTag(e entry) string { return "{v2:es:" + e.Scope + ":" + strconv.Itoa(e.Bucket) + "}" }

type goldenKeys struct {
	Entries  []entry
	Rejected []struct {
		Why                   string
		Context               []string `json:"contextUtf16"`
		Aggregate             []string `json:"aggregateUtf16"`
		ID                    []string `json:"idUtf16"`
		Tenant                []string `json:"tenantUtf16"`
		EventStream, Snapshot struct{ Accepted string }
	}
	IndexMembers []struct{ Member, ID, Tenant, Rejected string }
	Base64URL    []struct{ Text, Decoded, Rejected string }
	Topics       []struct {
		Context, Aggregate, Alias, Command, Event, State string
		Stem                                             string `json:"toStringWithAlias"`
	}
	Scan struct {
		Context, Aggregate string
		Appended           []string `json:"appendedInOrder"`
		Order              []string `json:"orderReturned"`
		Queries            []struct {
			AfterID, Rejected string
			Limit             int
			IDs               []struct{ ID string }
		}
		Commands struct {
			AfterID            string
			Bucket0, Bucket127 struct{ Args []string }
		} `json:"commandsOfOneScan"`
	}
}

func readKeys(t *testing.T) (golden goldenKeys) {
	t.Helper()
	readJSON(t, "keys.json", &golden)
	return golden
}

func readJSON(t *testing.T, name string, v any) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, v))
}

func hexUnits(t *testing.T, s string) (units []uint16) {
	t.Helper()
	for i := 0; i < len(s); i += 4 {
		u, err := strconv.ParseUint(s[i:i+4], 16, 16)
		require.NoError(t, err)
		units = append(units, uint16(u))
	}
	return units
}

// wtf8 encodes lone surrogates as three bytes each, which is what such a Java string
// would be in Go if it got here at all.
func wtf8(t *testing.T, hex []string) string {
	t.Helper()
	var units []uint16
	for _, h := range hex {
		units = append(units, hexUnits(t, h)...)
	}
	var b []byte
	for i := 0; i < len(units); i++ {
		u := rune(units[i])
		if utf16.IsSurrogate(u) {
			if i+1 < len(units) {
				if r := utf16.DecodeRune(u, rune(units[i+1])); r != 0xFFFD {
					b, i = append(b, string(r)...), i+1
					continue
				}
			}
			b = append(b, 0xE0|byte(u>>12), 0x80|byte(u>>6&63), 0x80|byte(u&63))
			continue
		}
		b = append(b, string(u)...)
	}
	return string(b)
}
