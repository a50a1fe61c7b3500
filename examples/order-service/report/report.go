// Package report shows a replay in the terminal.
package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/headwater-go/headwater/examples/order-service/order"
	"github.com/headwater-go/headwater/examples/order-service/replay"
	"github.com/headwater-go/headwater/examples/order-service/sales"
	"github.com/headwater-go/headwater/examples/order-service/shop"
)

// Summary is the outcome of a replay.
type Summary struct {
	Tally    replay.Tally
	Totals   shop.Totals
	Sales    sales.Figures
	Took     time.Duration
	Timeline []shop.Moment
}

// Style says how a terminal is written to. The zero value is plain text.
type Style struct {
	// Color allows escape sequences for colours.
	Color bool
}

func (s Style) paint(code, text string) string {
	if !s.Color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s Style) title(text string) string { return s.paint("1", text) }

// Write shows the summary, the read model with a chart of the months, and the timeline.
func (s Style) Write(w io.Writer, sum Summary) error {
	var b strings.Builder
	t := sum.Totals
	fmt.Fprintf(&b, "%s\n", s.title("The shop, as its events tell it"))
	fmt.Fprintf(&b, "  orders     %s, %s paid, %s together\n", Grouped(t.Orders), Grouped(t.OrdersPaid), money(t.PaidTotal))
	fmt.Fprintf(&b, "  items      %s, %s packed\n", Grouped(t.Items), Grouped(t.ItemsPacked))
	fmt.Fprintf(&b, "  packages   %s, %s delivered\n\n", Grouped(t.Packages), Grouped(t.PackagesDelivered))
	s.commands(&b, sum)
	s.states(&b, sum.Sales)
	s.chart(&b, sum.Sales.Revenue)
	s.timeline(&b, sum.Timeline)
	_, err := io.WriteString(w, b.String())
	return err
}

func (s Style) commands(b *strings.Builder, sum Summary) {
	n := sum.Tally.Commands()
	fmt.Fprintf(b, "%s\n", s.title("Commands"))
	fmt.Fprintf(b, "  %s in %.1f s, %s a second\n", Grouped(n), sum.Took.Seconds(), Grouped(int(Rate(n, sum.Took))))
	fmt.Fprintf(b, "  %s applied, %s carried out before, %s refused\n",
		Grouped(sum.Tally.Applied), Grouped(sum.Tally.Duplicates), Grouped(sum.Tally.Refusals()))
	for _, reason := range slices.Sorted(maps.Keys(sum.Tally.Refused)) {
		fmt.Fprintf(b, "    %s  %s\n", s.paint("31", fmt.Sprintf("%6s", Grouped(sum.Tally.Refused[reason]))), reason)
	}
	b.WriteString("\n")
}

func (s Style) states(b *strings.Builder, f sales.Figures) {
	fmt.Fprintf(b, "%s\n", s.title("Orders by state"))
	for _, status := range []order.Status{order.StatusPlaced, order.StatusConfirmed, order.StatusPaid} {
		fmt.Fprintf(b, "  %-9s  %s\n", status, Grouped(f.States[status]))
	}
	fmt.Fprintf(b, "  from %s commits heard on the event bus and %s fetched from the store\n\n", Grouped(f.Heard), Grouped(f.Fetched))
}

const chartWidth = 48

func (s Style) chart(b *strings.Builder, months map[string]order.Money) {
	if len(months) == 0 {
		return
	}
	most := slices.Max(slices.Collect(maps.Values(months)))
	fmt.Fprintf(b, "%s\n", s.title("Revenue by month"))
	for _, month := range slices.Sorted(maps.Keys(months)) {
		bar := strings.Repeat("█", int(months[month]*chartWidth/max(most, 1)))
		fmt.Fprintf(b, "  %s  %s %s\n", month, s.paint("36", bar), money(months[month]))
	}
	b.WriteString("\n")
}

func (s Style) timeline(b *strings.Builder, moments []shop.Moment) {
	if len(moments) == 0 {
		return
	}
	fmt.Fprintf(b, "%s\n", s.title("One order's timeline"))
	for _, m := range moments {
		fmt.Fprintf(b, "  %s  %-15s  %s\n", s.paint("2", m.At.Format("2006-01-02 15:04")), m.Who, m.What)
	}
}

// Rate is n a second.
func Rate(n int, took time.Duration) float64 {
	if took <= 0 {
		return 0
	}
	return float64(n) / took.Seconds()
}

// money writes an amount that is not negative as people read it: 4,631,233.45.
func money(m order.Money) string {
	return fmt.Sprintf("%s.%02d", Grouped(int(m/100)), int(m%100))
}

// Grouped writes a number that is not negative as people read it: 38,685.
func Grouped(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
