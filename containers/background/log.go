package background

import (
	"slices"
	"sync"
)

// backlog is how many writes a follower may be behind. It misses further writes, so that a
// slow follower delays nobody.
const backlog = 1024

// Log copies what is written to it to those who follow; the zero value is ready.
type Log struct {
	mu        sync.Mutex
	followers map[chan []byte]bool
}

func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for follower := range l.followers {
		select {
		case follower <- slices.Clone(b):
		default:
		}
	}
	return len(b), nil
}

func (l *Log) follow() chan []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.followers == nil {
		l.followers = map[chan []byte]bool{}
	}
	follower := make(chan []byte, backlog)
	l.followers[follower] = true
	return follower
}

func (l *Log) forget(follower chan []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.followers, follower)
}
