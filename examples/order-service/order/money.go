package order

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Money is an amount in cents; a float could not hold most of them exactly. It is
// written as text, in JSON too: "524.96".
type Money int64

// ParseMoney reads an amount that is not negative, with at most two decimals: "12",
// "12.5" and "12.50". It rounds nothing: a third decimal is an error.
func ParseMoney(text string) (Money, error) {
	whole, decimals, point := strings.Cut(text, ".")
	if !digits(whole) || point && !digits(decimals) || len(decimals) > 2 {
		return 0, fmt.Errorf("%q is not an amount of money", text)
	}
	cents, err := strconv.ParseInt(whole+(decimals + "00")[:2], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is more money than %v", text, Money(math.MaxInt64))
	}
	return Money(cents), nil
}

// String is the amount with two decimals.
func (m Money) String() string {
	sign, cents := "", uint64(m)
	if m < 0 {
		sign, cents = "-", -cents
	}
	return fmt.Sprintf("%s%d.%02d", sign, cents/100, cents%100)
}

// MarshalText writes the amount as [Money.String] does.
func (m Money) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads the amount as [ParseMoney] does.
func (m *Money) UnmarshalText(text []byte) error {
	parsed, err := ParseMoney(string(text))
	if err == nil {
		*m = parsed
	}
	return err
}

func digits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}
