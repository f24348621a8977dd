package report

import (
	"fmt"
	"io"
	"regexp"
	"strings"
)

// Markdown writes the record in GitHub's Markdown, for instance for the summary of a CI
// job: the run in one line, why it failed and what to do, its phases, the apps, the steps.
func (r *Run) Markdown(w io.Writer) error {
	r, err := r.cleaned()
	if err != nil {
		return err
	}
	return r.fill(w, markdownText, nil)
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
		parts = append(parts, fmt.Sprintf("%s (%s)", md(p.Fault.Code), meaning(p.Fault.Class)))
	}
	if p.Log != "" {
		parts = append(parts, "log `"+code(p.Log)+"`")
	}
	return strings.Join(parts, ", ")
}

// fenceLimit limits the text of a code block, as CI systems reject long summaries.
const fenceLimit = 4 << 10

// fence returns lines as a code block that nothing in them can end.
func fence(lines []string) string {
	text := strings.TrimRight(strings.Join(lines, "\n"), "\n")
	if len(text) > fenceLimit {
		text = strings.ToValidUTF8(text[:fenceLimit], "") + "\n… (more in report.html)"
	}
	marks := "```"
	for strings.Contains(text, marks) {
		marks += "`"
	}
	return marks + "\n" + text + "\n" + marks
}

var special = regexp.MustCompile("[\\\\`*_\\[\\]<>|~&@$#]")

// md returns text on one line, escaped so that it contains no Markdown, HTML or
// mentions.
func md(text any) string {
	s := strings.Join(strings.Fields(fmt.Sprint(text)), " ")
	return special.ReplaceAllStringFunc(s, func(c string) string {
		if strings.Contains("<>&@", c) {
			return fmt.Sprintf("&#%d;", c[0])
		}
		return `\` + c
	})
}

func code(s string) string {
	return strings.NewReplacer("`", "'", "|", "/", "\n", " ").Replace(s)
}
