package eventstore_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/internal/redistest"
)

// goldenScan is how Wow v8.10.10 scanned one type (testdata/scan.json).
type goldenScan struct {
	Appended []string `json:"appendedInOrder"`
	Order    []string `json:"orderReturned"`
	Queries  []scanQuery
}

type scanQuery struct {
	AfterID, Rejected string
	Limit             int
	IDs               []idAndTenant
}

type idAndTenant struct{ ID, Tenant string }

// tenants are those of all ids; the query that begins before the first one names them.
func (g goldenScan) tenants(t *testing.T) map[string]string {
	t.Helper()
	tenants := map[string]string{}
	for _, q := range g.Queries {
		for _, id := range q.IDs {
			tenants[id.ID] = id.Tenant
		}
	}
	require.Len(t, tenants, len(g.Appended))
	return tenants
}

func TestWowsScans(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/scan.json")
	require.NoError(t, err)
	var golden goldenScan
	require.NoError(t, json.Unmarshal(data, &golden))
	require.Len(t, golden.Queries, 26)
	tenants := golden.tenants(t)
	redistest.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		typ := newType()
		s := open(rdb, typ)
		for _, id := range golden.Appended {
			add(t, s, commitOf(typ.ID(id).InTenant(tenants[id]), 1))
		}
		require.Equal(t, golden.Order, scan(t, s, typ))

		// page is as many ids as Wow was asked for; how many are read is the caller's matter here.
		page := func(after string, limit int) []idAndTenant {
			ids := []idAndTenant{}
			if limit == 0 {
				return ids
			}
			for id, err := range s.Scan(t.Context(), typ, after) {
				require.NoError(t, err)
				if ids = append(ids, idAndTenant{id.ID, id.Tenant}); len(ids) == limit {
					break
				}
			}
			return ids
		}
		for _, q := range golden.Queries {
			switch {
			case q.Rejected != "" && q.AfterID == "": // Wow refuses it; here it is the beginning
				require.Equal(t, golden.Order[0], page("", q.Limit)[0].ID)
			case q.Rejected != "" && q.Limit < 0: // Wow refuses it; Scan has no limit that could be negative
				require.Equal(t, -1, q.Limit)
			case q.Rejected != "": // a lone surrogate, which is no text in Go: its three bytes come nearest
				_, err := outcome(s.Scan(t.Context(), typ, "\xed\xa0\x80"))
				require.ErrorIs(t, err, es.ErrInvalid)
			case q.AfterID == "~": // Wow's mark of the end; here an id like any other
				require.Empty(t, q.IDs)
				require.Equal(t, idAndTenant{"~~", tenants["~~"]}, page("~", q.Limit)[0])
			default:
				require.Equal(t, q.IDs, page(q.AfterID, q.Limit), "%d after %q", q.Limit, q.AfterID)
			}
		}
	})
}
