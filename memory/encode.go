package memory

import (
	"encoding/json"
	"fmt"

	"github.com/headwater-go/headwater/es"
)

// The limits of what can be stored are those of the Redis packages.
const (
	maxMessageBytes = 16 << 20
	maxNesting      = 512
)

// encode is v as JSON, or an [es.ErrInvalid] for what would not come back unchanged.
func encode(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, es.Invalid("it cannot be encoded: %w", err)
	}
	if len(data) > maxMessageBytes {
		return nil, fmt.Errorf("%w: %w: it has %d bytes, more than %d", es.ErrInvalid, es.ErrTooLarge, len(data), maxMessageBytes)
	}
	depth, lossy := inspect(data)
	if depth > maxNesting {
		return nil, fmt.Errorf("%w: %w: it is nested %d levels deep, more than %d", es.ErrInvalid, es.ErrTooLarge, depth, maxNesting)
	}
	if lossy {
		return nil, es.Invalid("it holds text that is not valid UTF-8")
	}
	return data, nil
}

// inspect finds how deep valid JSON is nested, and whether it holds the escape that
// encoding/json writes for an invalid byte: a real U+FFFD is written as it is.
func inspect(data []byte) (deepest int, lossy bool) {
	depth, inText := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inText && c == '\\':
			if i+6 <= len(data) && string(data[i+1:i+6]) == "ufffd" {
				lossy = true
			}
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest, lossy
}
