package snapshot

import (
	"errors"
	"fmt"

	"github.com/headwater-go/headwater/es"
)

// fail says where err happened; nil stays nil.
func fail(op string, id es.AggregateID, version int, err error) error {
	if err == nil {
		return nil
	}
	return &es.Error{Op: op, Aggregate: id, Version: version, Err: err}
}

// unreadable carries the bytes to whoever replaces them. A snapshot of another codec
// is left alone: not the bytes are at fault, but how the reader is set up.
func unreadable(raw []byte, err error) error {
	if errors.Is(err, es.ErrWrongFormat) {
		return err
	}
	return &es.UnreadableSnapshot{Raw: raw, Err: err}
}

// wrongType makes a key that holds no string a snapshot that cannot be read; any other
// error of a read is a fault of the server and stays what it is.
func wrongType(err error) error {
	if errors.Is(err, es.ErrCorrupt) {
		return unreadable(nil, err)
	}
	return err
}

func checkVersion(v int) error {
	if v < 0 || v > es.MaxVersion {
		return fmt.Errorf("version %d is not between 0 and %d", v, es.MaxVersion)
	}
	return nil
}

func tooLarge(size, limit int) error {
	return fmt.Errorf("%w: it has %d bytes, more than %d", es.ErrTooLarge, size, limit)
}

func unexpected(answer any) error { return fmt.Errorf("unexpected answer %v", answer) }
