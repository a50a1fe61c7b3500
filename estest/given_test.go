package estest_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/aggregate"
	"github.com/headwater-go/headwater/es"
	"github.com/headwater-go/headwater/estest"
)

// A purse, as a user would write it.
type (
	purse    struct{ Opened, Coins int }
	deposit  struct{ Coins int }
	withdraw struct{ Coins int }

	opened    struct{ By string }
	deposited struct{ Coins int }
	withdrawn struct{ Coins int }
)

func (deposit) CommandName() string  { return "deposit" }
func (withdraw) CommandName() string { return "withdraw" }
func (opened) EventName() string     { return "opened" }
func (deposited) EventName() string  { return "deposited" }
func (withdrawn) EventName() string  { return "withdrawn" }

var errTooFew = errors.New("too few coins")

var purses = aggregate.Decider[purse]{
	Type: es.AggregateType{Context: "bank", Name: "purse"},
	Decide: func(p purse, c es.Command) (es.Events, error) {
		switch body := c.Body.(type) {
		case deposit:
			if body.Coins == 0 {
				return nil, nil
			}
			if p.Opened == 0 {
				return es.Events{opened{By: c.Aggregate.ID + " " + c.OwnerID}, deposited(body)}, nil
			}
			return es.Events{deposited(body)}, nil
		case withdraw:
			if body.Coins > p.Coins {
				return es.Events{withdrawn{}}, fmt.Errorf("%w: %d", errTooFew, p.Coins)
			}
			return es.Events{withdrawn(body)}, nil
		}
		return nil, es.Invalid("command %q is unknown", c.Name)
	},
	Evolve: func(p purse, e es.Event) purse {
		switch body := e.Body.(type) {
		case opened:
			p.Opened = e.Version
		case deposited:
			p.Coins += body.Coins
		case withdrawn:
			p.Coins -= body.Coins
		}
		return p
	},
}

func TestScenariosThatHold(t *testing.T) {
	t.Parallel()
	estest.Given(purses).When(deposit{Coins: 3}).Then(t, opened{By: "a-1 "}, deposited{Coins: 3})
	estest.Given(purses).When(deposit{Coins: 3}).ThenState(t, purse{Opened: 1, Coins: 3})
	estest.Given(purses, opened{}, deposited{Coins: 3}).When(withdraw{Coins: 4}).ThenError(t, errTooFew)
	estest.Given(purses, opened{}).When(deposit{}).ThenNothing(t)
	estest.Given(purses, opened{}, deposited{Coins: 3}).When(withdraw{Coins: 1}).
		Then(t, withdrawn{Coins: 1}).ThenState(t, purse{Opened: 1, Coins: 2})
	estest.Given(purses, opened{}, deposited{Coins: 3}).When(withdraw{Coins: 9}).
		ThenError(t, errTooFew).ThenState(t, purse{Opened: 1, Coins: 3})
}

func TestHistoryEvolvesOneCommitForEachEvent(t *testing.T) {
	t.Parallel()
	estest.Given(purses, deposited{Coins: 1}, opened{}).When(deposit{}).ThenState(t, purse{Opened: 2, Coins: 1})
}

func TestWhenCommandFillsOnlyWhatIsUnset(t *testing.T) {
	t.Parallel()
	c := es.NewCommand(purses.Type.ID("p-7"), deposit{Coins: 1})
	c.OwnerID = "ada"
	estest.Given(purses).WhenCommand(c).Then(t, opened{By: "p-7 ada"}, deposited{Coins: 1})

	var seen es.Command
	spy := aggregate.Decider[purse]{Type: purses.Type, Evolve: purses.Evolve}
	spy.Decide = func(_ purse, c es.Command) (es.Events, error) {
		seen = c
		return nil, nil
	}
	estest.Given(spy).When(deposit{})
	require.NoError(t, seen.Validate())
	require.Equal(t, "command-1", seen.ID)
	require.Equal(t, "deposit", seen.Name)
	require.Equal(t, estest.Epoch, seen.CreateTime)
	at := time.UnixMilli(5)
	estest.Given(spy).WhenCommand(es.Command{ID: "mine", Body: deposit{}, CreateTime: at})
	require.Equal(t, "mine", seen.ID)
	require.Equal(t, at, seen.CreateTime)
}

func TestTheAnswerIsTakenAsARepositoryDoes(t *testing.T) {
	t.Parallel()
	estest.Given(purses).When(withdraw{Coins: 1}).ThenError(t, es.ErrRefused)
	careless := aggregate.Decider[purse]{Type: purses.Type, Evolve: purses.Evolve}
	careless.Decide = func(purse, es.Command) (es.Events, error) { return es.Events{opened{}, nil}, nil }
	estest.Given(careless, opened{}).When(deposit{}).ThenError(t, es.ErrInvalid).ThenState(t, purse{Opened: 1})
}

// recorder is a test that remembers how it failed.
type recorder struct {
	testing.TB
	text string
}

func (*recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) {
	r.text = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// failure is the text with which a scenario fails, "" where it holds.
func failure(f func(testing.TB)) string {
	var r recorder
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(&r)
	}()
	<-done
	return r.text
}

func TestScenariosThatDoNotHoldSayWhy(t *testing.T) {
	t.Parallel()
	paid := estest.Given(purses, opened{By: "ada"}, deposited{Coins: 3}).When(withdraw{Coins: 1})
	poor := estest.Given(purses).When(withdraw{Coins: 1})
	const story = "\ngiven\n\topened: estest_test.opened{By:ada}\n\tdeposited: estest_test.deposited{Coins:3}\n" +
		"when\n\twithdraw: estest_test.withdraw{Coins:1}\n"
	const poorStory = "\ngiven\n\tno events\nwhen\n\twithdraw: estest_test.withdraw{Coins:1}\n"
	for name, c := range map[string]struct {
		scenario func(testing.TB)
		want     string
	}{
		"other values": {
			func(t testing.TB) { paid.Then(t, withdrawn{Coins: 2}) },
			story + "want\n\twithdrawn: estest_test.withdrawn{Coins:2}\ngot\n\twithdrawn: estest_test.withdrawn{Coins:1}",
		},
		"a pointer": {
			func(t testing.TB) { paid.Then(t, &withdrawn{Coins: 1}) },
			story + "want\n\twithdrawn: *estest_test.withdrawn&{Coins:1}\ngot\n\twithdrawn: estest_test.withdrawn{Coins:1}",
		},
		"one too many": {
			func(t testing.TB) { paid.Then(t, withdrawn{Coins: 1}, withdrawn{Coins: 1}) },
			story + "want\n\twithdrawn: estest_test.withdrawn{Coins:1}\n\twithdrawn: estest_test.withdrawn{Coins:1}\n" +
				"got\n\twithdrawn: estest_test.withdrawn{Coins:1}",
		},
		"something": {
			func(t testing.TB) { paid.ThenNothing(t) },
			story + "want\n\tno events\ngot\n\twithdrawn: estest_test.withdrawn{Coins:1}",
		},
		"no error": {
			func(t testing.TB) { paid.ThenError(t, errTooFew) },
			story + "want\n\terror \"too few coins\"\ngot\n\twithdrawn: estest_test.withdrawn{Coins:1}",
		},
		"another state": {
			func(t testing.TB) { paid.ThenState(t, purse{Opened: 1, Coins: 3}) },
			story + "want state\n\t{Opened:1 Coins:3}\ngot state\n\t{Opened:1 Coins:2}",
		},
		"an error": {
			func(t testing.TB) { poor.Then(t, withdrawn{Coins: 1}) },
			poorStory + "want\n\twithdrawn: estest_test.withdrawn{Coins:1}\ngot\n\terror \"too few coins: 0\"",
		},
		"an error instead of nothing": {
			func(t testing.TB) { poor.ThenNothing(t) },
			poorStory + "want\n\tno events\ngot\n\terror \"too few coins: 0\"",
		},
		"another error": {
			func(t testing.TB) { poor.ThenError(t, es.ErrDeleted) },
			poorStory + "want\n\terror \"aggregate is deleted\"\ngot\n\terror \"too few coins: 0\"",
		},
		"no such error": {
			func(t testing.TB) { paid.ThenError(t, nil) },
			story + "want\n\terror \"<nil>\"\ngot\n\twithdrawn: estest_test.withdrawn{Coins:1}",
		},
	} {
		require.Equal(t, c.want, failure(c.scenario), name)
	}
	require.Empty(t, failure(func(t testing.TB) { paid.Then(t, withdrawn{Coins: 1}) }))
}

func ExampleGiven() {
	var t testing.TB = &recorder{} // in a test: its own t
	estest.Given(purses, opened{}, deposited{Coins: 3}).When(withdraw{Coins: 1}).Then(t, withdrawn{Coins: 1})
	estest.Given(purses, opened{}, deposited{Coins: 3}).When(withdraw{Coins: 9}).ThenError(t, errTooFew)
	fmt.Println("both hold")
	// Output: both hold
}
