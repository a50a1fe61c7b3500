package redistest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// message is one request or reply of the Redis protocol, as it came.
type message struct {
	raw []byte
	// words are the texts of a request, in order; unused for replies.
	words []string
	// push says that the message answers no request.
	push bool
}

// readMessage reads one whole message, of either version of the protocol.
func readMessage(r *bufio.Reader) (message, error) {
	var m message
	err := m.readValue(r, true)
	return m, err
}

func (m *message) readValue(r *bufio.Reader, outermost bool) error {
	start := len(m.raw)
	line, err := r.ReadBytes('\n')
	if err != nil {
		return err
	}
	m.raw = append(m.raw, line...)
	head := string(bytes.TrimRight(m.raw[start:], "\r\n"))
	if head == "" {
		return nil
	}
	switch kind := head[0]; kind {
	case '$', '!', '=':
		return m.readText(r, head)
	case '*', '~', '>', '%', '|':
		n, err := strconv.Atoi(head[1:])
		if err != nil {
			return fmt.Errorf("protocol: %q", head)
		}
		if kind == '%' || kind == '|' {
			n *= 2
		}
		if kind == '|' {
			n++ // attributes stand before the value that they belong to
		}
		m.push = m.push || outermost && kind == '>'
		for range n {
			if err := m.readValue(r, false); err != nil {
				return err
			}
		}
	default:
		if outermost {
			m.words = strings.Fields(head) // a request without lengths, as people type it
		}
	}
	return nil
}

func (m *message) readText(r *bufio.Reader, head string) error {
	n, err := strconv.Atoi(head[1:])
	if err != nil {
		return fmt.Errorf("protocol: %q", head)
	}
	if n < 0 {
		return nil
	}
	text := make([]byte, n+2)
	if _, err := io.ReadFull(r, text); err != nil {
		return err
	}
	m.raw = append(m.raw, text...)
	m.words = append(m.words, string(text[:n]))
	return nil
}

// is reports whether a request begins with these words, in any case of letters.
func (m *message) is(command []string) bool {
	if len(command) == 0 || len(m.words) < len(command) {
		return false
	}
	for i, w := range command {
		if !strings.EqualFold(w, m.words[i]) {
			return false
		}
	}
	return true
}
