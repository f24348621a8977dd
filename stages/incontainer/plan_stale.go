package incontainer

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/stages/contract"
)

// stale says what has changed since a plan was made; nothing if now is the same plan.
func stale(was, now *contract.Plan) []string {
	if was.Digest == now.Digest {
		return nil
	}
	var out []string
	unless := func(same bool, format string, args ...any) {
		if text := fmt.Sprintf(format, args...); !same && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	a, b := was.Basis, now.Basis
	unless(was.Workflow == now.Workflow, "the plan is one of %s, not of %s", was.Workflow, now.Workflow)
	unless(was.Deployment == now.Deployment, "the plan is one of deployment %s", was.Deployment)
	unless(was.Style == now.Style, "the plan is one in style %s, not in style %s", orNone(was.Style), orNone(now.Style))
	unless(a.Tools == b.Tools, "the tools or images of Slipway are others")
	wanted, is := was.Release.Name+" "+was.Release.To, now.Release.Name+" "+now.Release.To
	unless(wanted == is, "the platform release is another one: %s, not %s as planned", is, wanted)
	unless(wanted != is || a.Release == b.Release, "the files of the platform release %s are not those of the plan", is)
	unless(a.Configuration == b.Configuration, "the configuration is another one%s", settings(was.Configuration, now.Configuration))
	unless(a.Installed == b.Installed, "the release that is installed is %s, not %s", orNone(b.Installed), orNone(a.Installed))
	unless(a.Terraform == b.Terraform, "the Terraform state has moved on: it is %s, not %s", orNone(b.Terraform), orNone(a.Terraform))
	repository, at, _ := strings.Cut(b.Git, "@")
	_, planned, _ := strings.Cut(a.Git, "@")
	unless(a.Git == b.Git, "somebody has pushed to the Git repository %s: it is at %s, not at %s", repository, orNone(at), orNone(planned))
	all := maps.Clone(a.Objects)
	maps.Copy(all, b.Objects)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		before, wasThere := a.Objects[name]
		after, isThere := b.Objects[name]
		unless(wasThere, "%s is there now", name)
		unless(isThere, "%s is not there any more", name)
		unless(!wasThere || !isThere || before == after, "%s was edited", name)
	}
	if len(out) > 0 {
		return out
	}
	for _, c := range slices.Concat(was.Changes, now.Changes) {
		same := func(x contract.PlannedChange) bool { return reflect.DeepEqual(x, c) }
		unless(c.Of == contract.PlanImages || slices.ContainsFunc(was.Changes, same) && slices.ContainsFunc(now.Changes, same), "what would be done to %s is something else", c.Name)
	}
	unless(len(out) > 0, "what the steps would do is something else: look at slipway plan")
	return out
}

// settings says how the configurations of two plans differ: of each, what it changes in that of
// the last run, and the other does not. It is empty if that is the same.
func settings(was, now []contract.Difference) string {
	only := func(of, other []contract.Difference) string {
		var out []string
		for _, d := range of {
			if !slices.Contains(other, d) {
				out = append(out, fmt.Sprintf("%s: %s → %s", d.Path, orNone(d.Old), orNone(d.New)))
			}
		}
		return strings.Join(out, ", ")
	}
	var parts []string
	if planned := only(was, now); planned != "" {
		parts = append(parts, "planned, and not so now: "+planned)
	}
	if is := only(now, was); is != "" {
		parts = append(parts, "not planned: "+is)
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

func orNone(s string) string { return cmp.Or(s, "none") }
