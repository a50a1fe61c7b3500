package estest

import (
	"context"
	"crypto/rand"
	"errors"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headwater-go/headwater/es"
)

// Gateway is what [TestCommandGateway] tests.
type Gateway interface {
	es.CommandSender
	es.Notifier
	SendAndWait(ctx context.Context, c es.Command, w es.Wait) (es.CommandResult, error)
	SendAndFollow(ctx context.Context, c es.Command, w es.Wait) iter.Seq2[es.CommandResult, error]
	// Waiting is how many callers wait now.
	Waiting() int
}

// GatewayParts are a gateway that can receive, the bus that it sends through, and what
// tells it in the process that handles commands, which may be the gateway itself.
type GatewayParts struct {
	Bus      CommandBus
	Gateway  Gateway
	Notifier es.Notifier
}

// Ask is the command of the gateway's suite.
type Ask struct {
	// Wrong is what Validate returns: "" is nothing, "sku" a field error.
	Wrong string `json:"wrong"`
}

// CommandName implements [es.CommandBody].
func (Ask) CommandName() string { return "ask" }

// Validate is called by gateways.
func (a Ask) Validate() error {
	switch a.Wrong {
	case "":
		return nil
	case "sku":
		return es.FieldErrors{{Name: "sku", Message: "is blank"}}
	}
	return errors.New(a.Wrong)
}

// TestCommandGateway tests what a caller that waits is promised. The tables passed to
// newGateway are of types that no other test has.
func TestCommandGateway(t *testing.T, newGateway func(t *testing.T, types ...es.Types) GatewayParts) {
	for name, check := range map[string]func(*testing.T, gatewayKit){
		"SENT is the one result, and nobody waits after it":          gatewaySent,
		"PROCESSED follows SENT":                                     gatewayProcessed,
		"SNAPSHOT needs PROCESSED, in any order":                     gatewaySnapshot,
		"a failure ends the wait at once":                            gatewayFailed,
		"what is invalid is not sent":                                gatewayInvalid,
		"who waits for a command that another one sends is told":     gatewayPropagated,
		"a void command comes to SENT and no further":                gatewayVoid,
		"PROJECTED is the last event, by the function that is meant": gatewayProjected,
		"a chain ends with the commands of the saga":                 gatewayChain,
		"the time that is over is an uncertain outcome":              gatewayTimeout,
		"who stops following waits no longer":                        gatewayStopped,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			typ := es.AggregateType{Context: "estest", Name: "t" + strings.ToLower(rand.Text())}
			other := es.AggregateType{Context: "estest", Name: typ.Name + "-other"}
			asks := []es.Type{{Body: Ask{}}}
			check(t, gatewayKit{newGateway(t, es.Types{Aggregate: typ, Commands: asks}, es.Types{Aggregate: other, Commands: asks}), typ, other})
		})
	}
}

type gatewayKit struct {
	GatewayParts
	typ, other es.AggregateType
}

func (k gatewayKit) command() es.Command { return es.NewCommand(k.typ.ID("a-1"), Ask{}) }

// handle answers each command that arrives with the signals of a function, until the test ends.
func (k gatewayKit) handle(t *testing.T, answer func(c es.Command) []es.Signal) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	s := es.Subscription{Group: "handlers", Aggregates: []es.AggregateType{k.typ}, Workers: 1}
	require.NoError(t, k.Bus.Prepare(ctx, s))
	ended := make(chan error, 1)
	go func() {
		ended <- k.Bus.Subscribe(ctx, s, func(ctx context.Context, c es.Command) (es.Result, error) {
			for _, s := range answer(c) {
				if s.CommandID == "" {
					s.CommandID = c.ID
				}
				s.ID, s.Aggregate, s.Time = c.ID, c.Aggregate, time.Now()
				k.Notifier.Notify(ctx, c.Header, s)
			}
			return es.Result{}, nil
		})
	}()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
		require.Zero(t, k.Gateway.Waiting(), "no wait is left")
	})
}

func at(stages ...es.Stage) func(es.Command) []es.Signal {
	return func(es.Command) (signals []es.Signal) {
		for _, s := range stages {
			signals = append(signals, es.Signal{Stage: s, Version: 3})
		}
		return signals
	}
}

// follow returns the stages that are seen, and the error of the last.
func (k gatewayKit) follow(t *testing.T, w es.Wait) (seen []es.Stage, err error) {
	t.Helper()
	for r, failed := range k.Gateway.SendAndFollow(patient(t), k.command(), w) {
		require.NoError(t, err, "an error is the last")
		seen, err = append(seen, r.Stage), failed
	}
	return seen, err
}

func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}
