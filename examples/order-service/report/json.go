package report

import (
	"encoding/json"
	"io"
	"math"

	"github.com/headwater-go/headwater/examples/order-service/order"
)

// WriteJSON writes the summary as one line, for programs.
func WriteJSON(w io.Writer, sum Summary) error {
	n := sum.Tally.Commands()
	return json.NewEncoder(w).Encode(struct {
		Commands          int         `json:"commands"`
		Applied           int         `json:"applied"`
		Duplicates        int         `json:"duplicates"`
		Refused           int         `json:"refused"`
		OrdersPaid        int         `json:"orders_paid"`
		PaidTotal         order.Money `json:"paid_total"`
		ItemsPacked       int         `json:"items_packed"`
		PackagesDelivered int         `json:"packages_delivered"`
		Seconds           float64     `json:"seconds"`
		CommandsPerSecond float64     `json:"commands_per_second"`
	}{
		n, sum.Tally.Applied, sum.Tally.Duplicates, sum.Tally.Refusals(),
		sum.Totals.OrdersPaid, sum.Totals.PaidTotal, sum.Totals.ItemsPacked, sum.Totals.PackagesDelivered,
		math.Round(sum.Took.Seconds()*1000) / 1000, math.Round(Rate(n, sum.Took)),
	})
}
