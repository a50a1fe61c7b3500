package estest

import (
	"context"
	"crypto/rand"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

var commandChecks = []check[CommandBus]{
	{"a command arrives whole", commandWhole},
	{"what is unset of a command gets its default", commandDefaults},
	{"a refusal is an answer: the command is done", commandRefused},
	{"void commands are passed over", commandVoid},
	{"a command that cannot be is refused before it is sent", commandInvalid},
}

func commandWhole(t *testing.T, k kit[CommandBus]) {
	at := 7
	body := Change{
		Data: "\x00\u2028<>&\"\\é😀\ufeff", Number: math.MinInt64, Labels: map[string]string{"": "x", "k": ""},
		Tree: []any{nil, true, "x", []any{}, map[string]any{"k": "v"}},
	}
	sent := es.Command{
		ID: rand.Text(), Aggregate: k.typ.ID("订单-😀").InTenant("t-1"), Name: "change", RequestID: rand.Text(), OwnerID: "owner-1", SpaceID: "space-1",
		Header: es.Header{{Key: es.HeaderTraceID, Value: "trace"}, {Key: "z", Value: "é\n"}, {Key: "a", Value: ""}}, Expected: &at,
		AllowCreate: true, BodyType: "estest.change", Body: body, CreateTime: time.Now().Truncate(time.Millisecond).UTC(),
	}
	require.NoError(t, k.store.Send(t.Context(), sent))
	got := handled(t, k, 1, nil)[0]
	sent.Digest = got.Digest // whoever reads it may set one
	require.Equal(t, sent, got)
}

// handled subscribes a new group and returns the n commands that arrive, and no more.
func handled(t *testing.T, k kit[CommandBus], n int, answer func(es.Command) error) []es.Command {
	t.Helper()
	return arriving(t, n, func(ctx context.Context, got chan<- es.Command) error {
		return k.store.Subscribe(ctx, newSubscription(k.typ), func(_ context.Context, c es.Command) (es.Result, error) {
			got <- c
			if answer == nil {
				return es.Result{}, nil
			}
			return es.Result{Version: 1}, answer(c)
		})
	})
}

func commandDefaults(t *testing.T, k kit[CommandBus]) {
	zero := 0
	require.NoError(t, k.store.Send(t.Context(), es.Command{Aggregate: k.typ.ID("a-1"), Body: Change{}}))
	require.NoError(t, k.store.Send(t.Context(), es.Command{Aggregate: k.typ.ID("a-1"), Body: Change{}, Expected: &zero}))
	require.NoError(t, k.store.Send(t.Context(), es.NewCreateCommand(k.typ.ID("a-1"), Change{})))
	got := handled(t, k, 3, nil)
	for _, c := range got {
		require.NotEmpty(t, c.ID)
		require.Equal(t, c.ID, c.RequestID)
		require.Equal(t, c.ID, c.Header.Get(es.HeaderTraceID))
		require.Equal(t, "change", c.Name)
		require.Equal(t, es.DefaultTenant, c.Aggregate.Tenant)
		require.WithinDuration(t, time.Now(), c.CreateTime, patience)
	}
	require.NotEqual(t, got[0].ID, got[1].ID)
	require.Equal(t, []bool{false, true, true}, []bool{got[0].Create, got[1].Create, got[2].Create})
	require.Nil(t, got[0].Expected)
	require.Zero(t, *got[2].Expected)
}

func commandRefused(t *testing.T, k kit[CommandBus]) {
	for n := range 3 {
		require.NoError(t, k.store.Send(t.Context(), es.NewCommand(k.typ.ID("a-1"), Change{Number: int64(n)})))
	}
	got := handled(t, k, 3, func(c es.Command) error {
		if body, _ := c.Body.(Change); body.Number < 2 {
			return es.Refuse(errOops)
		}
		return nil
	})
	for n, c := range got {
		require.Equal(t, Change{Number: int64(n)}, c.Body, "each once")
	}
}

func commandVoid(t *testing.T, k kit[CommandBus]) {
	void := es.NewCommand(k.typ.ID("a-1"), Change{Data: "for others"})
	void.Void = true
	require.NoError(t, k.store.Send(t.Context(), void))
	require.NoError(t, k.store.Send(t.Context(), es.NewCommand(k.typ.ID("a-1"), Change{Data: "for us"})))
	require.Equal(t, Change{Data: "for us"}, handled(t, k, 1, nil)[0].Body)
}

func commandInvalid(t *testing.T, k kit[CommandBus]) {
	command := func(change func(*es.Command)) es.Command {
		c := es.NewCommand(k.typ.ID("a-1"), Change{})
		c.RequestID = "r-1"
		change(&c)
		return c
	}
	negative := -1
	bad := map[string]es.Command{
		"no body":             command(func(c *es.Command) { c.Body = nil }),
		"a negative version":  command(func(c *es.Command) { c.Expected = &negative }),
		"what cannot be JSON": command(func(c *es.Command) { c.Body = Change{Tree: func() {}} }),
		"NaN":                 command(func(c *es.Command) { c.Body = Change{Tree: math.NaN()} }),
		"invalid UTF-8":       command(func(c *es.Command) { c.Body = Change{Data: "a\xffb"} }),
	}
	for what, text := range badTexts() {
		if text != "" {
			bad["id "+what] = command(func(c *es.Command) { c.ID = text })
			bad["owner "+what] = command(func(c *es.Command) { c.OwnerID = text })
			bad["space "+what] = command(func(c *es.Command) { c.SpaceID = text })
			bad["name "+what] = command(func(c *es.Command) { c.Name = text })
		}
	}
	for what, c := range bad {
		t.Log(what)
		requireAt(t, k.store.Send(t.Context(), c), es.ErrInvalid, es.Error{Aggregate: c.Aggregate, RequestID: "r-1"})
	}
	large := command(func(c *es.Command) { c.Body = Change{Data: strings.Repeat("x", 16<<20)} })
	requireAt(t, k.store.Send(t.Context(), large), es.ErrTooLarge, es.Error{Aggregate: large.Aggregate, RequestID: "r-1"})
	require.NoError(t, k.store.Send(t.Context(), command(func(c *es.Command) { c.Body = Change{Data: "good"} })))
	require.Equal(t, Change{Data: "good"}, handled(t, k, 1, nil)[0].Body, "nothing of it was sent")
}
