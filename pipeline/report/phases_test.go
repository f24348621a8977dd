package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
)

// phases are those of a platform release, those of a removal among them.
func phases() []report.Phase {
	return []report.Phase{
		{Name: "User Approval", Approval: true},
		{Name: "Setup", Steps: []string{"preorchestrator/namespaces", "preorchestrator/secrets", "preorchestrator/tls"}},
		{Name: "Bootstrap", Steps: []string{"preorchestrator/gitea", "preorchestrator/argocd", "preorchestrator/git"}},
		{Name: "Deployment", Steps: []string{"orchestrator/publish", "orchestrator/sync"}},
		{Name: "Verification", Steps: []string{"postorchestrator/access"}},
		{Name: "Removal", Steps: []string{"infrastructure/node-remove", "infrastructure/platform-remove"}},
	}
}

// withPhases is a run that somebody has agreed to on a terminal, and what its steps did.
func withPhases(steps []did) (*report.Run, []pipeline.Result) {
	nodes, results := plan(steps)
	r := &report.Run{
		ID: "20260102-030405-a1b2c3", Workflow: "install", Deployment: "blue", Provider: "local", Started: at(0), Outcome: report.Running,
		Platform: report.Platform{Name: "reference", Version: "1.0.0"},
		Approval: &report.Approval{How: report.OnTerminal, By: "alice@desk", Asked: at(-9.5), Answered: at(-2)},
	}
	r.Plan(nodes)
	r.Divide(phases())
	return r, results
}

// phased is the record of an install that fails in its deployment.
func phased() *report.Run {
	steps := append([]did{}, graph...)
	steps[15].to, steps[15].status = 97.9, pipeline.Failed
	steps[16] = did{steps[16].id, steps[16].needs, 0, 97.9, pipeline.Blocked}
	r, results := withPhases(steps)
	f := &fault.Fault{Code: "SYN-003", Class: fault.Step, Op: "bring the app guestbook", Fix: "correct the app", Err: errors.New("no image")}
	results[15].Err = f
	results[16].Err = &pipeline.BlockedError{By: []pipeline.Key{results[15].Key}}
	r.Finish(results, f, at(98.4))
	return r
}

// rows are the phases as a summary shows them: name, result and time.
func rows(t *testing.T, r *report.Run) []string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, r.Summary(&b))
	_, table, ok := strings.Cut(b.String(), "\nPHASE ")
	if !ok {
		return nil
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var out []string
	for _, line := range strings.Split(table, "\n")[1:] {
		out = append(out, strings.Join(regexp.MustCompile(`\s{2,}`).Split(line, -1), " | "))
	}
	return out
}

func TestPhases(t *testing.T) {
	r := phased()
	require.Equal(t, []string{
		"User Approval | answered yes: alice@desk on the terminal, 2026-01-02 03:04:03 UTC | 7.5s",
		"Setup | succeeded | 2.8s",
		"Bootstrap | succeeded | 17s",
		"Deployment | failed | 1m08s",
		"Verification | did not begin: blocked by orchestrator/sync | -",
	}, rows(t, r), "and nothing of a removal")

	b, err := r.Encode()
	require.NoError(t, err)
	back, err := report.Decode(b)
	require.NoError(t, err)
	require.Equal(t, back.Phases, r.Phases, "as in the record")
	require.Len(t, r.Phases, len(phases()), "a removal is told what it was")
	setup, removal := back.Phases[1], back.Phases[5]
	require.Equal(t, []any{pipeline.Succeeded, at(12.1), at(14.9), 2.8}, []any{setup.Status, setup.Started, setup.Finished, setup.Seconds})
	require.Equal(t, report.Phase{Name: "Removal", Steps: phases()[5].Steps}, removal)
	of := map[string]string{}
	for _, s := range back.Steps {
		of[s.ID()] = s.Phase
	}
	require.Equal(t, "Setup", of["preorchestrator/tls"])
	require.Equal(t, "Verification", of["postorchestrator/access"])
	require.Empty(t, of["infrastructure/cluster"])
}

// TestPhases_early: a run that ends early says which phases did not begin, and why.
func TestPhases_early(t *testing.T) {
	steps := append([]did{}, graph...)
	steps[9].status = pipeline.Cancelled // ran
	for i := 10; i < len(steps); i++ {
		steps[i].from, steps[i].status = 0, pipeline.Cancelled
	}
	r, results := withPhases(steps)
	require.Equal(t, []string{"Setup | did not begin | -"}, rows(t, r)[1:2], "it has not begun")
	r.Approval = nil
	r.Finish(results, pipeline.ErrStopped, at(15))
	require.Equal(t, []string{
		"User Approval | nobody was asked | -",
		"Setup | cancelled | 2.8s",
		"Bootstrap | did not begin: cancelled | -",
		"Deployment | did not begin: cancelled | -",
		"Verification | did not begin: cancelled | -",
	}, rows(t, r))

	for i := range steps {
		steps[i].from, steps[i].status = 0, pipeline.Unselected
	}
	steps[8].from, steps[8].to, steps[8].status = 13.4, 14.6, pipeline.Reused
	r, results = withPhases(steps)
	r.Finish(results, nil, at(15))
	require.Equal(t, []string{"Setup | reused | 1.2s", "Bootstrap | did not begin: not selected | -"}, rows(t, r)[1:3])
}

// TestPhases_killed: what a run has left that was killed says how far it came.
func TestPhases_killed(t *testing.T) {
	r, _ := withPhases(graph)
	left := func(done ...string) *report.Run {
		dir := directory(t, r)
		for _, name := range done {
			put(t, dir, "steps/"+name+"/log.txt", "\n")
			put(t, dir, "steps/"+name+"/result.json", `{"status":"succeeded","started":"2026-01-02T03:04:06Z","finished":"2026-01-02T03:04:08.5Z","output":{}}`)
		}
		require.NoError(t, report.Render(dir, r.ID, len(done) == 1))
		b, err := os.ReadFile(filepath.Join(dir, report.RecordFile))
		require.NoError(t, err)
		back, err := report.Decode(b)
		require.NoError(t, err)
		return back
	}
	require.Equal(t, []string{"Setup | running | -", "Bootstrap | did not begin | -"}, rows(t, left("preorchestrator.namespaces"))[1:3], "it goes on")
	require.Equal(t, []string{"Setup | interrupted | -", "Bootstrap | did not begin | -"}, rows(t, left("preorchestrator.namespaces", "preorchestrator.secrets"))[1:3])
}

// TestPhases_approval: it is told who has answered what, and when.
func TestPhases_approval(t *testing.T) {
	for want, a := range map[string]*report.Approval{
		"nobody was asked | -":                                                                 nil,
		"--yes: bob@ci, 2026-01-02 03:04:03 UTC | 0.0s":                                        {How: report.ByYes, By: "bob@ci", Answered: at(-2)},
		"--approve: bob@ci, 2026-01-02 03:04:03 UTC, plan sha256:5f | 0.0s":                    {How: report.ByDigest, By: "bob@ci", Answered: at(-2), Digest: "sha256:5f"},
		"answered yes: bob@ci on the terminal, 2026-01-02 03:04:03 UTC, plan sha256:5f | 3.0s": {How: report.OnTerminal, By: "bob@ci", Asked: at(-5), Answered: at(-2), Digest: "sha256:5f"},
	} {
		r, results := withPhases(graph)
		r.Approval = a
		r.Finish(results, nil, at(51))
		require.Equal(t, "User Approval | "+want, rows(t, r)[0])
	}
	r, _ := withPhases(graph)
	r.Approval = nil
	r.Plan(nil)
	r.Divide(phases())
	require.Empty(t, rows(t, r), "nothing of any phase is in this run")
}

// TestPhases_none: records of releases that name no phases are as they were.
func TestPhases_none(t *testing.T) {
	b, err := succeeded().Encode()
	require.NoError(t, err)
	require.NotContains(t, string(b), "phase")
	r := succeeded()
	require.Empty(t, rows(t, r))
	require.NotContains(t, page(t, directory(t, r), r), "hases")
}

// TestPage_phases: the page has a row for each phase, with its result and links to its steps.
func TestPage_phases(t *testing.T) {
	r := phased()
	r.Phases[3].Name = "Deploy </th><script>" // names are the release's
	for i := range r.Steps {
		if r.Steps[i].Phase == "Deployment" {
			r.Steps[i].Phase = r.Phases[3].Name
		}
	}
	text := page(t, directory(t, r), r)
	table := regexp.MustCompile(`(?s)<table class="phases">.*?</table>`).FindString(text)
	tags := regexp.MustCompile(`<[^>]*>`)
	var got []string
	for _, row := range regexp.MustCompile(`(?s)<tr><th scope="row">.*?</tr>`).FindAllString(table, -1) {
		got = append(got, strings.TrimSpace(tags.ReplaceAllString(strings.ReplaceAll(row, "</td>", " | "), " ")))
	}
	for i := range got {
		got[i] = strings.Join(strings.Fields(got[i]), " ")
	}
	require.Equal(t, []string{
		"User Approval answered yes alice@desk on the terminal, 2026-01-02 03:04:03 UTC | – | 7.5s | – |",
		"Setup succeeded | 0:12 | 2.8s | preorchestrator/namespaces , preorchestrator/secrets , preorchestrator/tls |",
		"Bootstrap succeeded | 0:17 | 17s | preorchestrator/gitea , preorchestrator/argocd , preorchestrator/git |",
		"Deploy &lt;/th&gt;&lt;script&gt; failed | 0:30 | 1m08s | orchestrator/publish , orchestrator/sync |",
		"Verification did not begin blocked by orchestrator/sync | – | – | postorchestrator/access |",
	}, got)
	for _, link := range regexp.MustCompile(`href="#(step-[^"]+)"`).FindAllStringSubmatch(table, -1) {
		require.Contains(t, text, `id="`+link[1]+`"`)
	}
	require.Contains(t, table, `<span class="chip bad">`)
	require.Contains(t, text, `<li><a href="#phases">Phases</a></li>`)
	require.Contains(t, text, `<dt>Phase</dt><dd>Setup</dd>`)
}

// TestMarkdown_phases.
func TestMarkdown_phases(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, phased().Markdown(&b))
	require.Contains(t, b.String(), "### Phases\n\n| | Phase | Result | Time |\n|---|---|---|--:|\n| ✅ | User Approval | answered yes: alice&#64;desk on the terminal, 2026-01-02 03:04:03 UTC | 7.5s |\n")
	require.Contains(t, b.String(), "| 🚫 | Verification | did not begin: blocked by orchestrator/sync | - |\n")
}

// TestPhases_missing: a record without phases is read.
func TestPhases_missing(t *testing.T) {
	b, err := phased().Encode()
	require.NoError(t, err)
	var doc map[string]any
	require.NoError(t, json.Unmarshal(b, &doc))
	delete(doc, "phases")
	delete(doc, "approval")
	b, err = json.Marshal(doc)
	require.NoError(t, err)
	r, err := report.Decode(b)
	require.NoError(t, err)
	require.Empty(t, rows(t, r))
}
