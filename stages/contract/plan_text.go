package contract

import (
	"cmp"
	"fmt"
	"io"
	"slices"
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
	for _, d := range p.Configuration {
		t.section("Configuration")
		t.difference("  ", d)
	}
	var destroyed []string
	for _, part := range planParts() {
		for _, c := range p.Changes {
			if c.Of == part.of {
				t.section(part.heading)
				t.change(c)
			}
			if c.Of == part.of && c.Destroys != "" {
				destroyed = append(destroyed, c.Destroys)
			}
		}
	}
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
	for _, what := range destroyed {
		t.section("Destructive")
		t.line("  ! %s", what)
	}
	_, err := io.WriteString(w, t.String())
	return err
}

// planPart is how the changes of one kind are told.
type planPart struct{ of, heading, one, more string }

func planParts() []planPart {
	return []planPart{
		{of: PlanComponents, heading: "Components"},
		{PlanBackups, "Backups that would be made, and proved by restoring them", "backup is made", "backups are made"},
		{PlanMigrations, "Migrations", "migration is carried out", "migrations are carried out"},
		{PlanTerraform, "Terraform", "resource of Terraform changes", "resources of Terraform change"},
		{of: PlanOutputs, heading: "Terraform outputs"},
		{of: PlanObjects, heading: "Objects"},
		{PlanJobs, "Jobs that would run", "Job runs", "Jobs run"},
		{PlanFiles, "Files that would be pushed to the Git server", "file is pushed", "files are pushed"},
		{of: PlanApplications, heading: "Applications"},
		{of: PlanImages, heading: "Images"},
	}
}

// Sort brings the changes into the order in which a plan has them: by what they are of and, but
// for migrations, by name.
func (p *Plan) Sort() {
	place := func(c PlannedChange) int {
		return slices.IndexFunc(planParts(), func(part planPart) bool { return part.of == c.Of })
	}
	slices.SortStableFunc(p.Changes, func(a, b PlannedChange) int {
		if a.Of == b.Of && a.Of == PlanMigrations {
			return 0
		}
		return cmp.Or(cmp.Compare(place(a), place(b)), strings.Compare(a.Name, b.Name))
	})
}

// Summary is the plan in one line.
func (p *Plan) Summary() string {
	if p.Empty() {
		text := "no changes: " + count(p.Unchanged, "object is as it should be", "objects are as they should be")
		if len(p.Unknown) > 0 {
			text += "; " + count(len(p.Unknown), "thing is unknown", "things are unknown")
		}
		return text
	}
	actions, parts, destroyed := map[string]int{}, map[string]int{}, 0
	for _, c := range p.Changes {
		parts[c.Of]++
		if c.Of == PlanObjects || c.Of == PlanApplications {
			actions[c.Action]++
		}
		if c.Destroys != "" {
			destroyed++
		}
	}
	out := fmt.Sprintf("%d to add, %d to change, %d to remove, %d unchanged", actions[PlanAdd], actions[PlanChange], actions[PlanRemove], p.Unchanged)
	add := func(n int, one, more string) {
		if n > 0 && one != "" {
			out += "; " + count(n, one, more)
		}
	}
	add(len(p.Configuration), "setting differs", "settings differ")
	for _, part := range planParts() {
		add(parts[part.of], part.one, part.more)
	}
	add(len(p.Later), "upgrade follows", "upgrades follow")
	add(destroyed, "is destructive", "are destructive")
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

func (t *planText) change(c PlannedChange) {
	line := "  " + c.Name
	if sign := map[string]string{PlanAdd: "+", PlanChange: "~", PlanRemove: "-", PlanReplace: "-/+"}[c.Action]; sign != "" {
		line = "  " + sign + " " + c.Name
		if c.Note != "" {
			line += " (" + c.Note + ")"
		}
	} else if c.Note != "" {
		line += ": " + c.Note
	}
	t.line("%s", line)
	for _, d := range c.Fields {
		t.difference("      ", d)
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
