package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"os"
	"strings"
	"time"
)

// The parts of the page, which is a single file.
var (
	//go:embed page/report.html
	pageText string
	//go:embed page/report.css
	pageCSS string
	//go:embed page/report.js
	pageJS string
)

// lastLines is how many lines of its log are shown beside a problem.
const lastLines = 12

// pageView is the data of the template.
type pageView struct {
	*Run
	Title, Phrase string
	Style         style
	Ended         bool
	Policy        string // content security policy
	CSS           template.CSS
	JS            template.JS
	Start         string // UTC
	Took          string
	Counts        string
	Code, Meaning string // the exit code, and its meaning
	Healthy       int
	Problems      []problemView
	Addresses     []linkView
	Timeline      timelineView
	Stages        []stageView
	AppRows       []appView
	Facts         []fact
	Files         []string
}

type problemView struct {
	problem
	Anchor       string // of the step
	BlockedSteps []ref
	Meaning      string // of the fault's class
	Last         string // lines of the log
}

type stageView struct {
	Name  string
	Steps []*stepView
}

type stepView struct {
	*Step
	Anchor             string
	Style              style
	Label              string // status with the number of the attempt
	From, To, Took     string
	Critical, Open     bool
	NeedsRefs, Blocked []ref
	Bar                bar
	Log                *logText
	Head, Tail         []part
	Cut                string
}

// ref is a link to a step, or only its name if there is no anchor.
type ref struct{ Text, Anchor string }

type appView struct {
	App
	Style style
	Short string
}

type linkView struct {
	Link
	Web bool // it is safe to follow in a browser
}

type fact struct{ Name, Value string }

// page writes report.html. Its content security policy allows only its own script and
// style, by their digests, so that nothing in a log or an error can become one.
func (r *Run) page(b *bytes.Buffer, root *os.Root) error {
	r, err := r.cleaned()
	if err != nil {
		return err
	}
	t, err := template.New("report").Parse(pageText)
	if err != nil {
		return fmt.Errorf("parse the page: %w", err)
	}
	if err := t.Execute(b, r.view(root)); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

func (r *Run) view(root *os.Root) *pageView {
	v := &pageView{
		Run: r, Style: r.Outcome.style(), Ended: r.Outcome.Ended(), CSS: template.CSS(pageCSS), JS: template.JS(pageJS),
		Counts: r.counts(), Took: "–", Code: "–", Meaning: "there is none yet",
	}
	v.Policy = fmt.Sprintf("default-src 'none'; style-src '%s'; script-src '%s'; img-src data:; base-uri 'none'; form-action 'none'",
		digest(pageCSS), digest(pageJS))
	v.Phrase = phrase(r.Outcome)
	v.Title = fmt.Sprintf("%s of %s %s", title(r.Workflow), r.Deployment, v.Phrase)
	if r.Elapsed() > 0 {
		v.Took = Took(r.Elapsed())
	}
	if r.Outcome.Ended() {
		v.Code, v.Meaning = fmt.Sprint(int(r.Exit)), meaning(r.Exit)
	}
	v.Start = utc(r.Started)
	for _, a := range r.Apps {
		v.AppRows = append(v.AppRows, appView{a, a.style(), short(a.Revision)})
		if a.OK() {
			v.Healthy++
		}
	}
	for _, l := range r.Links {
		web := strings.HasPrefix(l.URL, "https://") || strings.HasPrefix(l.URL, "http://")
		v.Addresses = append(v.Addresses, linkView{l, web})
	}
	steps := r.stepViews(root)
	for i := range steps {
		s := steps[i]
		n := len(v.Stages)
		if n == 0 || v.Stages[n-1].Name != s.Stage {
			v.Stages = append(v.Stages, stageView{Name: s.Stage})
			n++
		}
		v.Stages[n-1].Steps = append(v.Stages[n-1].Steps, s)
	}
	v.Timeline = r.timeline(steps)
	for _, p := range r.problems() {
		v.Problems = append(v.Problems, r.problemView(p, steps))
	}
	v.Facts = r.facts()
	for _, name := range []string{RecordFile, SummaryFile, MarkdownFile, JUnitFile, "config.yaml", "state.yaml"} {
		if _, err := root.Stat(name); err == nil {
			v.Files = append(v.Files, name)
		}
	}
	return v
}

// stepViews returns the steps with their logs, shortened where they are too long.
func (r *Run) stepViews(root *os.Root) []*stepView {
	logs := 0
	for _, s := range r.Steps {
		if s.Log != "" {
			logs++
		}
	}
	limit := min(logLimit, logsLimit/max(logs, 1))
	out := make([]*stepView, len(r.Steps))
	anchors := map[string]string{}
	for i := range r.Steps {
		s := &r.Steps[i]
		out[i] = &stepView{Step: s, Anchor: fmt.Sprintf("step-%d-%s", i+1, slug(s.Step)), Style: styleOf(s.Status)}
		anchors[s.ID()] = out[i].Anchor
	}
	refs := func(ids []string) []ref {
		var refs []ref
		for _, id := range ids {
			refs = append(refs, ref{id, anchors[id]})
		}
		return refs
	}
	start, _ := r.window()
	for _, s := range out {
		s.Label = string(s.Status)
		if s.Attempt > 1 {
			s.Label += fmt.Sprintf(" (attempt %d)", s.Attempt)
		}
		s.Open = s.Style.Tone == "bad"
		s.NeedsRefs, s.Blocked = refs(append(append([]string{}, s.Needs...), s.After...)), refs(s.BlockedBy)
		s.Took = "–"
		if !s.Started.IsZero() {
			s.From = at(s.Started.Sub(start))
			s.Took = Took(s.elapsed())
			if s.ran() {
				s.To = at(s.Finished.Sub(start))
			}
		}
		if s.Step.Log == "" {
			continue
		}
		if s.Log = readLog(root, s.Step.Log, limit); s.Log != nil {
			s.Head, s.Tail = parts(s.Log.Head), parts(s.Log.Tail)
			s.Cut = size(s.Log.Cut)
		}
	}
	return out
}

func (r *Run) problemView(p problem, steps []*stepView) problemView {
	v := problemView{problem: p}
	if p.Fault != nil {
		v.Meaning = meaning(p.Fault.Class)
	}
	for _, s := range steps {
		if s.ID() == p.Step {
			v.Anchor = s.Anchor
			if s.Log != nil && p.Log != "" {
				v.Last = s.Log.last(lastLines)
			}
		}
		for _, id := range p.Blocks {
			if s.ID() == id {
				v.BlockedSteps = append(v.BlockedSteps, ref{id, s.Anchor})
			}
		}
	}
	return v
}

// facts returns the remaining details of the run.
func (r *Run) facts() []fact {
	platform := strings.TrimSpace(r.Platform.Name + " " + r.Platform.Version)
	ended, exit := "", ""
	if !r.Finished.IsZero() {
		ended = utc(r.Finished)
	}
	if r.Outcome.Ended() {
		exit = fmt.Sprintf("%d: %s", r.Exit, meaning(r.Exit))
	}
	var out []fact
	for _, f := range []fact{
		{"Run", r.ID}, {"Workflow", r.Workflow}, {"Deployment", r.Deployment}, {"Provider", r.Provider},
		{"Platform", platform}, {"Platform’s digest", r.Platform.Digest}, {"Configuration’s digest", r.Config},
		{"Slipway", r.Slipway}, {"Started", utc(r.Started)}, {"Ended", ended},
		{"Exit code", exit},
	} {
		if f.Value != "" {
			out = append(out, fact{f.Name, f.Value})
		}
	}
	return out
}

func phrase(o Outcome) string {
	switch o {
	case Succeeded:
		return "succeeded"
	case Failed:
		return "failed"
	case Cancelled:
		return "was cancelled"
	case Interrupted:
		return "was interrupted"
	}
	return "has not ended"
}

func title(s string) string {
	if s == "" {
		return "Run"
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func utc(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// slug replaces the characters of s that an anchor may not contain.
func slug(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, s)
}

// digest returns the digest of a script or style for a content security policy.
func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
