package preparekey

import (
	"fmt"
	"unicode/utf8"

	"github.com/headwater-go/headwater/es"
)

func check(what, text string) error {
	switch {
	case text == "":
		return es.Invalid("%s is empty", what)
	case len(text) > es.MaxIDBytes:
		return fmt.Errorf("%w: %w: %s has %d bytes, more than %d", es.ErrInvalid, es.ErrTooLarge, what, len(text), es.MaxIDBytes)
	case !utf8.ValidString(text):
		return es.Invalid("%s is not valid UTF-8", what)
	}
	return nil
}

// fail says where err happened; nil stays nil.
func (k *Keys[V]) fail(op, key string, err error) error {
	if err == nil {
		return nil
	}
	return &es.Error{Op: fmt.Sprintf("%s %q of %q", op, clip(key), clip(k.name)), Err: err}
}

// clip keeps a text that is over its limit out of the logs.
func clip(text string) string {
	if len(text) > es.MaxIDBytes {
		return text[:64] + "…"
	}
	return text
}
