// Package lua holds every script that Headwater runs inside Redis, one file each.
package lua

import (
	"context"
	"embed"

	"github.com/redis/go-redis/v9"
)

//go:embed *.lua
var files embed.FS

// Script is one script; it is safe for concurrent use.
type Script struct{ script *redis.Script }

func load(name string) Script {
	text, err := files.ReadFile(name + ".lua")
	if err != nil {
		panic(err)
	}
	return Script{redis.NewScript(string(text))}
}

// Run runs the script by its hash, and by its text where the server does not know it
// (a restart, a failover, SCRIPT FLUSH). A script that is unknown has not begun, so
// this repeats nothing. It works the same on a client that pipelines on its own.
func (s Script) Run(ctx context.Context, c redis.Scripter, keys []string, args ...any) (any, error) {
	return s.script.Run(ctx, c, keys, args...).Result()
}

// Queue puts the script into a pipeline: by its hash, or by its text for a server that
// has answered NOSCRIPT to the hash.
func (s Script) Queue(ctx context.Context, p redis.Pipeliner, known bool, keys []string, args ...any) *redis.Cmd {
	if known {
		return s.script.EvalSha(ctx, p, keys, args...)
	}
	return s.script.Eval(ctx, p, keys, args...)
}

// Hash is the script's SHA-1, by which EVALSHA calls it.
func (s Script) Hash() string { return s.script.Hash() }

// The scripts, by file name.
var (
	AppendCommits   = load("append_commits")
	AckEntries      = load("ack_entries")
	AddReplies      = load("add_replies")
	BuryEntry       = load("bury_entry")
	ClaimEntries    = load("claim_entries")
	DropWowLease    = load("drop_wow_lease")
	FailEntry       = load("fail_entry")
	FindOwners      = load("find_owners")
	GiveBack        = load("give_back")
	HoldWowLease    = load("hold_wow_lease")
	RaiseEntry      = load("raise_entry")
	RenewLease      = load("renew_lease")
	MayRun          = load("may_run")
	MoveNote        = load("move_note")
	PublishMessages = load("publish_messages")
	PurgeAggregate  = load("purge_aggregate")
	PrepareKey      = load("prepare_key")
	ReadKey         = load("read_key")
	ReprepareKey    = load("reprepare_key")
	RollbackKey     = load("rollback_key")
	SaveSnapshot    = load("save_snapshot")
	SweepKey        = load("sweep_key")
	TouchStream     = load("touch_stream")
	TrimStream      = load("trim_stream")
	LeaseMachine    = load("lease_machine")
	ReapConsumers   = load("reap_consumers")
	ReplayLetter    = load("replay_letter")
	ExpireLetters   = load("expire_letters")
	ReplaceSnapshot = load("replace_snapshot")
)
