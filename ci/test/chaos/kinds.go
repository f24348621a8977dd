package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// kind is a way to disturb an install.
type kind struct {
	name string
	does string // for --help
	// do does it and returns what it did. An error is why the round has failed, or errGone.
	do func(r *round, ctx context.Context, inst *running) (string, error)
	// ended tells whether the install has ended as it may; nil: do knows.
	ended func(inst *running) error

	bucket bool // needs the state in a bucket
}

// kinds are all of them, in the order in which they are played.
var kinds = []kind{ //nolint:gochecknoglobals // a table
	{name: "kill-conductor", does: "SIGKILL to the program that drives the run", do: (*round).killConductor, ended: dies},
	{name: "kill-step", does: "SIGKILL to a step's process, in its container", do: (*round).killStep, ended: fails},
	{name: "kill-engine", does: "SIGKILL to the Dagger engine, which is then started again", do: (*round).killEngine, ended: fails},
	{name: "kill-holder", does: "SIGKILL to what holds the lock: the install must stop by itself", do: (*round).killHolder},
	{name: "stop-conductor", does: "the program that drives the run is stopped (SIGSTOP, SIGCONT) for --pause, with all that it has started", do: (*round).stopConductor, ended: either},
	{name: "stop-holder", does: "what holds the lock is stopped for --pause: the install must stop by itself", do: (*round).stopHolder, ended: either},
	{name: "contend", does: "another install begins", do: (*round).contend},
	{name: "contend-killed", does: "another install begins once what holds the first one's lock was killed: it must go on when nothing works for the first any more", do: (*round).contendKilled},
	{name: "contend-stopped", does: "another install begins while what holds the first one's lock is stopped; with --other-engine it is on that engine, and the whole machine of the first one is stopped", do: (*round).contendStopped},
	{name: "partition", does: "for --pause requests to the bucket are not answered, or late, or arrive twice", do: (*round).partition, ended: either, bucket: true},
}

func names(all []kind) string {
	var out []string
	for _, k := range all {
		out = append(out, k.name)
	}
	return strings.Join(out, ",")
}

// choose sets the kinds in list; empty for all that there can be.
func (s *settings) choose(list string) error {
	if list == "" {
		s.kinds = slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return k.bucket && !s.bucket })
		return nil
	}
	for name := range strings.SplitSeq(list, ",") {
		at := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
		if at < 0 {
			return fmt.Errorf("--kinds holds %q; there are %s", name, names(kinds))
		}
		if kinds[at].bucket && !s.bucket {
			return fmt.Errorf("--kinds holds %q: it needs --bucket", name)
		}
		s.kinds = append(s.kinds, kinds[at])
	}
	if len(s.kinds) > s.rounds {
		return fmt.Errorf("--kinds holds %d kinds: give --rounds %d or more", len(s.kinds), len(s.kinds))
	}
	return nil
}
