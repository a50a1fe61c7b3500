package main

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/examples/order-service/replay"
)

const header = "ocel:eid,ocel:activity,ocel:timestamp,ocel:type:customers,ocel:type:items,ocel:type:orders,ocel:type:packages,ocel:type:products,weight,price\n"

func TestCompactLogReadsAsTheOriginal(t *testing.T) {
	t.Parallel()
	var compacted bytes.Buffer
	require.NoError(t, compact(strings.NewReader(header+
		`1.0,place order,2019-05-20 07:07:47.000Z, ,"['880001','880004']","['990001']", , ,5.172999999999999,524.96`+"\n"+
		`22367.0,package delivered,2020-08-25 14:30:41.000Z, , , ,"['661325']", ,0.172,699.0`+"\n"), &compacted))
	unzipped, err := gzip.NewReader(&compacted)
	require.NoError(t, err)
	entries, err := replay.Read(unzipped)
	require.NoError(t, err)
	require.Equal(t, []replay.Entry{
		{
			ID: "1", Activity: "place order", At: time.Date(2019, 5, 20, 7, 7, 47, 0, time.UTC),
			Order: "990001", Items: []string{"880001", "880004"}, Grams: 5173, Price: 52496,
		},
		{
			ID: "22367", Activity: "package delivered", At: time.Date(2020, 8, 25, 14, 30, 41, 0, time.UTC),
			Items: []string{}, Package: "661325", Grams: 172, Price: 69900,
		},
	}, entries)
}

func TestCompactNamesTheLineItCannotRead(t *testing.T) {
	t.Parallel()
	err := compact(strings.NewReader(header+`1.0,pay order,today, , ,"['990001']", , ,1.0,1.0`+"\n"), &bytes.Buffer{})
	require.ErrorContains(t, err, "line 2: ocel:timestamp")
	err = compact(strings.NewReader("ocel:eid,price\n1.0,2.0\n"), &bytes.Buffer{})
	require.ErrorContains(t, err, `no column "ocel:activity"`)
}
