package preview

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/stages/contract"
)

// Stale says what has changed since a plan was made; nothing if now is the same plan.
func Stale(was, now *contract.Plan) []string {
	if was.Digest == now.Digest {
		return nil
	}
	var d differing
	d.what(was, now)
	d.unless(was.Style == now.Style, "the plan is one in style %s, not in style %s", orNone(was.Style), orNone(now.Style))
	d.release(was.Basis.Release == now.Basis.Release, now.Release.Name+" "+now.Release.To, was.Release.Name+" "+was.Release.To)
	d.unless(was.Basis.Configuration == now.Basis.Configuration, "the configuration is another one%s", settings(was.Configuration, now.Configuration))
	d.later(was.Later, now.Later)
	d.unless(was.Basis.Installed == now.Basis.Installed, "the release that is installed is %s, not %s", orNone(now.Basis.Installed), orNone(was.Basis.Installed))
	d.unless(was.Basis.Terraform == now.Basis.Terraform, "the Terraform state has moved on: serial %d, not %d", now.Terraform.Serial, was.Terraform.Serial)
	d.unless(was.Basis.Git == now.Basis.Git, "somebody has pushed to the Git repository %s: it is at %s, not at %s",
		now.Git.Repository, orNone(now.Basis.Git), orNone(was.Basis.Git))
	d.objects(was.Basis.Objects, now.Basis.Objects)
	if len(d) == 0 {
		d.done(slices.Concat(was.Objects, was.Applications), slices.Concat(now.Objects, now.Applications))
	}
	if len(d) == 0 {
		d = append(d, "what the steps would do is something else: look at slipway plan")
	}
	return d
}

// StaleLater is Stale for the upgrade that comes after the first passed ones of a plan: that
// has said of it what its release does.
func StaleLater(was, now *contract.Plan, passed int) []string {
	if passed > len(was.Later) {
		return []string{fmt.Sprintf("the plan has %d upgrades, and this is number %d", len(was.Later)+1, passed+1)}
	}
	u := was.Later[passed-1]
	var d differing
	d.what(was, now)
	d.unless(u.Style == now.Style, "the plan is one in style %s, not in style %s", u.Style, orNone(now.Style))
	d.release(u.Digest == now.Basis.Release, now.Release.Name+" "+now.Release.To, u.Platform+" "+u.To)
	d.unless(u.ReadAs == now.Basis.Configuration, "the configuration is another one")
	d.later(was.Later[passed:], now.Later)
	d.unless(u.From == now.Basis.Installed, "the release that is installed is %s, not %s", orNone(now.Basis.Installed), u.From)
	d.unless(slices.Equal(u.Components, now.Components), "it adds or removes other components than planned")
	d.unless(slices.Equal(u.Backups, now.Backups), "it backs up other data than planned")
	d.unless(slices.EqualFunc(u.Migrations, now.Migrations, func(a, b contract.PlannedMigration) bool {
		return a.Name == b.Name && a.Data == b.Data && a.When == b.When && a.Undo == b.Undo // a workload may have gone
	}), "it carries out other migrations than planned")
	return d
}

// differing are the differences of two plans.
type differing []string

func (d *differing) unless(same bool, format string, args ...any) {
	if !same {
		*d = append(*d, fmt.Sprintf(format, args...))
	}
}

// release compares the releases of two plans, each by its name and version.
func (d *differing) release(same bool, is, planned string) {
	if is == planned {
		d.unless(same, "the files of the platform release %s are not those of the plan", is)
		return
	}
	d.unless(same, "the platform release is another one: %s, not %s as planned", is, planned)
}

// what compares what the plans are about.
func (d *differing) what(was, now *contract.Plan) {
	d.unless(was.Workflow == now.Workflow, "the plan is one of %s, not of %s", was.Workflow, now.Workflow)
	d.unless(was.Deployment == now.Deployment, "the plan is one of deployment %s", was.Deployment)
	d.unless(was.Basis.Tools == now.Basis.Tools, "the tools or images of Slipway are others")
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

// later compares the upgrades that follow.
func (d *differing) later(was, now []contract.PlannedUpgrade) {
	path := func(all []contract.PlannedUpgrade) string {
		var out []string
		for _, u := range all {
			out = append(out, u.To)
		}
		return orNone(strings.Join(out, ", "))
	}
	if a, b := path(was), path(now); a != b {
		d.unless(false, "the releases after it are others: %s, not %s", b, a)
		return
	}
	for i, u := range was {
		d.unless(u.Digest == now[i].Digest, "the platform release %s, which follows, is another one", u.To)
	}
}

// objects compares the objects that the plans were made from.
func (d *differing) objects(was, now map[string]string) {
	all := maps.Clone(was)
	maps.Copy(all, now)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		before, wasThere := was[name]
		after, isThere := now[name]
		d.unless(wasThere, "%s is there now", name)
		d.unless(isThere, "%s is not there any more", name)
		d.unless(!wasThere || !isThere || before == after, "%s was edited", name)
	}
}

// done compares what would be done to objects.
func (d *differing) done(was, now []contract.PlannedObject) {
	texts := func(all []contract.PlannedObject) map[string]string {
		out := map[string]string{}
		for _, o := range all {
			text, err := json.Marshal(o)
			if err != nil {
				text = []byte(err.Error())
			}
			out[o.String()] += string(text)
		}
		return out
	}
	before, after := texts(was), texts(now)
	all := maps.Clone(before)
	maps.Copy(all, after)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		d.unless(before[name] == after[name], "what would be done to %s is something else", name)
	}
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
