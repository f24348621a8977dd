package contract

import (
	"fmt"
	"io"
	"strings"
)

// Text writes the plan for people.
func (p *Plan) Text(w io.Writer) error {
	if err := p.Body(w); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s\ndigest %s\n", p.Summary(), p.Digest)
	return err
}

// Body is Text without its last lines.
func (p *Plan) Body(w io.Writer) error {
	var t planText
	t.line("Plan of %s for deployment %s", p.Workflow, p.Deployment)
	t.release(p)
	t.change(p.PlannedChange)
	t.terraform(p.Terraform)
	t.objects("Objects", p.Objects)
	for _, j := range p.Jobs {
		t.section("Jobs that would run")
		t.line("  %s: %s", j.Object, j.Why)
	}
	pushed := "Files that would be pushed to " + p.Git.Repository
	t.list(pushed, "+", p.Git.Added)
	t.list(pushed, "~", p.Git.Changed)
	t.list(pushed, "-", p.Git.Removed)
	t.objects("Applications", p.Applications)
	t.list("Images", "+", p.Images.Added)
	t.list("Images", "-", p.Images.Removed)
	for _, u := range p.Unknown {
		t.section("Unknown until a run has been there")
		t.line("  %s: %s", u.What, u.Why)
	}
	for _, u := range p.Refused {
		t.section("The run would end with")
		t.line("  %s: %s (%s)", u.What, u.Why, u.Code)
		if u.Fix != "" {
			t.line("    remedy: %s", u.Fix)
		}
	}
	t.list("Destructive", "!", p.Destructive)
	_, err := io.WriteString(w, t.String())
	return err
}

// Summary is the plan in one line.
func (p *Plan) Summary() string {
	if !p.Changes() {
		text := "no changes: " + count(p.Unchanged, "object is as it should be", "objects are as they should be")
		if len(p.Unknown) > 0 {
			text += "; " + count(len(p.Unknown), "thing is unknown", "things are unknown")
		}
		return text
	}
	n := map[string]int{}
	for _, all := range [][]PlannedObject{p.Objects, p.Applications} {
		for _, o := range all {
			n[o.Action]++
		}
	}
	out := fmt.Sprintf("%d to add, %d to change, %d to remove, %d unchanged", n[PlanAdd], n[PlanChange], n[PlanRemove], p.Unchanged)
	for _, part := range []struct {
		n         int
		one, more string
	}{
		{len(p.Configuration), "setting differs", "settings differ"},
		{len(p.Terraform.Resources), "resource of Terraform changes", "resources of Terraform change"},
		{len(p.Jobs), "Job runs", "Jobs run"},
		{len(p.Backups), "backup is made", "backups are made"},
		{len(p.Migrations), "migration is carried out", "migrations are carried out"},
		{len(p.Later), "upgrade follows", "upgrades follow"},
		{len(p.Git.Added) + len(p.Git.Changed) + len(p.Git.Removed), "file is pushed", "files are pushed"},
		{len(p.Destructive), "is destructive", "are destructive"},
	} {
		if part.n > 0 {
			out += "; " + count(part.n, part.one, part.more)
		}
	}
	return out
}

// count is "1 file is pushed", "2 files are pushed".
func count(n int, one, more string) string {
	if n == 1 {
		more = one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// planText has sections, each with a heading before its first line.
type planText struct {
	strings.Builder
	heading string
}

func (t *planText) line(format string, args ...any) {
	for i, arg := range args {
		if text, is := arg.(string); is {
			args[i] = oneLine(text)
		}
	}
	fmt.Fprintf(t, format+"\n", args...)
}

func (t *planText) section(heading string) {
	if t.heading == heading {
		return
	}
	t.heading = heading
	t.line("\n%s:", heading)
}

func (t *planText) release(p *Plan) {
	r := p.Release
	switch {
	case r.To == "" && r.From == "":
		t.line("Release: none is installed")
	case r.To == "":
		t.line("Release: %s, which is removed", strings.TrimSpace(r.Name+" "+r.From))
	case r.From == "":
		t.line("Release: %s %s, on what has none", r.Name, r.To)
	case r.From != r.To:
		t.line("Release: %s %s → %s", r.Name, r.From, r.To)
	default:
		t.line("Release: %s %s", r.Name, r.To)
	}
	if len(p.Phases) > 0 {
		t.line("Phases: %s", strings.Join(p.Phases, ", "))
	}
	if p.Style != "" {
		t.line("Style: %s", p.Style)
	}
	if len(p.Later) > 0 {
		t.line("It is the first upgrade of %d: %s", len(p.Later)+1, strings.Join(append([]string{r.To}, p.Later...), ", "))
	}
}

// change writes what a release brings.
func (t *planText) change(c PlannedChange) {
	t.differences("Configuration", c.Configuration)
	for _, c := range c.Components {
		t.section("Components")
		sign := "+"
		if c.Action == PlanRemove {
			sign = "-"
		}
		t.line("  %s %s (%s)", sign, c.Name, c.Kind)
	}
	for _, b := range c.Backups {
		t.section("Backups that would be made, and proved by restoring them")
		if b.Made != "" {
			t.line("  %s: exists already, as %s", b.Data, b.Made)
		} else {
			t.line("  %s", b.Data)
		}
	}
	for _, m := range c.Migrations {
		t.section("Migrations")
		line := fmt.Sprintf("  %s of %s, %s the components", m.Name, m.Data, m.When)
		if len(m.Stops) > 0 {
			line += "; stopped meanwhile: " + strings.Join(m.Stops, ", ")
		}
		if !m.Undo {
			line += "; only the backup leads back"
		}
		t.line("%s", line)
	}
}

func (t *planText) differences(heading string, all []Difference) {
	for _, d := range all {
		t.section(heading)
		t.difference("  ", d)
	}
}

func (t *planText) difference(indent string, d Difference) {
	switch {
	case d.Old == "":
		t.line("%s+ %s: %s", indent, d.Path, d.New)
	case d.New == "":
		t.line("%s- %s: %s", indent, d.Path, d.Old)
	default:
		t.line("%s~ %s: %s → %s", indent, d.Path, d.Old, d.New)
	}
}

func (t *planText) terraform(tf PlannedTerraform) {
	for _, r := range tf.Resources {
		t.section("Terraform")
		t.line("  %s %s", r.Action, r.Address)
		for _, d := range r.Fields {
			t.difference("      ", d)
		}
	}
	t.differences("Terraform outputs", tf.Outputs)
}

func (t *planText) objects(heading string, all []PlannedObject) {
	for _, o := range all {
		t.section(heading)
		sign := map[string]string{PlanAdd: "+", PlanChange: "~", PlanRemove: "-"}[o.Action]
		line := "  " + sign + " " + o.String()
		if o.Note != "" {
			line += " (" + o.Note + ")"
		}
		t.line("%s", line)
		for _, d := range o.Fields {
			t.difference("      ", d)
		}
	}
}

func (t *planText) list(heading, sign string, all []string) {
	for _, what := range all {
		t.section(heading)
		t.line("  %s %s", sign, what)
	}
}
