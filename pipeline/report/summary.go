package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"text/template"

	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/redact"
)

var (
	//go:embed page/summary.txt.tmpl
	summaryText string
	//go:embed page/summary.md.tmpl
	markdownText string
)

// functions are what the templates of all views of a record can call.
func functions() map[string]any {
	return map[string]any{
		"meaning": meaning, "short": short, "size": size, "took": Took, "utc": utc, "clean": Clean, "oneLine": redact.OneLine, "indented": indented,
		"md": md, "code": code, "fence": fence, "row": row, "toReproduce": func() string { return ToReproduce },
		"appStyle": (*App).style, "outcomeStyle": Outcome.style, "warning": (*Warning).text, "where": (*problem).where,
		"name": (*Run).name, "elapsed": (*Run).took, "counts": (*Run).counts, "counted": (*Run).counted, "causes": (*Run).causes, "problems": (*Run).problems,
		"phases": (*Run).phaseViews, "steps": (*Run).stepViews, "pathTook": (*Run).pathTook, "guidance": (*Run).guidance,
	}
}

// fill writes what a template makes of the record.
func (r *Run) fill(w io.Writer, text string, more map[string]any) error {
	t, err := template.New("summary").Funcs(functions()).Funcs(more).Parse(text)
	if err != nil {
		return fmt.Errorf("parse the summary: %w", err)
	}
	return t.Execute(w, r)
}

// Summary writes the record as plain text for a terminal: the run in one line, its phases, the
// steps, what failed and why, the apps, the addresses. Codes and remedies of faults are
// left to the caller.
func (r *Run) Summary(w io.Writer) error {
	return r.summary(w, r.Reproduce, func(s string) string { return s })
}

// Brief is Summary for a caller that prints the error of the run and how to reproduce it itself.
// Long errors of steps are shortened.
func (r *Run) Brief(w io.Writer) error { return r.summary(w, nil, beginning) }

func (r *Run) summary(w io.Writer, reproduce []string, why func(string) string) error {
	var b bytes.Buffer
	columns := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	if err := r.fill(columns, summaryText, map[string]any{"why": why, "reproduce": func() []string { return reproduce }}); err != nil {
		return err
	}
	_ = columns.Flush() // writing to a buffer does not fail
	_, err := w.Write(b.Bytes())
	return err
}

// ToReproduce is the heading of the commands that reproduce a failed run.
const ToReproduce = "To reproduce it, also elsewhere:"

// row is a row of a table in columns. Empty cells show as "-".
func row(cells ...any) string {
	out := make([]string, len(cells))
	for i, c := range cells {
		if out[i] = redact.OneLine(fmt.Sprint(c)); out[i] == "" {
			out[i] = "-"
		}
	}
	return strings.Join(out, "\t")
}

// pathTook is how long the critical path took; empty if there is none.
func (r *Run) pathTook() string {
	if path := CriticalPath(r.Steps); len(path) > 0 {
		return Took(r.spent(path))
	}
	return ""
}

// took is how long the run took; empty while it has not ended.
func (r *Run) took() string {
	if d := r.Elapsed(); d > 0 {
		return Took(d)
	}
	return ""
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

// causes are the diagnoses that the errors of the steps do not cover.
func (r *Run) causes() []string {
	var out []string
	for _, d := range r.Diagnosis {
		if !strings.Contains(r.Error, d.Summary) {
			out = append(out, d.Summary)
		}
	}
	return out
}

// guidance is the release's, without blanks at the ends of its lines.
func (r *Run) guidance() string {
	var lines []string
	for line := range strings.Lines(r.Guidance) {
		lines = append(lines, strings.TrimRight(Clean(line), " \n"))
	}
	return strings.Join(lines, "\n")
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
