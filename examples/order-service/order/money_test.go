package order_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/examples/order-service/order"
)

func TestMoneyIsReadExactly(t *testing.T) {
	t.Parallel()
	for text, cents := range map[string]order.Money{
		"0": 0, "0.01": 1, "12": 1200, "12.5": 1250, "524.96": 52496, "3255.9": 325590, "1580.0": 158000,
		"92233720368547758.07": math.MaxInt64,
	} {
		m, err := order.ParseMoney(text)
		require.NoError(t, err, text)
		require.Equal(t, cents, m, text)
	}
}

func TestMoneyIsNeverRoundedOrGuessed(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", ".", ".5", "5.", "-1", "+1", "1e3", "1,5", " 1", "10.200000000000001", "1.999", "0x10", "NaN", "٣", "92233720368547758.08",
	} {
		_, err := order.ParseMoney(text)
		require.Error(t, err, text)
		require.Contains(t, err.Error(), text)
	}
}

func TestMoneyIsTextInJSON(t *testing.T) {
	t.Parallel()
	for m, text := range map[order.Money]string{
		0: `"0.00"`, 5: `"0.05"`, 123456: `"1234.56"`, math.MaxInt64: `"92233720368547758.07"`,
	} {
		written, err := json.Marshal(m)
		require.NoError(t, err)
		require.Equal(t, text, string(written))
		var read order.Money
		require.NoError(t, json.Unmarshal(written, &read))
		require.Equal(t, m, read)
	}
	var m order.Money
	require.Error(t, json.Unmarshal([]byte(`5.24`), &m))
	require.Equal(t, "-92233720368547758.08", order.Money(math.MinInt64).String())
}
