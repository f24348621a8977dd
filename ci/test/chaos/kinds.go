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

	own    bool // needs a cluster of Slipway's own
	bucket bool // needs the state in a bucket
}

// kinds are all of them, in the order in which they are played.
var kinds = []kind{ //nolint:gochecknoglobals // a table
	{name: "conductor", does: "SIGKILL to the program that drives the run", do: (*round).killConductor, ended: dies},
	{name: "step", does: "SIGKILL to a step's process, in its container", do: (*round).killStep, ended: fails},
	{name: "hold", does: "SIGKILL to what holds the lock, while another install begins: the first must stop by itself, and the other go on once nothing works for the first any more", do: (*round).killHolder},
	{name: "kill-hold", does: "SIGKILL to what holds the lock, and nobody else wants it: the install must stop by itself", do: (*round).killHolderOnly},
	{name: "engine", does: "SIGKILL to the Dagger engine, which is then started again", do: (*round).killEngine, ended: fails},
	{name: "api", does: "the API server stands still for 30 seconds; the install goes on by itself", do: (*round).stopAPI, ended: survives, own: true},
	{name: "pause-conductor", does: "the program that drives the run stands still (SIGSTOP, SIGCONT) for --pause, with all that it has started", do: (*round).pauseConductor, ended: either},
	{name: "pause-step", does: "a step's process stands still for --pause", do: (*round).pauseStep, ended: either},
	{name: "pause-hold", does: "what holds the lock stands still for --pause: the install must stop by itself", do: (*round).pauseHolder, ended: either},
	{name: "pause-engine", does: "the engine stands still for --pause, with every container", do: (*round).pauseEngine, ended: either},
	{name: "contend", does: "another install begins, in about every other round while what holds the first one's lock stands still; with --other-engine it is on that engine, and the whole machine of the first one stands still", do: (*round).contend},
	{name: "partition", does: "for --pause requests to the bucket are not answered, or late, or arrive twice", do: (*round).partition, ended: either, bucket: true},
}

// missing is what a kind needs that the settings do not have; empty for nothing.
func (k kind) missing(s settings) string {
	switch {
	case k.own && !s.own:
		return fmt.Sprintf("it needs the node that Slipway runs, and that of provider %s is not Slipway's", s.provider)
	case k.bucket && !s.bucket:
		return "it needs --bucket"
	}
	return ""
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
	possible := slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return k.missing(*s) != "" })
	if list == "" {
		s.kinds = possible
		return nil
	}
	for name := range strings.SplitSeq(list, ",") {
		at := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
		if at < 0 {
			return fmt.Errorf("--kinds holds %q; there are %s", name, names(kinds))
		}
		if why := kinds[at].missing(*s); why != "" {
			return fmt.Errorf("--kinds holds %q: %s; give --kinds %s", name, why, names(possible))
		}
		s.kinds = append(s.kinds, kinds[at])
		s.asked = append(s.asked, name)
	}
	return nil
}
