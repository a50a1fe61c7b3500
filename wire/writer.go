package wire

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/headwater-go/headwater/es"
)

// writer appends one document. The first fault stays in err. A key is given as it
// stands on the wire, with comma, quotes and colon.
type writer struct {
	b   []byte
	err error
}

// writers keep their buffers, so that a document costs one allocation: its own.
var writers sync.Pool // of *writer

// maxKept is the largest buffer that is kept for the next document.
const maxKept = 64 << 10

func newWriter() *writer {
	w, ok := writers.Get().(*writer)
	if !ok {
		return new(writer)
	}
	w.b, w.err = w.b[:0], nil
	return w
}

// done returns the document, or the fault, and gives the writer back.
func (w *writer) done(what string) ([]byte, error) {
	b, err := []byte(nil), w.err
	if err == nil {
		b = bytes.Clone(w.b)
	} else {
		err = fmt.Errorf("%s: %w", what, err)
	}
	if cap(w.b) <= maxKept {
		writers.Put(w)
	}
	return b, err
}

// Write implements io.Writer for the encoders of bodies.
func (w *writer) Write(p []byte) (int, error) {
	w.b = append(w.b, p...)
	return len(p), nil
}

// WriteByte implements io.ByteWriter, without which msgpack allocates for every byte.
func (w *writer) WriteByte(c byte) error {
	w.b = append(w.b, c)
	return nil
}

func (w *writer) fail(key string, err error) {
	if w.err == nil {
		w.err = fmt.Errorf("%s: %w", strings.Trim(key, `{[,":`), err)
	}
}

func (w *writer) lit(s string) { w.b = append(w.b, s...) }

func (w *writer) text(key, s string) {
	w.lit(key)
	var ok bool
	if w.b, ok = appendText(w.b, s); !ok {
		w.fail(key, es.Invalid("%q is not valid UTF-8", s))
	}
}

func (w *writer) integer(key string, n int) {
	if n < math.MinInt32 || n > math.MaxInt32 {
		w.fail(key, es.Invalid("%d is beyond 32 bits", n))
	}
	w.lit(key)
	w.b = strconv.AppendInt(w.b, int64(n), 10)
}

func (w *writer) time(key string, t time.Time) {
	w.lit(key)
	w.b = strconv.AppendInt(w.b, toMillis(t), 10)
}

func (w *writer) flag(key string, v bool) {
	w.lit(key)
	w.b = strconv.AppendBool(w.b, v)
}

func (w *writer) body(key string, body any) {
	w.lit(key)
	if err := w.appendJSON(body); err != nil {
		w.fail(key, err)
	}
}

// notNull is a state, which no reader takes as null.
func (w *writer) notNull(key string, state any) {
	w.lit(key)
	start := len(w.b)
	if err := w.appendJSON(state); err != nil {
		w.fail(key, err)
	} else if string(bytes.TrimSpace(w.b[start:])) == "null" {
		w.fail(key, es.Invalid("it is written as null"))
	}
}

// object is a state where readers insist on an object.
func (w *writer) object(key string, state any) {
	start := len(w.b) + len(key)
	w.notNull(key, state)
	if w.err == nil && bytes.TrimSpace(w.b[start:])[0] != '{' {
		w.fail(key, es.Invalid("%T is not written as an object", state))
	}
}

func (w *writer) header(key string, h es.Header) {
	w.lit(key)
	w.b = append(w.b, '{')
	for i := range h {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		w.text("", h[i].Key)
		w.text(":", h[i].Value)
	}
	w.b = append(w.b, '}')
}

// tags writes the names in order, so that equal tags are equal bytes.
func (w *writer) tags(key string, tags es.Tags) {
	w.lit(key)
	w.b = append(w.b, '{')
	for i, name := range slices.Sorted(maps.Keys(tags)) {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		w.text("", name)
		w.b = append(w.b, ':')
		w.tagValues(tags[name])
	}
	w.b = append(w.b, '}')
}

func (w *writer) tagValues(values []string) {
	if values == nil {
		w.lit("null")
		return
	}
	w.b = append(w.b, '[')
	for i, v := range values {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		w.text("", v)
	}
	w.b = append(w.b, ']')
}

// appendText writes a JSON text as Jackson does: no escape that is not needed, the
// hexadecimal ones in upper case. Invalid UTF-8 is not ok.
func appendText(b []byte, s string) (_ []byte, ok bool) {
	b = append(b, '"')
	start, ascii := 0, true
	for i := range len(s) {
		c := s[i]
		if plain[c] {
			ascii = ascii && c < utf8.RuneSelf
			continue
		}
		b = append(b, s[start:i]...)
		b = appendEscape(b, c)
		start = i + 1
	}
	b = append(b, s[start:]...)
	return append(b, '"'), ascii || utf8.ValidString(s)
}

func appendEscape(b []byte, c byte) []byte {
	if i := strings.IndexByte("\"\\\b\f\n\r\t", c); i >= 0 {
		return append(b, '\\', `"\bfnrt`[i])
	}
	const digits = "0123456789ABCDEF"
	return append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
}
