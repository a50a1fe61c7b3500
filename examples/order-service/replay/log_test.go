package replay_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/examples/order-service/item"
	"github.com/headwater-go/headwater/examples/order-service/order"
	"github.com/headwater-go/headwater/examples/order-service/replay"
)

const header = "id,activity,time,order,items,package,grams,price\n"

func TestEmbeddedLogIsWhole(t *testing.T) {
	t.Parallel()
	entries, err := replay.Log()
	require.NoError(t, err)
	require.Len(t, entries, 22_367)
	for i := range entries[1:] {
		require.False(t, entries[i+1].At.Before(entries[i].At), "entry %d goes back in time", i+1)
	}
	commands := replay.Commands(entries)
	require.Len(t, commands, 38_685)
	requests := map[string]bool{}
	for _, c := range commands {
		requests[c.RequestID] = true
	}
	require.Len(t, requests, len(commands), "each command has a request id of its own")
}

func TestEventYieldsOneCommandForEachObject(t *testing.T) {
	t.Parallel()
	entries, err := replay.Read(strings.NewReader(header + "7,place order,2019-05-20T07:07:47Z,o1,i1 i2,,3520,524.96\n"))
	require.NoError(t, err)
	commands := replay.Commands(entries)
	require.Len(t, commands, 3)
	for i, want := range []struct {
		id      es.AggregateID
		request string
		body    any
	}{
		{order.Type.ID("o1"), "7:order:o1", order.Place{Items: []string{"i1", "i2"}, Price: 52496}},
		{item.Type.ID("i1"), "7:item:i1", item.Place{Order: "o1"}},
		{item.Type.ID("i2"), "7:item:i2", item.Place{Order: "o1"}},
	} {
		require.Equal(t, want.id, commands[i].Aggregate)
		require.Equal(t, want.request, commands[i].RequestID)
		require.Equal(t, want.body, commands[i].Body)
		require.Equal(t, time.Date(2019, 5, 20, 7, 7, 47, 0, time.UTC), commands[i].CreateTime)
	}
}

func TestMalformedLineIsNamed(t *testing.T) {
	t.Parallel()
	const good = "1,confirm order,2019-05-20T07:07:47Z,o1,,,1,1.00\n"
	for name, c := range map[string]struct{ line, reason string }{
		"no id":            {",confirm order,2019-05-20T07:07:47Z,o1,,,1,1.00", "no id"},
		"unknown activity": {"2,eat order,2019-05-20T07:07:47Z,o1,,,1,1.00", `unknown activity "eat order"`},
		"bad time":         {"2,confirm order,yesterday,o1,,,1,1.00", `"yesterday" is not a time`},
		"bad weight":       {"2,confirm order,2019-05-20T07:07:47Z,o1,,,1.5,1.00", `"1.5" is not a weight`},
		"negative weight":  {"2,confirm order,2019-05-20T07:07:47Z,o1,,,-1,1.00", `"-1" is not a weight`},
		"bad price":        {"2,confirm order,2019-05-20T07:07:47Z,o1,,,1,1.005", `"1.005" is not an amount`},
		"object missing":   {"2,confirm order,2019-05-20T07:07:47Z,,,,1,1.00", `"confirm order" must name an order`},
		"object too many":  {"2,confirm order,2019-05-20T07:07:47Z,o1,i1,,1,1.00", `"confirm order" must name items: false`},
		"two orders":       {"2,confirm order,2019-05-20T07:07:47Z,o1 o2,,,1,1.00", "one of each at most"},
		"field missing":    {"2,confirm order,2019-05-20T07:07:47Z,o1,,,1", "wrong number of fields"},
		"open quote":       {`2,"confirm order,2019`, `"`},
	} {
		_, err := replay.Read(strings.NewReader(header + good + c.line + "\n"))
		require.Error(t, err, name)
		require.Contains(t, err.Error(), "line 3", name)
		require.Contains(t, err.Error(), c.reason, name)
	}
}

func TestLogWithoutItsColumnsIsRefused(t *testing.T) {
	t.Parallel()
	_, err := replay.Read(strings.NewReader("a,b,c,d,e,f,g,h\n"))
	require.ErrorContains(t, err, "line 1: the columns are")
	_, err = replay.Read(strings.NewReader(""))
	require.Error(t, err)
}
