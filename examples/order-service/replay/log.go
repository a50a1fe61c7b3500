// Package replay turns a year of a shop's log into commands and has them carried out.
//
// The log is the order management object-centric event log, as shipped with pm4py's
// test data: 22,367 events of 2019 and 2020, each naming an order, items or a package.
// log.csv.gz is what folder compact made of it.
package replay

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/headwater-go/headwater/examples/order-service/order"
)

//go:embed log.csv.gz
var embedded []byte

// Columns are the fields of a line of the log, as its first line names them. Items
// are separated by blanks; the time is RFC 3339.
var Columns = []string{"id", "activity", "time", "order", "items", "package", "grams", "price"}

// Entry is one event of the log.
type Entry struct {
	ID       string
	Activity string
	At       time.Time
	// Order, Items and Package are the objects that the event names.
	Order   string
	Items   []string
	Package string
	// Grams and Price are those of all the objects together.
	Grams int
	Price order.Money
}

// Log is the embedded log.
func Log() ([]Entry, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(embedded))
	if err != nil {
		return nil, fmt.Errorf("embedded log: %w", err)
	}
	return Read(unzipped)
}

// Read reads a log. A line that is not an event is an error that says which line.
func Read(r io.Reader) ([]Entry, error) {
	lines := csv.NewReader(r)
	lines.FieldsPerRecord = len(Columns)
	lines.ReuseRecord = true
	var entries []Entry
	for header := true; ; header = false {
		fields, err := lines.Read()
		if errors.Is(err, io.EOF) && !header {
			return entries, nil
		}
		if err != nil {
			return nil, fmt.Errorf("log: %w", err) // it says the line
		}
		if header {
			if strings.Join(fields, ",") != strings.Join(Columns, ",") {
				return nil, fmt.Errorf("log line 1: the columns are %q, not %q", fields, Columns)
			}
			continue
		}
		entry, err := parse(fields)
		if err != nil {
			line, _ := lines.FieldPos(0)
			return nil, fmt.Errorf("log line %d: %w", line, err)
		}
		entries = append(entries, entry)
	}
}

func parse(fields []string) (Entry, error) {
	e := Entry{ID: fields[0], Activity: fields[1], Order: fields[3], Items: strings.Fields(fields[4]), Package: fields[5]}
	if e.ID == "" {
		return e, errors.New("the event has no id")
	}
	if strings.Contains(e.Order+e.Package, " ") {
		return e, fmt.Errorf("order %q, package %q: an event names one of each at most", e.Order, e.Package)
	}
	var err error
	if e.At, err = time.Parse(time.RFC3339, fields[2]); err != nil {
		return e, fmt.Errorf("%q is not a time", fields[2])
	}
	if e.Grams, err = strconv.Atoi(fields[6]); err != nil || e.Grams < 0 {
		return e, fmt.Errorf("%q is not a weight in grams", fields[6])
	}
	if e.Price, err = order.ParseMoney(fields[7]); err != nil {
		return e, err
	}
	return e, e.check()
}
