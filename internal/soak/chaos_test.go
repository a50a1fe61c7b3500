package soak_test

import (
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headwater-go/headwater/internal/soak"
)

// chaos is what happens to workers and servers, and how often it has.
type chaos struct {
	top      *topology
	rdb      redis.UniversalClient
	crew     []*berth
	done     map[string]int
	troubles []soak.Period
	// healing is what still goes on.
	healing sync.WaitGroup
}

// step does one thing; between two troubles of the servers there is time to recover.
func (c *chaos) step(t *testing.T, servers bool) {
	t.Helper()
	var what string
	if servers {
		from := time.Now().UnixMilli()
		what = c.top.trouble(t)
		c.troubles = append(c.troubles, soak.Period{From: from, To: time.Now().UnixMilli()})
	} else {
		what = c.harm(t)
	}
	c.done[what]++
}

// harm does something to one worker.
func (c *chaos) harm(t *testing.T) string {
	t.Helper()
	b := c.crew[rand.IntN(len(c.crew))]
	switch rand.IntN(8) {
	case 0, 1:
		b.signal(syscall.SIGKILL)
		return "killed"
	case 2:
		b.signal(syscall.SIGSTOP)
		c.later(soak.Lease/2+upTo(2*soak.Lease), func() { b.signal(syscall.SIGCONT) })
		return "paused"
	case 3:
		for _, p := range b.proxies {
			p.Cut()
		}
		c.later(upTo(2*soak.Lease), func() { b.heal() })
		return "cut"
	case 4:
		for _, p := range b.proxies {
			p.Delay(upTo(300 * time.Millisecond))
		}
		c.later(soak.Lease, func() { b.heal() })
		return "slowed"
	case 5:
		command := []string{"XREADGROUP", "EVALSHA"}[rand.IntN(2)]
		p := b.proxies[rand.IntN(len(b.proxies))]
		if rand.IntN(2) == 0 {
			p.DropReply(command)
			return "reply dropped"
		}
		p.SwallowReply(command)
		return "reply swallowed"
	case 6:
		b.signal(syscall.SIGTERM)
		return "restarted"
	}
	_ = c.rdb.ScriptFlush(t.Context()).Err() // it may be down
	return "scripts flushed"
}

func (b *berth) heal() {
	for _, p := range b.proxies {
		p.Delay(0)
		p.Heal()
	}
}

func (c *chaos) later(d time.Duration, f func()) {
	c.healing.Go(func() {
		time.Sleep(d)
		f()
	})
}

// end takes all back that still harms.
func (c *chaos) end() {
	c.healing.Wait()
	for _, b := range c.crew {
		b.signal(syscall.SIGCONT)
		b.heal()
	}
}
