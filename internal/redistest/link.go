package redistest

import (
	"bufio"
	"net"
	"strings"
	"sync"
	"time"
)

// link is one client's connection through a proxy.
type link struct {
	proxy          *Proxy
	client, server net.Conn
	closing        sync.Once
	closed         chan struct{}

	mu sync.Mutex
	// fates are those of the replies that the server still owes, in order.
	fates []fate
	// subscribed links get messages that answer nothing: replies are no longer told apart.
	subscribed bool
}

func newLink(p *Proxy, client, server net.Conn) *link {
	return &link{proxy: p, client: client, server: server, closed: make(chan struct{})}
}

// close ends both sides; calls after the first do nothing.
func (l *link) close() {
	l.closing.Do(func() {
		close(l.closed)
		_ = l.client.Close()
		_ = l.server.Close()
	})
}

// run passes messages until one side closes.
func (l *link) run() {
	defer l.close()
	l.proxy.wait.Go(func() {
		defer l.close()
		l.passRequests()
	})
	l.passReplies()
}

func (l *link) passRequests() {
	r := bufio.NewReader(l.client)
	for {
		m, err := readMessage(r)
		if err != nil {
			return
		}
		f, delay := l.proxy.meet(&m)
		select {
		case <-l.closed:
			return
		case <-time.After(delay):
		}
		l.expect(&m, f)
		if _, err := l.server.Write(m.raw); err != nil {
			return
		}
	}
}

func (l *link) expect(m *message, f fate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(m.words) > 0 && strings.HasSuffix(strings.ToUpper(m.words[0]), "SUBSCRIBE") {
		l.subscribed = true
	}
	l.fates = append(l.fates, f)
}

func (l *link) passReplies() {
	r := bufio.NewReader(l.server)
	silent := false
	for {
		m, err := readMessage(r)
		if err != nil {
			return
		}
		switch l.fateOf(&m) {
		case drop:
			return
		case swallow:
			silent = true
		}
		if silent {
			continue
		}
		if _, err := l.client.Write(m.raw); err != nil {
			return
		}
	}
}

func (l *link) fateOf(m *message) fate {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.subscribed || m.push || len(l.fates) == 0 {
		return pass
	}
	f := l.fates[0]
	l.fates = l.fates[1:]
	return f
}
