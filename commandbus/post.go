package commandbus

import (
	"context"
	"sync"
)

const (
	// maxLetters is how many signals may wait for one endpoint, or for Redis.
	maxLetters = 100_000
	// maxBatch is how many go to Redis in one round trip.
	maxBatch = 1024
	// postmen is how many post to one endpoint side by side; to Redis one does.
	postmen = 8
)

// letter is an encoded signal, and the process that it is for where Redis carries it.
type letter struct {
	process string
	data    []byte
}

// post is the queues of what is to be told, one for each endpoint, and "" for Redis.
type post struct {
	mu    sync.Mutex
	boxes map[string]*box
	idle  chan struct{} // closed when the last box is gone; nil while there is none
}

type box struct {
	letters []letter
	postmen int
}

// put queues a letter, and starts a goroutine where one more may help. False = it is full.
func (p *post) put(to string, l letter, deliver func(to string, letters []letter)) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.boxes[to]
	if b == nil {
		if p.boxes == nil {
			p.boxes = map[string]*box{}
		}
		if p.idle == nil {
			p.idle = make(chan struct{})
		}
		b = &box{}
		p.boxes[to] = b
	}
	if len(b.letters) >= maxLetters {
		return false
	}
	b.letters = append(b.letters, l)
	if b.postmen == 0 || to != "" && b.postmen < postmen {
		b.postmen++
		go func() {
			for letters := p.take(to, b); letters != nil; letters = p.take(to, b) {
				deliver(to, letters)
			}
		}()
	}
	return true
}

// take is what one goroutine delivers next; nil = it ends.
func (p *post) take(to string, b *box) []letter {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 1
	if to == "" {
		n = maxBatch
	}
	if n = min(n, len(b.letters)); n > 0 {
		var letters []letter
		letters, b.letters = b.letters[:n:n], b.letters[n:]
		return letters
	}
	if b.postmen--; b.postmen == 0 {
		if delete(p.boxes, to); len(p.boxes) == 0 {
			close(p.idle)
			p.idle = nil
		}
	}
	return nil
}

func (p *post) drain(ctx context.Context) error {
	p.mu.Lock()
	idle := p.idle
	p.mu.Unlock()
	if idle == nil {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
