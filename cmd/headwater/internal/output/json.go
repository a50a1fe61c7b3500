package output

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"
)

// JSON writes v as one line of JSON. Besides what JSON itself escapes it escapes every
// character that a terminal would obey.
func JSON(w io.Writer, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(escape(b.Bytes()))
	return err
}

// escape works on a whole document, since such characters stand in strings only.
func escape(document []byte) []byte {
	var out bytes.Buffer
	for i := 0; i < len(document); {
		r, size := utf8.DecodeRune(document[i:])
		switch {
		case r < 0x7f || r == utf8.RuneError || !unicode.In(r, unicode.Cc, unicode.Cf):
			out.Write(document[i : i+size])
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
		i += size
	}
	return out.Bytes()
}

// Raw is stored bytes as a JSON value: themselves where they are JSON, else the object
// with "base64".
func Raw(data []byte) json.RawMessage {
	if json.Valid(data) && utf8.Valid(data) {
		return data
	}
	return json.RawMessage(`{"base64":"` + base64.StdEncoding.EncodeToString(data) + `"}`)
}

// Compact is stored bytes for a line of text: JSON without spaces, cleaned.
func Compact(data []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, data) == nil {
		return Clean(b.String())
	}
	return Clean(string(data))
}

// Indented is stored bytes for people: JSON over several lines, each cleaned.
func Indented(data []byte, prefix string) string {
	var b bytes.Buffer
	if json.Indent(&b, data, prefix, "  ") != nil {
		return Clean(string(data))
	}
	lines := bytes.Split(b.Bytes(), []byte("\n"))
	for i := range lines {
		lines[i] = []byte(Clean(string(lines[i])))
	}
	return string(bytes.Join(lines, []byte("\n")))
}
