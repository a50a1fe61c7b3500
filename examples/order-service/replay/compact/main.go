// Command compact makes the log that package replay embeds from the original, read
// from standard input: it keeps the columns that the replay needs, and takes the noise
// of floats out of the weights.
//
//	go run ./examples/order-service/replay/compact < order-management.csv > log.csv.gz
package main

import (
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/headwater-go/headwater/examples/order-service/replay"
)

func main() {
	if err := compact(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "compact:", err)
		os.Exit(1)
	}
}

// original are the columns of the original that are kept, in the order of ours.
var original = []string{
	"ocel:eid", "ocel:activity", "ocel:timestamp", "ocel:type:orders", "ocel:type:items", "ocel:type:packages", "weight", "price",
}

func compact(r io.Reader, w io.Writer) error {
	in := csv.NewReader(r)
	header, err := in.Read()
	if err != nil {
		return err
	}
	column := map[string]int{}
	for i, name := range header {
		column[name] = i
	}
	zip, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	out := csv.NewWriter(zip)
	if err := out.Write(replay.Columns); err != nil {
		return err
	}
	for {
		fields, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		kept := make([]string, len(original))
		for i, name := range original {
			at, ok := column[name]
			if !ok {
				return fmt.Errorf("line 1: there is no column %q", name)
			}
			if kept[i], err = convert(name, fields[at]); err != nil {
				line, _ := in.FieldPos(at)
				return fmt.Errorf("line %d: %s: %w", line, name, err)
			}
		}
		if err := out.Write(kept); err != nil {
			return err
		}
	}
	out.Flush()
	return errors.Join(out.Error(), zip.Close())
}

// convert writes one field of the original as package replay reads it.
func convert(name, field string) (string, error) {
	switch name {
	case "ocel:eid": // "17.0"
		return strings.TrimSuffix(field, ".0"), nil
	case "ocel:timestamp": // "2019-05-20 07:07:47.000Z"
		at, err := time.Parse("2006-01-02 15:04:05.000Z07:00", field)
		return at.UTC().Format(time.RFC3339), err
	case "ocel:type:orders", "ocel:type:items", "ocel:type:packages": // "['880001','880004']", or a blank
		return strings.NewReplacer("[", "", "]", "", "'", "", ",", " ").Replace(strings.TrimSpace(field)), nil
	case "weight": // kilograms, such as "5.172999999999999"
		kilograms, err := strconv.ParseFloat(field, 64)
		return strconv.Itoa(int(math.Round(kilograms * 1000))), err
	}
	return field, nil
}
