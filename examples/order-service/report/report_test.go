package report_test

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/examples/order-service/order"
	"github.com/headwater-go/headwater/examples/order-service/replay"
	"github.com/headwater-go/headwater/examples/order-service/report"
	"github.com/headwater-go/headwater/examples/order-service/sales"
	"github.com/headwater-go/headwater/examples/order-service/shop"
)

var summary = report.Summary{
	Tally: replay.Tally{Applied: 1500, Duplicates: 20, Refused: map[string]int{"order is paid already": 3, "item is out of stock": 1}},
	Totals: shop.Totals{
		Orders: 2000, OrdersPaid: 1999, PaidTotal: 463123305, Items: 12, ItemsPacked: 11, Packages: 3, PackagesDelivered: 2,
	},
	Sales: sales.Figures{
		States:  map[order.Status]int{order.StatusPaid: 1999, order.StatusPlaced: 1},
		Revenue: map[string]order.Money{"2020-01": 960050, "2019-12": 480025, "2020-02": 0},
		Heard:   7997, Fetched: 3,
	},
	Took:     2 * time.Second,
	Timeline: []shop.Moment{{At: time.Date(2019, 5, 20, 7, 7, 47, 0, time.UTC), Who: "order 990001", What: "confirmed"}},
}

func TestReportInPlainText(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, report.Style{}.Write(&out, summary))
	require.Equal(t, `The shop, as its events tell it
  orders     2,000, 1,999 paid, 4,631,233.05 together
  items      12, 11 packed
  packages   3, 2 delivered

Commands
  1,524 in 2.0 s, 762 a second
  1,500 applied, 20 carried out before, 4 refused
         1  item is out of stock
         3  order is paid already

Orders by state
  placed     1
  confirmed  0
  paid       1,999
  from 7,997 commits heard on the event bus and 3 fetched from the store

Revenue by month
  2019-12  `+strings.Repeat("█", 24)+` 4,800.25
  2020-01  `+strings.Repeat("█", 48)+` 9,600.50
  2020-02   0.00

One order's timeline
  2019-05-20 07:07  order 990001     confirmed
`, out.String())
}

func TestColoursAreAllThatColourAdds(t *testing.T) {
	t.Parallel()
	var plain, colored bytes.Buffer
	require.NoError(t, report.Style{}.Write(&plain, summary))
	require.NoError(t, report.Style{Color: true}.Write(&colored, summary))
	require.NotEqual(t, plain.String(), colored.String())
	stripped := colored.String()
	for _, code := range []string{"0", "1", "2", "31", "36"} {
		stripped = strings.ReplaceAll(stripped, "\x1b["+code+"m", "")
	}
	require.Equal(t, plain.String(), stripped)
}

func TestEmptyShopHasNoChart(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, report.Style{}.Write(&out, report.Summary{}))
	require.NotContains(t, out.String(), "month")
	require.Contains(t, out.String(), "0 in 0.0 s, 0 a second")
}

func TestJSONIsOneLine(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, report.WriteJSON(&out, summary))
	require.Equal(t, `{"commands":1524,"applied":1500,"duplicates":20,"refused":4,"orders_paid":1999,"paid_total":"4631233.05",`+
		`"items_packed":11,"packages_delivered":2,"seconds":2,"commands_per_second":762}`+"\n", out.String())
}

func TestProgressEndsWithWhatIsDone(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(t.Context())
	end()
	var done atomic.Int64
	done.Store(1500)

	var lines, bar bytes.Buffer
	report.Style{}.Show(ended, &lines, report.Progress{Done: &done, All: 2000})
	require.Contains(t, lines.String(), " 75 %  1,500 of 2,000 commands")
	require.NotContains(t, lines.String(), "\r")

	report.Style{}.Show(ended, &bar, report.Progress{Done: &done, All: 2000, Bar: true})
	require.Contains(t, bar.String(), "\r"+strings.Repeat("█", 22)+strings.Repeat("░", 8)+"  75 %  1,500 of 2,000 commands")
	require.True(t, strings.HasSuffix(bar.String(), "\n"))
}

func TestHintIsShownOnlyWhenNothingMoves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		var out bytes.Buffer
		p := report.Progress{Done: new(atomic.Int64), All: 100, Hint: "is a worker running?"}
		showing := make(chan struct{})
		go func() {
			defer close(showing)
			report.Style{}.Show(ctx, &out, p)
		}()
		for range 4 { // something is done each eight seconds
			time.Sleep(8 * time.Second)
			p.Done.Add(1)
		}
		time.Sleep(12 * time.Second)
		end()
		<-showing
		require.Equal(t, "nothing was carried out for 10s; is a worker running?\n", out.String())
	})
}
