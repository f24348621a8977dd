package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

const (
	titleModule  = "dagger call install"
	titleCLI     = "slipway install"
	titleResumed = "slipway install, broken"
	titleKept    = "the same with --keep-cluster"
	titleScript  = "install.sh"

	titleStatic       = "slipway install, static platform"
	titleStaticScript = "install.sh, static platform"
	titleHelmfile     = "helmfile, static platform"

	titlePlan          = "slipway plan, background cluster"
	titleUpgrade       = "slipway upgrade, 1.1.0 to 2.0.0"
	titleUpgradeScript = "install.sh, 1.1.0 to 2.0.0"
)

type kind string

const (
	cold     kind = "cold"
	second   kind = "second"
	repeated kind = "repeated" // a second install that repeats all checks
	failed   kind = "failed"   // one on empty volumes that fails in the last stage
	resumed  kind = "resumed"  // the one after that
	planned  kind = "plan"     // of an install that would change nothing
	upgraded kind = "upgrade"  // to another release
)

var kinds = []kind{cold, second, repeated, failed, resumed, planned, upgraded} //nolint:gochecknoglobals // a constant list

type samples struct {
	titles []string // in the order of their first sample
	taken  map[string][]time.Duration
}

func key(title string, k kind) string { return title + "\x00" + string(k) }

func (s *samples) add(title string, k kind, took time.Duration) {
	if s.taken == nil {
		s.taken = map[string][]time.Duration{}
	}
	if !slices.Contains(s.titles, title) {
		s.titles = append(s.titles, title)
	}
	s.taken[key(title, k)] = append(s.taken[key(title, k)], took)
}

func (s *samples) empty() bool { return len(s.titles) == 0 }

// median is the samples' median in seconds; 0 if there is none.
func (s *samples) median(title string, k kind) float64 {
	all := slices.Sorted(slices.Values(s.taken[key(title, k)]))
	n := len(all)
	if n == 0 {
		return 0
	}
	return (all[(n-1)/2] + all[n/2]).Seconds() / 2
}

func (s *samples) table() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 1, ' ', 0)
	fmt.Fprintln(w, "| installer\t| what\t| median\t| samples\t|")
	fmt.Fprintln(w, "|---\t|---\t|---\t|---\t|")
	for _, title := range s.titles {
		for _, k := range kinds {
			taken := s.taken[key(title, k)]
			if len(taken) == 0 {
				continue
			}
			var each []string
			for _, d := range taken {
				each = append(each, fmt.Sprintf("%.1f", d.Seconds()))
			}
			fmt.Fprintf(w, "| %s\t| %s\t| %.1f s\t| %s\t|\n", title, k, s.median(title, k), strings.Join(each, ", "))
		}
	}
	_ = w.Flush() // a Builder takes everything
	return b.String()
}

// target is a ratio of two medians and its limit; 0 is none.
type target struct {
	what         string
	title, other string
	kind, of     kind
	limit        float64
}

var targets = []target{ //nolint:gochecknoglobals // a constant list
	{"cold install / script's cold install", titleModule, titleScript, cold, cold, 0.8},
	{"second install / script's second run", titleModule, titleScript, second, second, 0.5},
	{"second install / cold install", titleModule, titleModule, second, cold, 0.25},
	{"second install / script's run with all checks repeated", titleModule, titleScript, second, repeated, 0},
	{"CLI: cold install / script's cold install", titleCLI, titleScript, cold, cold, 0},
	{"CLI: second install / script's second run", titleCLI, titleScript, second, second, 0},
	{"CLI: second install / cold install", titleCLI, titleCLI, second, cold, 0},
	{"CLI: resumed after a failure in the last stage / cold install", titleResumed, titleCLI, resumed, cold, 0},
	{"CLI with --keep-cluster: the same", titleKept, titleCLI, resumed, cold, 0.1},
	{"CLI with --keep-cluster: second install / script's second run", titleKept, titleScript, second, second, 0.5},
	{"static platform: cold install / script's cold install", titleStatic, titleStaticScript, cold, cold, 1.2},
	{"static platform: cold install / helmfile's cold install", titleStatic, titleHelmfile, cold, cold, 1.2},
	{"static platform: second install / script's second run", titleStatic, titleStaticScript, second, second, 1.2},
	{"static platform: second install / helmfile's second run", titleStatic, titleHelmfile, second, second, 1.2},
	{"upgrade with backup / script's upgrade with backup", titleUpgrade, titleUpgradeScript, upgraded, upgraded, 0},
}

// planLimit is how many seconds a plan without changes may take on a cluster that runs.
const planLimit = 5

// verdict shows the ratios of the medians and whether the targets are met, in
// Markdown.
func (s *samples) verdict() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 1, ' ', 0)
	fmt.Fprintln(w, "| ratio of medians\t|\t| target\t|\t|")
	fmt.Fprintln(w, "|---\t|---\t|---\t|---\t|")
	row := func(what, unit string, value, limit float64) {
		most, met := "", ""
		if limit > 0 {
			most, met = fmt.Sprintf("at most %.2f%s", limit, unit), "missed"
			if value <= limit {
				met = "met"
			}
		}
		fmt.Fprintf(w, "| %s\t| %.2f%s\t| %s\t| %s\t|\n", what, value, unit, most, met)
	}
	for _, t := range targets {
		if ours, of := s.median(t.title, t.kind), s.median(t.other, t.of); ours > 0 && of > 0 {
			row(t.what, "", ours/of, t.limit)
		}
	}
	if took := s.median(titlePlan, planned); took > 0 {
		row("plan without changes, itself", " s", took, planLimit)
	}
	_ = w.Flush()
	return b.String()
}
