package report

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Markdown writes the record in GitHub's Markdown, for instance for the summary of a CI
// job: the run in one line, why it failed and what to do, its phases, the apps, the steps.
func (r *Run) Markdown(w io.Writer) error {
	r, err := r.cleaned()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "## %s %s: %s\n\n", r.Outcome.style().Emoji, md(r.name()), md(string(r.Outcome)))
	fmt.Fprintf(&b, "Run `%s`", code(r.ID))
	if d := r.Elapsed(); d > 0 {
		fmt.Fprintf(&b, ", %s", Took(d))
	}
	fmt.Fprintf(&b, "; steps: %s", r.counts())
	if r.Unchanged {
		b.WriteString("; nothing changed")
	}
	if r.Outcome.Ended() {
		fmt.Fprintf(&b, "; exit code %d (%s)", r.Exit, meaning(r.Exit))
	}
	b.WriteByte('\n')
	if r.Lock != "" {
		fmt.Fprintf(&b, "\n`lock %s`\n", code(r.Lock))
	}
	for _, p := range r.problems() {
		p.markdown(&b)
	}
	if len(r.Reproduce) > 0 {
		b.WriteString("\n" + ToReproduce + "\n\n")
		fence(&b, strings.Join(r.Reproduce, "\n"))
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(&b, "\n> ⚠️ %s\n", md(warning.text()))
		if warning.Fix != "" {
			fmt.Fprintf(&b, ">\n> **Remedy:** %s\n", md(warning.Fix))
		}
	}
	r.mdPhases(&b)
	r.mdApps(&b)
	r.mdSteps(&b)
	_, err = w.Write(b.Bytes())
	return err
}

func (p *problem) markdown(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n### %s\n\n", md(p.Summary))
	if where := p.where(); where != "" {
		fmt.Fprintf(b, "%s\n\n", where)
	}
	if len(p.Details) > 0 {
		fence(b, strings.Join(p.Details, "\n"))
	}
	if p.Fault != nil {
		fmt.Fprintf(b, "**Remedy:** %s\n", md(p.Fault.Fix))
	}
}

// where lists the problem's step, app, code and log.
func (p *problem) where() string {
	var parts []string
	if p.Step != "" {
		parts = append(parts, "Step `"+code(p.Step)+"`")
	}
	if p.App != "" {
		parts = append(parts, "app `"+code(p.App)+"`")
	}
	if p.Fault != nil {
		parts = append(parts, fmt.Sprintf("%s (%s)", md(string(p.Fault.Code)), meaning(p.Fault.Class)))
	}
	if p.Log != "" {
		parts = append(parts, "log `"+code(p.Log)+"`")
	}
	return strings.Join(parts, ", ")
}

func (r *Run) mdPhases(b *bytes.Buffer) {
	rows := r.phaseRows()
	if len(rows) == 0 {
		return
	}
	b.WriteString("\n### Phases\n\n| | Phase | Result | Time |\n|---|---|---|--:|\n")
	for i, p := range r.shown() {
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", styleOf(p.Status).Emoji, md(rows[i][0]), md(rows[i][1]), rows[i][2])
	}
}

func (r *Run) mdApps(b *bytes.Buffer) {
	if len(r.Apps) == 0 {
		return
	}
	b.WriteString("\n### Applications\n\n| | App | Namespace | Wave | Sync | Health | Revision | Cause |\n|---|---|---|--:|---|---|---|---|\n")
	for _, a := range r.Apps {
		fmt.Fprintf(b, "| %s | %s | %s | %d | %s | %s | %s | %s |\n", a.style().Emoji,
			md(a.Name), md(a.Namespace), a.Wave, md(a.Sync), md(a.Health), md(short(a.Revision)), md(a.Cause))
	}
}

func (r *Run) mdSteps(b *bytes.Buffer) {
	if len(r.Steps) == 0 {
		return
	}
	path := CriticalPath(r.Steps)
	b.WriteString("\n### Steps\n\n")
	if len(path) > 0 {
		fmt.Fprintf(b, "◆ marks the critical path, %s.\n\n", Took(r.spent(path)))
	}
	b.WriteString("| | Step | Status | Time | |\n|---|---|---|--:|---|\n")
	rows := r.stepRows()
	for i, s := range r.Steps {
		on := ""
		if slices.Contains(path, i) {
			on = "◆"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", styleOf(s.Status).Emoji, md(rows[i][0]), md(rows[i][1]), rows[i][2], on)
	}
	for i, line := range r.counted() {
		if i == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(b, "- %s\n", md(line))
	}
}

// spent returns how long the steps with these indexes ran in total.
func (r *Run) spent(path []int) time.Duration {
	var d time.Duration
	for _, i := range path {
		d += r.Steps[i].Finished.Sub(r.Steps[i].Started)
	}
	return d
}

// fenceLimit limits the text of a code block, as CI systems reject long summaries.
const fenceLimit = 4 << 10

// fence writes text as a code block that nothing in it can end.
func fence(b *bytes.Buffer, text string) {
	text = strings.TrimRight(text, "\n")
	if len(text) > fenceLimit {
		text = strings.ToValidUTF8(text[:fenceLimit], "") + "\n… (more in report.html)"
	}
	marks := "```"
	for strings.Contains(text, marks) {
		marks += "`"
	}
	fmt.Fprintf(b, "%s\n%s\n%s\n\n", marks, text, marks)
}

var special = regexp.MustCompile("[\\\\`*_\\[\\]<>|~&@$#]")

// md returns text on one line, escaped so that it contains no Markdown, HTML or
// mentions.
func md(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	return special.ReplaceAllStringFunc(s, func(c string) string {
		if strings.Contains("<>&@", c) {
			return fmt.Sprintf("&#%d;", c[0])
		}
		return `\` + c
	})
}

// code returns text for a code span.
func code(s string) string {
	return strings.NewReplacer("`", "'", "|", "/", "\n", " ").Replace(s)
}
