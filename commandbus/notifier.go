package commandbus

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/es"
)

// schemeRedis begins the endpoint of a process that is reached over Redis alone. Where its
// endpoint is a URL, the query parameter names the process.
const (
	schemeRedis = "redis:"
	replyParam  = "reply"
)

// Notifier is an [es.Notifier]: it tells processes that wait what became of their commands,
// ours over Redis and Kotlin's over HTTP. Nobody waits for it: what it is given is told
// beside, by goroutines that live while there is something to tell, many to one process in
// one call. What cannot be told is logged and dropped. It is safe for concurrent use once
// its fields are set.
//
// It posts to whatever URL a command's header names: who may send commands decides that.
// Give it an HTTP client that refuses others where that is a concern.
type Notifier struct {
	// HTTP posts to Kotlin's nodes. Defaults to a client that waits for five seconds.
	HTTP *http.Client
	// Pause is what lies between two of the three attempts to post; no attempt follows an
	// answer that another one would get too. Defaults to 2 s.
	Pause time.Duration
	// Logger hears what could not be told. Defaults to [slog.Default].
	Logger *slog.Logger

	rdb  redis.UniversalClient
	post post
}

// NewNotifier tells over the Redis that the waiting processes read from. nil = HTTP alone.
func NewNotifier(rdb redis.UniversalClient) *Notifier { return &Notifier{rdb: rdb} }

// Notify implements [es.Notifier].
func (n *Notifier) Notify(ctx context.Context, header es.Header, s es.Signal) {
	if plan, waits := es.WaitPlanOf(header); waits {
		n.tell(ctx, &plan, s)
	}
}

// tell queues what is wanted of s.
func (n *Notifier) tell(ctx context.Context, plan *es.WaitPlan, s es.Signal) {
	if !plan.Stage.Needs(s.Stage) {
		return
	}
	s.WaitID = plan.ID
	data, err := s.MarshalJSON()
	if err != nil { // what a handler wants to say cannot be said
		s.Result = nil
		data, _ = s.MarshalJSON()
		n.log().WarnContext(ctx, "the result of a handler cannot be sent", "command", s.CommandID, "error", err)
	}
	process := processOf(plan.Endpoint)
	switch {
	case process != "" && n.rdb != nil:
		n.put("", letter{process, data})
	case strings.HasPrefix(plan.Endpoint, "http://"), strings.HasPrefix(plan.Endpoint, "https://"):
		n.put(plan.Endpoint, letter{process, data})
	case plan.Endpoint != "":
		n.log().WarnContext(ctx, "whoever waits cannot be told", "endpoint", plan.Endpoint, "command", s.CommandID)
	}
}

func (n *Notifier) put(to string, l letter) {
	if !n.post.put(to, l, n.deliver) {
		n.log().Warn("whoever waits is not told: too much is waiting to be sent", "endpoint", to)
	}
}

// Drain waits until nothing is left to tell, or until ctx is done. Call it at the end, after
// the subscriptions.
func (n *Notifier) Drain(ctx context.Context) error { return n.post.drain(ctx) }

func (n *Notifier) log() *slog.Logger {
	if n.Logger == nil {
		return slog.Default()
	}
	return n.Logger
}

// processOf is the process of ours that an endpoint names; "" = none, or no fit name.
func processOf(endpoint string) string {
	process, ok := strings.CutPrefix(endpoint, schemeRedis)
	if !ok {
		_, query, found := strings.Cut(endpoint, "?")
		if !found {
			return ""
		}
		values, err := url.ParseQuery(query)
		if err != nil {
			return ""
		}
		process = values.Get(replyParam)
	}
	fits := func(r rune) bool { return r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' }
	if len(process) > 64 || strings.ContainsFunc(process, func(r rune) bool { return !fits(r) }) {
		return ""
	}
	return process
}
