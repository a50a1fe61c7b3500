package commandbus

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
)

// DefaultWait is how long a caller waits whose context has no deadline.
const DefaultWait = 30 * time.Second

// Gateway sends commands and waits for what becomes of them, in this process or in others.
// It is safe for concurrent use once its fields are set. [Gateway.Run] must run for as long
// as anybody waits.
//
// A gateway is a [es.Notifier] too: give it to the repositories of its own process, so that
// they answer it without a detour.
type Gateway struct {
	// URL is where Kotlin's nodes post to: that of [Gateway.Handler]. Ours go on to use
	// Redis. Defaults to none: Kotlin's nodes then answer nobody.
	URL string
	// Finder is asked for the command's request id, shortly before its caller's time is
	// over, since an answer may have been lost. An eventstore.Store can tell. Defaults to
	// none.
	Finder es.Finder
	// NewID makes the ids of commands, and of waits, which Kotlin's nodes read: those of an
	// [es.IDGenerator] whose machine is none of theirs. Defaults to one with a machine
	// drawn at random.
	NewID func() string
	// Notifier tells other processes what this gateway is told of their commands. Set its
	// fields, or replace it. Defaults to [NewNotifier] over the gateway's own Redis.
	Notifier *Notifier
	// Logger hears what no caller can be told. Defaults to [slog.Default].
	Logger *slog.Logger

	rdb     redis.UniversalClient
	sender  es.CommandSender
	process string
	newID   func() string
	asking  chan struct{}
	replies condition
	strays  atomic.Int64

	mu    sync.Mutex
	waits map[string]*waiting
}

// maxAsking is how many callers ask the store side by side.
const maxAsking = 32

// NewGateway sends through sender, and hears over rdb of what other processes carry out; nil
// = it hears only of its own process, and of what comes to [Gateway.Handler].
func NewGateway(rdb redis.UniversalClient, sender es.CommandSender) *Gateway {
	newID := es.NewRandomIDs()
	return &Gateway{
		Notifier: NewNotifier(rdb), rdb: rdb, sender: sender, process: newID(), newID: newID,
		asking: make(chan struct{}, maxAsking), waits: map[string]*waiting{}, replies: condition{changed: make(chan struct{})},
	}
}

// Waiting is how many callers wait now.
func (g *Gateway) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waits)
}

// Strays is how many signals came for nobody: most for callers who had given up, some for
// the second time.
func (g *Gateway) Strays() int64 { return g.strays.Load() }

// Send validates a command and sends it. Where its header says that somebody waits, as that
// of a saga's command may, they are told that it was sent, or why not. Whatever its body's
// method Validate() error returns is an [es.ErrInvalid]; [es.FieldErrors] say it by field.
func (g *Gateway) Send(ctx context.Context, c es.Command) error {
	c.Header = slices.Clone(c.Header)
	c.Complete(g.id, time.Now())
	err := g.send(ctx, c)
	if _, waits := es.WaitPlanOf(c.Header); waits {
		g.Notify(ctx, c.Header, sent(&c, err))
	}
	return err
}

func (g *Gateway) send(ctx context.Context, c es.Command) error {
	if err := es.ValidateBody(c.Body); err != nil {
		return &es.Error{Op: "validate " + c.Name, Aggregate: c.Aggregate, RequestID: c.RequestID, Err: err}
	}
	return g.sender.Send(ctx, c)
}

func sent(c *es.Command, err error) es.Signal {
	s := es.Signal{
		ID: c.ID, CommandID: c.ID, Aggregate: c.Aggregate, Stage: es.StageSent, Time: time.Now(),
		Function: es.Function{Kind: "COMMAND", Context: c.Aggregate.Type.Context, Processor: "CommandGateway", Name: "send"},
	}
	s.Fail(err)
	return s
}

// Notify implements [es.Notifier].
func (g *Gateway) Notify(ctx context.Context, header es.Header, s es.Signal) {
	plan, waits := es.WaitPlanOf(header)
	switch {
	case !waits:
	case processOf(plan.Endpoint) == g.process:
		s.WaitID = plan.ID
		g.hear(s)
	default:
		g.Notifier.tell(ctx, &plan, s)
	}
}

// hear gives a signal to who waits for it.
func (g *Gateway) hear(s es.Signal) {
	g.mu.Lock()
	w := g.waits[s.WaitID]
	g.mu.Unlock()
	if w == nil || !w.take(s) {
		g.strays.Add(1)
	}
}

func (g *Gateway) endpoint() string {
	if g.URL == "" {
		return schemeRedis + g.process
	}
	between := "?"
	if strings.Contains(g.URL, "?") {
		between = "&"
	}
	return g.URL + between + replyParam + "=" + g.process
}

func (g *Gateway) id() string {
	if g.NewID != nil {
		return g.NewID()
	}
	return g.newID()
}

func (g *Gateway) log() *slog.Logger {
	if g.Logger == nil {
		return slog.Default()
	}
	return g.Logger
}
