package soak

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"time"
)

// What a handler has done with a message.
const (
	Begun   = 'b'
	Handled = 'h'
	Failed  = 'f'
)

// Record is one line of a ledger.
type Record struct {
	What             rune
	At               int64 // ms
	Topic, Group, ID string
	N                int
	Aggregate        string
	Attempt          int
	Recovered        bool
}

// Ledger is what one process writes of its handlers. Each record is one write to a file,
// which a kill of the process cannot take back.
type Ledger struct {
	mu   sync.Mutex
	file *os.File
}

// OpenLedger begins the ledger of a process.
func OpenLedger(path string) (*Ledger, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // the soak's own directory
	return &Ledger{file: f}, err
}

const layout = "%c %d %s %s %s %d %s %d %t\n"

// Write appends a record, with the time.
func (l *Ledger) Write(r Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := fmt.Sprintf(layout, r.What, time.Now().UnixMilli(), r.Topic, r.Group, r.ID, r.N, r.Aggregate, r.Attempt, r.Recovered)
	_, err := l.file.WriteString(line)
	return err
}

// ReadLedger is all whole records of a ledger, in the order written. A kill may have cut
// the last line, of which nobody has heard then.
func ReadLedger(path string) ([]Record, error) {
	data, err := os.ReadFile(path) //nolint:gosec // the soak's own directory
	if err != nil {
		return nil, err
	}
	data = data[:bytes.LastIndexByte(data, '\n')+1]
	var records []Record
	for line := range bytes.Lines(data) {
		var r Record
		if _, err := fmt.Sscanf(string(line), layout, &r.What, &r.At, &r.Topic, &r.Group, &r.ID, &r.N, &r.Aggregate, &r.Attempt, &r.Recovered); err != nil {
			return nil, fmt.Errorf("%s: line %q: %w", path, line, err)
		}
		records = append(records, r)
	}
	return records, nil
}
