package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/redact"
)

// Summary writes the record as plain text for a terminal: the run in one line, its phases, the
// steps, what failed and why, the apps, the addresses. Codes and remedies of faults are
// left to the caller.
func (r *Run) Summary(w io.Writer) error {
	if err := r.summary(w, func(s string) string { return s }); err != nil {
		return err
	}
	var b bytes.Buffer
	commands(&b, ToReproduce, r.Reproduce)
	_, err := w.Write(b.Bytes())
	return err
}

// Brief is Summary for a caller that prints the error of the run and how to reproduce it itself.
// Long errors of steps are shortened.
func (r *Run) Brief(w io.Writer) error { return r.summary(w, beginning) }

func (r *Run) summary(w io.Writer, why func(string) string) error {
	var b bytes.Buffer
	r.head(&b)
	if rows := r.phaseRows(); len(rows) > 0 {
		b.WriteByte('\n')
		table(&b, []string{"PHASE", "RESULT", "TIME"}, rows)
	}
	if len(r.Steps) > 0 {
		b.WriteByte('\n')
		table(&b, []string{"STEP", "STATUS", "TIME"}, r.stepRows())
	}
	for i, line := range r.counted() {
		if i == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s\n", line)
	}
	for _, s := range r.Steps {
		if s.Status == pipeline.Failed {
			fmt.Fprintf(&b, "\n%s/%s: %s\n", s.Stage, s.Step, indented(why(s.Error)))
			if s.Log != "" {
				fmt.Fprintf(&b, "  log: %s\n", redact.OneLine(s.Log))
			}
		}
	}
	for _, d := range r.Diagnosis {
		if !strings.Contains(r.Error, d.Summary) { // not covered by the errors above
			fmt.Fprintf(&b, "\ncause: %s\n", indented(d.Summary))
		}
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "\nwarning: %s\n", indented(w.text()))
		if w.Fix != "" {
			fmt.Fprintf(&b, "  remedy: %s\n", indented(w.Fix))
		}
	}
	if len(r.Apps) > 0 {
		b.WriteByte('\n')
		apps(&b, r.Apps)
	}
	r.tail(&b)
	_, err := w.Write(b.Bytes())
	return err
}

func (r *Run) head(b *bytes.Buffer) {
	fmt.Fprintf(b, "%s: %s", r.name(), r.Outcome)
	if d := r.Elapsed(); d > 0 {
		fmt.Fprintf(b, " in %s", Took(d))
	}
	fmt.Fprintf(b, ", run %s\n", r.ID)
	if r.Unchanged {
		b.WriteString("nothing changed: what earlier runs have done still holds\n")
	}
}

func (r *Run) stepRows() [][]string {
	var rows [][]string
	for _, s := range r.Steps {
		status := string(s.Status)
		if len(s.BlockedBy) > 0 {
			status += " by " + strings.Join(s.BlockedBy, ", ")
		}
		if s.Attempt > 1 {
			status += fmt.Sprintf(" (attempt %d)", s.Attempt)
		}
		status += redact.OneLine(s.Note)
		took := "-"
		if !s.Started.IsZero() {
			took = Took(s.elapsed())
		}
		rows = append(rows, []string{s.ID(), status, took})
	}
	return rows
}

// counted has a line for each step that has counted something: "apps-check/shop counted:
// rows 40".
func (r *Run) counted() []string {
	var lines []string
	for i := range r.Steps {
		if s := &r.Steps[i]; len(s.Counts) > 0 {
			lines = append(lines, redact.OneLine(s.ID()+" counted: "+s.Counted()))
		}
	}
	return lines
}

func (r *Run) tail(b *bytes.Buffer) {
	if len(r.Links) > 0 {
		b.WriteByte('\n')
		rows := make([][]string, len(r.Links))
		for i, l := range r.Links {
			rows[i] = []string{l.Name, l.URL}
		}
		table(b, []string{"APP", "ADDRESS"}, rows)
	}
	if r.Guidance != "" {
		b.WriteByte('\n')
		for line := range strings.Lines(r.Guidance) {
			b.WriteString(strings.TrimRight(Clean(line), " \n") + "\n")
		}
	}
	commands(b, "Next:", r.Commands)
}

// ToReproduce is the heading of the commands that reproduce a failed run.
const ToReproduce = "To reproduce it, also elsewhere:"

func commands(b *bytes.Buffer, heading string, list []string) {
	if len(list) == 0 {
		return
	}
	b.WriteString("\n" + heading + "\n")
	for _, c := range list {
		b.WriteString("  " + Clean(c) + "\n")
	}
}

// apps writes a table of the apps, followed by the causes of those that are not healthy.
func apps(b *bytes.Buffer, apps []App) {
	rows := make([][]string, len(apps))
	for i, a := range apps {
		rows[i] = []string{a.Name, a.Namespace, fmt.Sprint(a.Wave), a.Sync, a.Health, short(a.Revision)}
	}
	table(b, []string{"NAME", "NAMESPACE", "WAVE", "SYNC", "HEALTH", "REVISION"}, rows)
	for _, a := range apps {
		if a.Cause != "" {
			fmt.Fprintf(b, "\n%s: %s\n", redact.OneLine(a.Name), indented(a.Cause))
		}
	}
}

// table writes rows in columns. Empty cells show as "-".
func table(b *bytes.Buffer, head []string, rows [][]string) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(head, "\t"))
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, c := range row {
			if cells[i] = redact.OneLine(c); cells[i] == "" {
				cells[i] = "-"
			}
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	_ = w.Flush() // writing to a buffer does not fail
}

// Line formats an event as one line of progress: "infrastructure/terraform: failed
// after 12s: apply: …". Of a long error it has the beginning.
func Line(e pipeline.Event) string {
	r := e.Result
	line := r.String() + ": " + string(e.Status)
	if e.Status != pipeline.Running && !r.Started.IsZero() {
		line += " after " + Took(r.Elapsed())
	}
	if r.Err != nil && e.Status != pipeline.Cancelled {
		first, _, _ := strings.Cut(Clean(r.Err.Error()), "\n")
		if e.Status == pipeline.Blocked {
			first = strings.TrimPrefix(first, "blocked ")
			return line + " " + first
		}
		line += ": " + beginning(first)
	}
	return line
}
