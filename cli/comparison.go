package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/cli/internal/packing"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/pipeline/report"
)

// original is how a run ended, and what it ran with; another one is compared with it.
type original struct {
	run, code, step string // see report.Run.Failure
	ended           bool   // by itself
	facts           map[string]string
	passed          map[string]bool // steps that succeeded, or had nothing to do
}

// String is how it ended.
func (o *original) String() string {
	how := "failed with " + cmp.Or(o.code, "no code")
	switch {
	case !o.ended:
		how = "ended from outside"
	case o.step == "" && o.code == "":
		how = "succeeded"
	}
	if o.step != "" {
		how += " in " + o.step
	}
	return how
}

// originalOf is what is known of a run, of whose names each is part of a line: a package has the
// record that somebody wrote.
func originalOf(r *report.Run, engine, kernel string, digests packing.Digests) *original {
	one := redact.OneLine
	o := &original{run: one(r.ID), ended: r.Outcome == report.Succeeded || r.Outcome == report.Failed, facts: map[string]string{
		"slipway": one(r.Slipway), "engine": one(engine), "kernel": one(kernel), "platform": one(r.Platform.Digest),
		"lock": one(r.Lock), "images": one(digests.All),
	}, passed: map[string]bool{}}
	code, step := r.Failure()
	o.code, o.step = one(code), one(step)
	if !o.ended {
		o.code = ""
	}
	for name, digest := range r.Tools {
		o.facts["tool "+one(name)] = one(digest)
	}
	for name, ref := range digests.Images {
		_, digest, _ := strings.Cut(ref, "@")
		o.facts["image "+one(name)] = one(digest)
	}
	for _, s := range r.Steps {
		o.passed[one(s.ID())] = s.Status.OK()
	}
	return o
}

// compare tells on w how a run ended that was to end as o, up to a step, and what differs.
// same is a fault unless it did.
func (o *original) compare(w io.Writer, is *original, until string) (same, err error) {
	same = o.matches(is, until)
	verdict := "\nreproduced: " + is.String() + "\n"
	switch {
	case same == nil && o.passed[until] && is.code+is.step == "":
		verdict = "\nreproduced: up to " + until + " nothing failed, as in the original\n"
	case same != nil:
		verdict = "\nnot reproduced: the original " + o.String() + ", this run " + is.String() + "\n"
	}
	_, err = io.WriteString(w, verdict+"\n")
	t := newTable(w)
	fmt.Fprintf(t, "\tORIGINAL\tHERE\n\t%s\t%s\n", o.run, is.run)
	all := maps.Clone(o.facts)
	maps.Copy(all, is.facts)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		a, b := cmp.Or(o.facts[name], "-"), cmp.Or(is.facts[name], "-")
		if a != b || name == "slipway" || name == "engine" {
			fmt.Fprintf(t, "%s\t%s\t%s\n", name, short(a), short(b))
		}
	}
	return same, errors.Join(err, t.Flush())
}

// matches returns a fault unless a run ended as o did: with the same code in the same step,
// or in the step in which o was ended from outside. Up to a step that o passed, nothing may
// fail.
func (o *original) matches(is *original, until string) error {
	why := ""
	switch {
	case o.passed[until]:
		if is.code+is.step != "" && (is.code != o.code || is.step != o.step) {
			why = fmt.Sprintf("up to %s nothing failed in the original, this run %s", until, is)
		}
	case !o.ended:
		if is.step != o.step {
			why = fmt.Sprintf("the original %s, this run %s", o, is)
		}
	case is.code != o.code || is.step != o.step:
		why = fmt.Sprintf("the original %s, this run %s", o, is)
	}
	if why == "" {
		return nil
	}
	return &fault.Fault{Code: codeNotReproduced, Class: fault.Step, Op: "reproduce run " + o.run, Err: errors.New(why),
		Fix: "compare the differences above; to look at the deployment, reproduce it with --keep; its report stays in any case"}
}

// short is a digest as far as people compare it.
func short(s string) string {
	if sum, ok := strings.CutPrefix(s, "sha256:"); ok && len(sum) > 12 {
		return sum[:12]
	}
	return s
}
