package output

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Table is rows of text in columns that are as wide as they must be.
type Table struct {
	Head []string
	// Right are the columns whose text stands at the right, such as numbers.
	Right map[int]bool
	rows  [][]string
}

// Add adds a row. Its cells are cleaned.
func (t *Table) Add(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = Clean(fmt.Sprint(c))
	}
	t.rows = append(t.rows, row)
}

// Len is how many rows there are.
func (t *Table) Len() int { return len(t.rows) }

// Write writes the head and the rows.
func (t *Table) Write(w io.Writer) {
	widths := make([]int, len(t.Head))
	all := append([][]string{t.Head}, t.rows...)
	for _, row := range all {
		for i, cell := range row {
			widths[i] = max(widths[i], Width(cell))
		}
	}
	for _, row := range all {
		var b strings.Builder
		for i, cell := range row {
			gap := strings.Repeat(" ", widths[i]-Width(cell))
			if i > 0 {
				b.WriteString("  ")
			}
			if t.Right[i] {
				b.WriteString(gap + cell)
			} else {
				b.WriteString(cell + gap)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}

// Pairs writes names and values, one pair a line, the values in one column. They are cleaned.
func Pairs(w io.Writer, pairs ...any) {
	width := 0
	for i := 0; i < len(pairs); i += 2 {
		width = max(width, Width(fmt.Sprint(pairs[i])))
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		name := fmt.Sprint(pairs[i])
		fmt.Fprintf(w, "%s%s  %s\n", name, strings.Repeat(" ", width-Width(name)), Clean(fmt.Sprint(pairs[i+1])))
	}
}

// Age is a duration in its one largest unit, such as "4m" or "3d".
func Age(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + Age(-d)
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + "s"
	case d < time.Hour:
		return strconv.Itoa(int(d.Minutes())) + "m"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d.Hours())) + "h"
	}
	return strconv.Itoa(int(d.Hours()/24)) + "d"
}

// Bytes is a size in binary units, such as "1.5 MiB".
func Bytes(n int64) string {
	if n < 1024 {
		return strconv.FormatInt(n, 10) + " B"
	}
	f, unit := float64(n)/1024, 0
	for f >= 1024 && unit < 4 {
		f, unit = f/1024, unit+1
	}
	return strconv.FormatFloat(f, 'f', 1, 64) + " " + []string{"KiB", "MiB", "GiB", "TiB", "PiB"}[unit]
}

// Time is a time to the millisecond, in UTC; "" where there is none.
func Time(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// Or is text, or a dash where it is empty.
func Or(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
