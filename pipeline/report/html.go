package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/pipeline/redact"
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

// pageView is the data of the template.
type pageView struct {
	*Run
	Title    string
	Policy   string // content security policy
	CSS      template.CSS
	JS       template.JS
	Healthy  int // apps
	Problems []problem
	Parts    []phaseView
	Timeline timelineView
	Stages   []stageView
	Facts    []fact
	Files    []string
}

type stageView struct {
	Name  string
	Steps []*stepView
}

// phaseView is a phase that the run has something of.
type phaseView struct {
	Phase
	Style        style
	Words, About string
	Start, Lasts string   // when it began, from the start of the run, and how long it took; empty while that is not known
	Has          []string // its steps in the run
}

type stepView struct {
	*Step
	Anchor         string
	Style          style
	From, To, Took string // empty while that is not known
	Critical       bool   // it is on the critical path
	Bar            bar
	Log            *logText
}

// Waits returns the ids of the steps that the step waited for.
func (s *stepView) Waits() []string { return slices.Concat(s.Needs, s.After) }

type fact struct{ Name, Value string }

// page writes report.html. Its content security policy allows only its own script and
// style, by their digests, so that nothing in a log or an error can become one.
func (r *Run) page(b *bytes.Buffer, root *os.Root) error {
	steps := r.stepViews()
	addLogs(steps, root)
	byID := map[string]*stepView{}
	for _, s := range steps {
		byID[s.ID()] = s
	}
	t, err := template.New("report").Funcs(functions()).Funcs(template.FuncMap{
		"step": func(id string) *stepView { return byID[id] }, // nil: there is none
		"web":  func(url string) bool { return strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://") },
	}).Parse(pageText)
	if err != nil {
		return fmt.Errorf("parse the page: %w", err)
	}
	if err := t.Execute(b, r.view(root, steps)); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

func (r *Run) view(root *os.Root, steps []*stepView) *pageView {
	v := &pageView{
		Run: r, CSS: template.CSS(pageCSS), JS: template.JS(pageJS), Problems: r.problems(), Parts: r.phaseViews(), Timeline: r.timeline(steps), Facts: r.facts(),
		Title: fmt.Sprintf("%s of %s: %s", title(r.Workflow), r.Deployment, r.Outcome),
		Policy: fmt.Sprintf("default-src 'none'; style-src '%s'; script-src '%s'; img-src data:; base-uri 'none'; form-action 'none'",
			digest(pageCSS), digest(pageJS)),
	}
	for _, a := range r.Apps {
		if a.OK() {
			v.Healthy++
		}
	}
	for _, s := range steps {
		n := len(v.Stages)
		if n == 0 || v.Stages[n-1].Name != s.Stage {
			v.Stages = append(v.Stages, stageView{Name: s.Stage})
			n++
		}
		v.Stages[n-1].Steps = append(v.Stages[n-1].Steps, s)
	}
	for _, name := range []string{RecordFile, SummaryFile, MarkdownFile, JUnitFile, "config.yaml", "state.yaml"} {
		if _, err := root.Stat(name); err == nil {
			v.Files = append(v.Files, name)
		}
	}
	return v
}

// Result is how the phase has ended, and what there is to say about that.
func (p *phaseView) Result() string {
	if p.About == "" {
		return p.Words
	}
	return p.Words + ": " + p.About
}

func (r *Run) phaseViews() []phaseView {
	var out []phaseView
	start, _ := r.window()
	for _, p := range r.shown() {
		v := phaseView{Phase: p, Style: styleOf(p.Status)}
		v.Words, v.About = r.result(&p)
		if !p.Started.IsZero() && !p.Finished.IsZero() {
			v.Lasts = Took(p.Finished.Sub(p.Started))
		}
		if !p.Started.IsZero() && !p.Approval { // whoever was asked answered before the run
			v.Start = at(p.Started.Sub(start))
		}
		for _, s := range r.stepsOf(p.Name) {
			v.Has = append(v.Has, s.ID())
		}
		out = append(out, v)
	}
	return out
}

// stepViews returns the steps without their logs.
func (r *Run) stepViews() []*stepView {
	start, _ := r.window()
	path := CriticalPath(r.Steps)
	out := make([]*stepView, len(r.Steps))
	for i := range r.Steps {
		s := &stepView{Step: &r.Steps[i], Style: styleOf(r.Steps[i].Status), Critical: slices.Contains(path, i)}
		out[i] = s
		s.Anchor = fmt.Sprintf("step-%d-%s", i+1, notInAnchor.ReplaceAllString(s.Step.Step, "-"))
		if !s.Started.IsZero() {
			s.From, s.Took = at(s.Started.Sub(start)), Took(s.elapsed())
			if s.ran() {
				s.To = at(s.Finished.Sub(start))
			}
		}
	}
	return out
}

// Result is the step's status, and what there is to say about that in a table.
func (s *stepView) Result() string {
	result := string(s.Status)
	if len(s.BlockedBy) > 0 {
		result += " by " + strings.Join(s.BlockedBy, ", ")
	}
	return result + redact.OneLine(s.Note)
}

// addLogs adds the logs of the steps, shortened where they are too long.
func addLogs(steps []*stepView, root *os.Root) {
	logs := 0
	for _, s := range steps {
		if s.Step.Log != "" {
			logs++
		}
	}
	limit := min(logLimit, logsLimit/max(logs, 1))
	for _, s := range steps {
		if s.Step.Log == "" {
			continue
		}
		text, err := readLog(root, s.Step.Log, limit)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			text = &logText{Err: err.Error()}
		}
		s.Log = text
	}
}

func (r *Run) facts() []fact {
	platform := strings.TrimSpace(r.Platform.Name + " " + r.Platform.Version)
	ended, exit := "", ""
	if !r.Finished.IsZero() {
		ended = utc(r.Finished)
	}
	if r.Outcome.Ended() {
		exit = fmt.Sprintf("%d: %s", r.Exit, meaning(r.Exit))
	}
	return slices.DeleteFunc([]fact{
		{"Run", r.ID}, {"Workflow", r.Workflow}, {"Deployment", r.Deployment}, {"Provider", r.Provider},
		{"Platform", platform}, {"Platform’s digest", r.Platform.Digest}, {"Platform’s commit", r.Platform.Commit}, {"Configuration’s digest", r.Config},
		{"Slipway", r.Slipway}, {"Lock", r.Lock}, {"Started", utc(r.Started)}, {"Ended", ended},
		{"Exit code", exit},
	}, func(f fact) bool { return f.Value == "" })
}

func title(s string) string {
	if s == "" {
		return "Run"
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func utc(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// notInAnchor matches a character that an anchor may not contain.
var notInAnchor = regexp.MustCompile(`[^-0-9A-Za-z]`)

// digest returns the digest of a script or style for a content security policy.
func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
