package recovery

// values are what a script answers with: texts and integers.
type values []any

// readValues is a script's answer; anything but an array has no values.
func readValues(reply any) values {
	v, _ := reply.([]any)
	return v
}

// text is the i-th value, "" where it is none.
func (v values) text(i int) string {
	if i >= len(v) {
		return ""
	}
	s, _ := v[i].(string)
	return s
}

// number is the i-th value, 0 where it is none.
func (v values) number(i int) int64 {
	if i >= len(v) {
		return 0
	}
	n, _ := v[i].(int64)
	return n
}
