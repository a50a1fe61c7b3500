package wire

import "bytes"

// plain are the bytes that stand for themselves in a text.
var plain = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= ' ' && c != '"' && c != '\\'
	}
	return t
}()

func (s *scanner) text() token {
	s.pos++
	if s.simple {
		if n := bytes.IndexByte(s.data[s.pos:], '"'); n >= 0 {
			t := token{kind: text, raw: s.data[s.pos : s.pos+n]}
			s.pos += n + 1
			return t
		}
	}
	t := token{kind: text}
	for start, i := s.pos, s.pos; ; i++ {
		for i < len(s.data) && plain[s.data[i]] {
			i++
		}
		s.pos = min(i, len(s.data))
		switch {
		case i >= len(s.data):
			s.fail("text without end")
			return token{}
		case s.data[i] == '"':
			t.raw = s.data[start:i]
			s.pos++
			return t
		case s.data[i] != '\\':
			s.fail("control character in a text")
			return token{}
		}
		t.escaped = true
		n := escapeLen(s.data[i:])
		if n == 0 {
			s.fail("bad escape in a text")
			return token{}
		}
		i += n - 1
	}
}

// escapeLen is the length of the escape that b begins with, 0 where it is none.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) >= 6 && hex4(b[2:6]) >= 0 {
			return 6
		}
	}
	return 0
}

func (s *scanner) word(w string, k kind) token {
	if len(s.data)-s.pos < len(w) || string(s.data[s.pos:s.pos+len(w)]) != w {
		s.fail("unknown word")
		return token{}
	}
	start := s.pos
	s.pos += len(w)
	return token{raw: s.data[start:s.pos], kind: k}
}

func (s *scanner) number() token {
	n := numberLen(s.data[s.pos:])
	if n == 0 {
		if s.pos >= len(s.data) {
			s.fail("unexpected end")
		} else {
			s.fail("unexpected character")
		}
		return token{}
	}
	s.pos += n
	return token{raw: s.data[s.pos-n : s.pos], kind: number}
}

// numberLen is the length of the JSON number that b begins with, 0 where it is none.
func numberLen(b []byte) int {
	i := 0
	if i < len(b) && b[i] == '-' {
		i++
	}
	whole := digits(b[i:])
	if whole == 0 || whole > 1 && b[i] == '0' {
		return 0
	}
	i += whole
	if i < len(b) && b[i] == '.' {
		n := digits(b[i+1:])
		if n == 0 {
			return 0
		}
		i += 1 + n
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		n := digits(b[i:])
		if n == 0 {
			return 0
		}
		i += n
	}
	return i
}

func digits(b []byte) int {
	for i, c := range b {
		if c < '0' || c > '9' {
			return i
		}
	}
	return len(b)
}
