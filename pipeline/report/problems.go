package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
)

// problem is a diagnosis with what the record says about its step.
type problem struct {
	Diagnosis
	Fault  *fault.Fault // nil: the error has no code
	Log    string       // of the step
	Blocks []string     // "stage/step" of the steps that it kept from starting
}

// problems are why the run did not succeed: its diagnoses, those of failed steps
// without one, and what went wrong outside of steps.
func (r *Run) problems() []problem {
	known := *r
	known.Diagnosis, known.Warnings = slices.Clone(r.Diagnosis), slices.Clone(r.Warnings)
	known.diagnose()
	var out []problem
	told := map[string]bool{} // steps whose fault is shown
	for _, d := range known.Diagnosis {
		p := problem{Diagnosis: d}
		for i := range r.Steps {
			if s := &r.Steps[i]; d.Step != "" && s.ID() == d.Step && !told[d.Step] {
				told[d.Step] = true
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

// text is the warning in one line.
func (w *Warning) text() string {
	if w.Step == "" {
		return w.Summary
	}
	return w.Step + ": " + w.Summary
}

// look is how a status or an outcome is shown: never by colour alone.
type look struct {
	Icon  string // name of a symbol of the page
	Emoji string // for Markdown
	Tone  string // class of the page: "good", "bad", "warn", "live" or "idle"
}

func lookOf(s pipeline.Status) look {
	switch s {
	case pipeline.Succeeded:
		return look{"check", "✅", "good"}
	case pipeline.Reused:
		return look{"reuse", "♻️", "good"}
	case pipeline.Failed:
		return look{"cross", "❌", "bad"}
	case pipeline.Warned:
		return look{"warn", "⚠️", "warn"}
	case pipeline.Running:
		return look{"clock", "⏳", "live"}
	case pipeline.Blocked:
		return look{"block", "🚫", "warn"}
	case pipeline.Cancelled, pipeline.Interrupted:
		return look{"stop", "🛑", "warn"}
	case pipeline.Skipped, pipeline.Unselected:
		return look{"dash", "⏭️", "idle"}
	}
	return look{"ring", "⚪", "idle"}
}

func (o Outcome) look() look {
	switch o {
	case Succeeded:
		return lookOf(pipeline.Succeeded)
	case Failed:
		return lookOf(pipeline.Failed)
	case Cancelled, Interrupted:
		return lookOf(pipeline.Cancelled)
	}
	return lookOf(pipeline.Running)
}

func (a *App) look() look {
	switch {
	case a.OK():
		return lookOf(pipeline.Succeeded)
	case a.Health == "Progressing" || a.Health == "Healthy":
		return lookOf(pipeline.Running)
	}
	return lookOf(pipeline.Failed)
}

// counts tells how many steps have which status: "3 succeeded, 1 failed".
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
