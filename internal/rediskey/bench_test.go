package rediskey_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/internal/rediskey"
)

func TestAllocations(t *testing.T) {
	id := order.ID("0Tvcokgi0001001")
	sum := 0
	require.Zero(t, testing.AllocsPerRun(100, func() { sum += rediskey.Bucket("订单-0Tvcokgi0001001-😀") }))
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { rediskey.EventKeys(id) }), 1.0)
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { rediskey.Snapshot(id) }), 1.0)
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { rediskey.Prepare("username", "alice") }), 1.0)
}

func BenchmarkEventKeys(b *testing.B) {
	id := order.ID("0Tvcokgi0001001")
	b.ReportAllocs()
	for b.Loop() {
		rediskey.EventKeys(id)
	}
}

func BenchmarkParseMember(b *testing.B) {
	member := rediskey.EventKeys(order.ID("0Tvcokgi0001001")).Member
	b.ReportAllocs()
	for b.Loop() {
		_, _, _ = rediskey.ParseMember(member)
	}
}
