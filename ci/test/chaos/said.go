package main

import (
	"bytes"
	"regexp"
	"strings"
	"sync"

	"github.com/slipway-sh/slipway/ci/test/facts"
	"github.com/slipway-sh/slipway/ci/test/history"
)

// said is what an install prints, as it is written to it. It is safe for concurrent use.
type said struct {
	reference facts.Facts   // with the steps of an install
	awaited   string        // a step; empty for none
	begun     chan struct{} // closed once that runs

	mu      sync.Mutex
	partial []byte
	last    string   // "stage/step: status" of the last line that names a step
	code    string   // of its first error
	run     string   // id
	done    []string // steps that have succeeded
}

// Lines of an install without a terminal. What a step says itself is indented.
var (
	doneRE = regexp.MustCompile(`^([a-z0-9-]+/[a-z0-9-]+): succeeded after `)
	runRE  = regexp.MustCompile(`, run (\d{8}-\d{6}-[0-9a-f]{6})$`)
	codeRE = regexp.MustCompile(`^error ([A-Z]{3}-\d{3}): `)
)

// Write takes what is printed next.
func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.partial = append(s.partial, p...)
	for {
		line, rest, whole := bytes.Cut(s.partial, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		s.partial = rest
		s.line(string(line))
	}
}

func (s *said) line(line string) {
	if f := strings.Fields(line); len(f) > 0 && hasStep(s.reference, strings.TrimSuffix(f[0], ":")) {
		s.last = strings.Join(f[:min(2, len(f))], " ")
	}
	if s.awaited != "" && line == s.awaited+": running" {
		close(s.begun)
		s.awaited = "" // it may be said again
	}
	if m := doneRE.FindStringSubmatch(line); m != nil {
		s.done = append(s.done, m[1])
	}
	if m := runRE.FindStringSubmatch(line); m != nil {
		s.run = m[1]
	}
	if m := codeRE.FindStringSubmatch(line); m != nil && s.code == "" {
		s.code = m[1]
	}
}

// at is the last line in which the install named a step.
func (s *said) at() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == "" {
		return "before the first step"
	}
	return s.last
}

// fault is the code of the first error; empty without one.
func (s *said) fault() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.code
}

// acknowledged is what it said of steps that have a journal.
func (s *said) acknowledged(journaled map[string]bool) history.Said {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := history.Said{Run: s.run}
	for _, step := range s.done {
		if journaled[step] {
			out.Steps = append(out.Steps, step)
		}
	}
	return out
}
