package redistest

import (
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// Proxy stands between clients and a server, counts the commands that pass, and loses
// what it is told to. A command is named by its first word or words, in any case of
// letters: "XADD", "XGROUP CREATE", "EVALSHA <hash>".
type Proxy struct {
	// Addr is where clients connect.
	Addr string

	target   string
	listener net.Listener
	wait     sync.WaitGroup

	mu    sync.Mutex
	cut   bool
	delay time.Duration
	links map[*link]bool
	rules []*rule
	seen  map[string]int
}

// rule is what happens to the reply of the next request that it fits.
type rule struct {
	command []string
	fate    fate
}

// fate is what becomes of a reply.
type fate int

const (
	pass    fate = iota
	drop         // close both sides instead
	swallow      // pass nothing more, and stay open
)

// NewProxy is a proxy before the server at addr, closed when the test ends.
func NewProxy(t testing.TB, addr string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &Proxy{Addr: l.Addr().String(), target: addr, listener: l, links: map[*link]bool{}, seen: map[string]int{}}
	p.wait.Go(p.accept)
	t.Cleanup(func() {
		p.Cut()
		_ = l.Close() // ends accept
		p.wait.Wait()
	})
	return p
}

// Cut closes every connection, and every new one, until [Proxy.Heal].
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	for l := range p.links {
		l.close()
	}
}

// Heal lets connections through again.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = false
}

// Delay holds every request back for d from now on; 0 = for no time.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// DropReply lets the next such command reach the server, waits for its reply, and
// closes the connection instead of passing it on. Each call is good for one command.
func (p *Proxy) DropReply(command string) { p.addRule(command, drop) }

// SwallowReply lets the next such command reach the server and passes neither its
// reply nor a later one of the connection, which stays open. Each call is good for one.
func (p *Proxy) SwallowReply(command string) { p.addRule(command, swallow) }

func (p *Proxy) addRule(command string, f fate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, &rule{strings.Fields(command), f})
}

// Pending is how many commands DropReply and SwallowReply still wait for.
func (p *Proxy) Pending() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.rules)
}

// Count is how many such commands, of one or two words, have reached the proxy.
func (p *Proxy) Count(command string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen[strings.ToUpper(strings.Join(strings.Fields(command), " "))]
}

// meet counts a request and says what becomes of its reply, and when it may pass.
func (p *Proxy) meet(m *message) (fate, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n := 1; n <= min(2, len(m.words)); n++ {
		p.seen[strings.ToUpper(strings.Join(m.words[:n], " "))]++
	}
	for i, r := range p.rules {
		if m.is(r.command) {
			p.rules = append(p.rules[:i], p.rules[i+1:]...)
			return r.fate, p.delay
		}
	}
	return pass, p.delay
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			p.wait.Go(func() { p.serve(client) })
		}
	}
}

func (p *Proxy) serve(client net.Conn) {
	server, err := net.DialTimeout("tcp", p.target, patience)
	if err != nil {
		_ = client.Close()
		return
	}
	l := newLink(p, client, server)
	p.mu.Lock()
	cut := p.cut
	if !cut {
		p.links[l] = true
	}
	p.mu.Unlock()
	if cut {
		l.close()
		return
	}
	l.run()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}
