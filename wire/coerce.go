package wire

import (
	"bytes"
	"math"
	"strconv"
	"strings"
)

// Wow reads an envelope's scalars by Jackson's rules, which convert freely. What
// follows converts alike.

// decimal is a JSON number as Java's BigDecimal holds it: digits × 10^-scale.
type decimal struct {
	negative bool
	digits   []byte // no leading zeros, but for a single 0
	scale    int
}

// parseDecimal takes a valid JSON number; one whose exponent is beyond BigDecimal's is not ok.
func parseDecimal(raw []byte) (d decimal, ok bool) {
	if raw[0] == '-' {
		d.negative, raw = true, raw[1:]
	}
	mantissa, exponent := raw, 0
	if i := bytes.IndexAny(raw, "eE"); i >= 0 {
		e, err := strconv.ParseInt(string(raw[i+1:]), 10, 32)
		if err != nil {
			return d, false
		}
		mantissa, exponent = raw[:i], int(e)
	}
	whole, fraction, _ := bytes.Cut(mantissa, []byte("."))
	d.scale = len(fraction) - exponent
	d.digits = bytes.TrimLeft(append(bytes.Clone(whole), fraction...), "0")
	if len(d.digits) == 0 {
		d.negative, d.digits = false, []byte("0")
	}
	return d, d.scale >= math.MinInt32 && d.scale <= math.MaxInt32
}

// String is BigDecimal's: 1e3 is "1E+3", 1.50 keeps its zero.
func (d decimal) String() string {
	var b strings.Builder
	if d.negative {
		b.WriteByte('-')
	}
	n, adjusted := len(d.digits), len(d.digits)-1-d.scale
	switch {
	case d.scale == 0:
		b.Write(d.digits)
	case d.scale > 0 && adjusted >= -6 && n > d.scale:
		b.Write(d.digits[:n-d.scale])
		b.WriteByte('.')
		b.Write(d.digits[n-d.scale:])
	case d.scale > 0 && adjusted >= -6:
		b.WriteString("0.")
		b.WriteString(strings.Repeat("0", d.scale-n))
		b.Write(d.digits)
	default:
		b.WriteByte(d.digits[0])
		if n > 1 {
			b.WriteByte('.')
			b.Write(d.digits[1:])
		}
		if adjusted != 0 {
			b.WriteByte('E')
			if adjusted > 0 {
				b.WriteByte('+')
			}
			b.WriteString(strconv.Itoa(adjusted))
		}
	}
	return b.String()
}

// truncated is the number without its fraction, if it fits.
func (d decimal) truncated(bits int) (int64, bool) {
	whole := d.digits
	switch {
	case d.scale >= len(whole) || whole[0] == '0':
		return 0, true
	case d.scale >= 0:
		whole = whole[:len(whole)-d.scale]
	case d.scale < -20:
		return 0, false
	default:
		whole = append(bytes.Clone(whole), bytes.Repeat([]byte("0"), -d.scale)...)
	}
	sign := ""
	if d.negative {
		sign = "-"
	}
	n, err := strconv.ParseInt(sign+string(whole), 10, bits)
	return n, err == nil
}

// isInteger says whether a JSON number has neither fraction nor exponent.
func isInteger(raw []byte) bool { return !bytes.ContainsAny(raw, ".eE") }

// numberText is the text that a number becomes where one is wanted.
func numberText(raw []byte) (string, bool) {
	if isInteger(raw) && string(raw) != "-0" {
		return string(raw), true
	}
	d, ok := parseDecimal(raw)
	return d.String(), ok
}

// toInt is the integer that a token stands for, null being 0.
func toInt(t token, bits int) (int64, bool) {
	switch t.kind {
	case null:
		return 0, true
	case text: // what is escaped is no number
		n, err := strconv.ParseInt(string(t.raw), 10, bits)
		return n, err == nil
	case number:
		if n, ok := smallInt(t.raw); ok && (bits == 64 || n == int64(int32(n))) {
			return n, true
		}
		d, ok := parseDecimal(t.raw)
		if !ok {
			return 0, false
		}
		return d.truncated(bits)
	}
	return 0, false
}

// smallInt reads up to 18 plain digits, which is what nearly every number is.
func smallInt(raw []byte) (n int64, ok bool) {
	if len(raw) > 18 {
		return 0, false
	}
	for _, c := range raw {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// toBool is the truth that a token stands for, null being false.
func toBool(t token) (value, ok bool) {
	switch t.kind {
	case null:
		return false, true
	case boolean:
		return t.raw[0] == 't', true
	case text:
		return string(t.raw) == "true", string(t.raw) == "true" || string(t.raw) == "false"
	case number:
		if isInteger(t.raw) {
			return len(bytes.Trim(t.raw, "-0")) > 0, true
		}
	}
	return false, false
}
