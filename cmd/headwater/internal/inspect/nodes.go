package inspect

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/internal/redisrun"
)

// Node is one server that holds data: a master of a cluster, or the only one.
type Node struct {
	Addr   string
	Client redis.Cmdable
}

// EachNode calls f for every node, one after another, in the order of their addresses.
func EachNode(ctx context.Context, rdb redis.UniversalClient, f func(context.Context, Node) error) error {
	var nodes []Node
	switch c := rdb.(type) {
	case *redis.ClusterClient:
		var mu sync.Mutex
		err := c.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
			mu.Lock()
			defer mu.Unlock()
			nodes = append(nodes, Node{node.Options().Addr, node})
			return nil
		})
		if err != nil {
			return err
		}
		slices.SortFunc(nodes, func(a, b Node) int { return strings.Compare(a.Addr, b.Addr) })
	case *redis.Client:
		nodes = []Node{{c.Options().Addr, c}}
	}
	for _, n := range nodes {
		if err := f(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// ScanKeys walks through the keys of one node that fit a pattern, in pages.
func ScanKeys(ctx context.Context, node redis.Cmdable, match string, f func(keys []string) error) error {
	const page = 500
	for cursor := uint64(0); ; {
		var keys []string
		next, err := redisrun.Do(ctx, 0, func() (next uint64, err error) {
			keys, next, err = node.Scan(ctx, cursor, match, page).Result()
			return next, err
		})
		if err != nil {
			return err
		}
		if err := f(keys); err != nil {
			return err
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// Info is the fields of INFO.
type Info map[string]string

// ReadInfo asks a node for all sections.
func ReadInfo(ctx context.Context, node redis.Cmdable) (Info, error) {
	text, err := redisrun.Do(ctx, 0, func() (string, error) { return node.Info(ctx, "everything").Result() })
	info := Info{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info, err
}

// Int is a field that is a whole number, 0 where it is absent.
func (i Info) Int(name string) int64 {
	n, _ := strconv.ParseInt(i[name], 10, 64) // absent is 0
	return n
}

// Float is a field that is a number, 0 where it is absent.
func (i Info) Float(name string) float64 {
	f, _ := strconv.ParseFloat(i[name], 64) // absent is 0
	return f
}
