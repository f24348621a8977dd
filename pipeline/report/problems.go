package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
)

// problem is a diagnosis together with the details of its step.
type problem struct {
	Diagnosis
	Fault  *fault.Fault // nil: the error has no code
	Log    string       // of the step
	Blocks []string     // "stage/step" of the steps that it prevented from starting
}

// problems returns why the run did not succeed: its diagnoses, one for each failed step
// without any, and errors outside of steps.
func (r *Run) problems() []problem {
	known := *r
	known.Diagnosis, known.Warnings = slices.Clone(r.Diagnosis), slices.Clone(r.Warnings)
	known.diagnose()
	var out []problem
	shown := map[string]bool{} // steps whose fault is shown
	for _, d := range known.Diagnosis {
		p := problem{Diagnosis: d}
		for i := range r.Steps {
			if s := &r.Steps[i]; d.Step != "" && s.ID() == d.Step && !shown[d.Step] {
				shown[d.Step] = true
				p.Fault, p.Log = s.Fault, s.Log
			} else if d.Step != "" && slices.Contains(s.BlockedBy, d.Step) {
				p.Blocks = append(p.Blocks, s.ID())
			}
		}
		out = append(out, p)
	}
	if len(out) == 0 && r.Error != "" {
		p := problem{Fault: r.Fault}
		lines := strings.Split(strings.TrimSpace(r.Error), "\n")
		p.Summary, p.Details = lines[0], lines[1:]
		out = append(out, p)
	}
	return out
}

// text returns the warning in one line.
func (w *Warning) text() string {
	if w.Step == "" {
		return w.Summary
	}
	return w.Step + ": " + w.Summary
}

// style is how a status or an outcome is shown, never by colour alone.
type style struct {
	Icon  string // name of a symbol of the page
	Emoji string // for Markdown
	Tone  string // CSS class: "good", "bad", "warn", "live" or "idle"
}

func styleOf(s pipeline.Status) style {
	switch s {
	case pipeline.Succeeded:
		return style{"check", "✅", "good"}
	case pipeline.Reused:
		return style{"reuse", "♻️", "good"}
	case pipeline.Failed:
		return style{"cross", "❌", "bad"}
	case pipeline.Warned:
		return style{"warn", "⚠️", "warn"}
	case pipeline.Running:
		return style{"clock", "⏳", "live"}
	case pipeline.Blocked:
		return style{"block", "🚫", "warn"}
	case pipeline.Cancelled, pipeline.Interrupted:
		return style{"stop", "🛑", "warn"}
	case pipeline.Skipped, pipeline.Unselected:
		return style{"dash", "⏭️", "idle"}
	}
	return style{"ring", "⚪", "idle"}
}

func (o Outcome) style() style {
	return styleOf(pipeline.Status(o)) // which are called the same
}

func (a *App) style() style {
	switch {
	case a.OK():
		return styleOf(pipeline.Succeeded)
	case a.Health == "Progressing" || a.Health == "Healthy":
		return styleOf(pipeline.Running)
	}
	return styleOf(pipeline.Failed)
}

// counts returns the number of steps by status: "3 succeeded, 1 failed".
func (r *Run) counts() string {
	var parts []string
	for _, s := range []pipeline.Status{
		pipeline.Succeeded, pipeline.Reused, pipeline.Failed, pipeline.Warned, pipeline.Running,
		pipeline.Interrupted, pipeline.Blocked, pipeline.Cancelled, pipeline.Skipped, pipeline.Unselected, pipeline.Pending,
	} {
		n := 0
		for _, step := range r.Steps {
			if step.Status == s {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}
