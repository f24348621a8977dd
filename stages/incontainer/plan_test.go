package incontainer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/providers/local"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/backup"
	"github.com/slipway-sh/slipway/stages/internal/plan"
	"github.com/slipway-sh/slipway/stages/internal/state"
	"github.com/slipway-sh/slipway/stages/step"
)

// planned makes plans of a deployment without a cluster, on whose state others can work.
type planned struct {
	*Planner
	state  *State
	serial int64 // of Terraform's state
	path   contract.PlannedPath
	adopt  bool
	n      int
}

func newPlanned(t *testing.T) *planned {
	t.Helper()
	root, release := t.TempDir(), t.TempDir()
	require.NoError(t, os.CopyFS(release, os.DirFS("../../examples/platform/1.0.0")))
	p := &planned{state: &State{backend: state.Backend{Volume: root}, store: volume(t, root), errw: io.Discard}, serial: 3}
	reg := &step.Registry{}
	step.Register(reg, contract.PreflightStep(), step.Once(func(context.Context, *step.Env, contract.PreflightInput) (contract.Preflight, error) {
		return contract.Preflight{}, nil
	}))
	apply := func(context.Context, *step.Env, contract.TerraformInput) (contract.Infrastructure, error) {
		t.Error("a plan applies nothing")
		return contract.Infrastructure{}, nil
	}
	step.Register(reg, contract.TerraformStep(), step.Once(apply).Planned(func(_ context.Context, env *step.Env, _ contract.TerraformInput) (contract.Infrastructure, error) {
		env.Plan.Note(contract.PlanBasis{Terraform: fmt.Sprintf("l %d", p.serial)})
		env.Plan.Note(contract.PlannedChange{Of: contract.PlanTerraform, Action: contract.PlanReplace, Name: "a.b", Destroys: "Terraform would replace a.b"})
		return contract.Infrastructure{StorageClass: "c"}, nil
	}))
	p.Planner = &Planner{Steps: reg, Dirs: step.Dirs{State: root, Platform: release}, Render: func(_ context.Context, r *platform.Release, s contract.RenderInput) ([]contract.Rendered, error) {
		require.Equal(t, "demo", s.Deployment)
		return []contract.Rendered{{Component: "gitea", File: "f", Objects: []map[string]any{
			{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s", "namespace": "gitea"}, "stringData": map[string]any{"password": "<generated>"}},
			{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "gitea", "namespace": "gitea"},
				"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "gitea@sha256:1"}}}}}},
		}}}, nil
	}}
	return p
}

// make makes a plan with a configuration; approved may be the digest of an earlier one.
func (p *planned) make(t *testing.T, text, release, approved string) (*contract.Plan, error) {
	t.Helper()
	cfg, err := config.Load([]byte("apiVersion: slipway.sh/v1\nglobal: {name: demo}\n"+text), config.Options{DefaultProvider: "local"})
	require.NoError(t, err)
	environment, err := stages.EnvironmentOf(local.Provider{}, providers.Deployment{Name: "demo", Scale: cfg.Global.Scale})
	require.NoError(t, err)
	p.n++
	return p.perform(t.Context(), p.state, contract.PlanRequest{
		Workflow: config.Install, Run: "20260102-030405-" + strings.Repeat("0", 5) + string(rune('a'+p.n)), ConfigText: cfg.Canonical(),
		Inputs:   contract.Inputs{Environment: environment, ReleaseDigest: release, ImagesDigest: "i", RunOptions: contract.RunOptions{TakeOwnership: p.adopt}},
		Approved: approved, PlannedPath: p.path,
	})
}

// installed keeps a release as the installed one.
func (p *planned) installed(t *testing.T, is contract.Installed) {
	t.Helper()
	repo, err := backup.Open(t.Context(), p.state.backend, p.state.store)
	require.NoError(t, err)
	files := os.DirFS(p.Dirs.Platform)
	is.Platform = "reference"
	is.Digest, err = platform.Digest(files)
	require.NoError(t, err)
	require.NoError(t, repo.KeepInstalled(t.Context(), 1, nil, is, files))
}

func TestAPlanWithoutACluster(t *testing.T) {
	p := newPlanned(t)
	got, err := p.make(t, "", "sha256:r", "")
	require.NoError(t, err)
	require.Equal(t, contract.PlannedRelease{Name: "reference", To: "1.0.0", Digest: "sha256:r"}, got.Release)
	var names []string
	for _, c := range got.Changes {
		names = append(names, c.Action+" "+c.Name)
	}
	require.Equal(t, []string{"replace a.b", "add Deployment gitea/gitea", "add Secret gitea/s", "add gitea@sha256:1"}, names)
	require.Equal(t, "Terraform would replace a.b", got.Changes[0].Destroys)
	require.Equal(t, []contract.Difference{{Path: "data.password", New: `"generated"`}}, got.Changes[2].Fields)
	require.Contains(t, got.Unknown[0].Why, "there is no cluster yet")
	require.Empty(t, got.Refused)

	again, err := p.make(t, "", "sha256:r", "")
	require.NoError(t, err)
	require.Equal(t, got.Digest, again.Digest)
	kept, err := state.Plan(t.Context(), p.state.store, got.Digest)
	require.NoError(t, err)
	require.Equal(t, again.Made, kept.Made, "the newer one of the same digest")
	approved, err := p.make(t, "", "sha256:r", got.Digest)
	require.NoError(t, err)
	require.Equal(t, got.Digest, approved.Digest)
}

// TestAnApprovedPlanThatIsStale is refused, and says what has changed.
func TestAnApprovedPlanThatIsStale(t *testing.T) {
	p := newPlanned(t)
	was, err := p.make(t, "", "sha256:r", "")
	require.NoError(t, err)
	for _, c := range []struct{ config, release, says string }{
		{"proxy: {http: 'http://p:1'}", "sha256:r", "since it was made: the configuration has changed"},
		{"", "sha256:other", "the content of the platform release has changed"},
	} {
		_, err := p.make(t, c.config, c.release, was.Digest)
		require.ErrorIs(t, err, &fault.Fault{Code: codeStale})
		require.Equal(t, fault.Preflight, fault.ClassOf(err))
		require.ErrorContains(t, err, c.says)
		require.ErrorContains(t, err, "nothing was changed")
	}
	p.serial++
	_, err = p.make(t, "", "sha256:r", was.Digest)
	require.ErrorIs(t, err, &fault.Fault{Code: codeStale})
	require.ErrorContains(t, err, "the Terraform state has moved on: it is l 4, not l 3")

	_, err = p.make(t, "", "sha256:r", "sha256:"+strings.Repeat("0", 64))
	require.ErrorIs(t, err, &fault.Fault{Code: codeNoPlan})
	require.Equal(t, fault.Usage, fault.ClassOf(err))
	p.path.Flags, p.adopt = "--to 2.0.0", true
	_, err = p.make(t, "", "sha256:r", "sha256:"+strings.Repeat("0", 64))
	var f *fault.Fault
	require.ErrorAs(t, err, &f)
	require.Equal(t, "make one, and approve its digest: slipway plan install --to 2.0.0 --take-ownership", f.Fix)
}

// TestAPlanComparesTheConfiguration with that of the last run that succeeded.
func TestAPlanComparesTheConfiguration(t *testing.T) {
	p := newPlanned(t)
	cfg, err := config.Load([]byte("apiVersion: slipway.sh/v1\nglobal: {name: demo, domain: old.example.org}\n"), config.Options{DefaultProvider: "local"})
	require.NoError(t, err)
	p.installed(t, contract.Installed{Version: "1.0.0", Config: cfg.Canonical()})
	got, err := p.make(t, "", "sha256:r", "")
	require.NoError(t, err)
	require.Equal(t, []contract.Difference{
		{Path: "global.admin.email", Old: `"admin@old.example.org"`, New: `"admin@slipway.test"`},
		{Path: "global.domain", Old: `"old.example.org"`, New: `"slipway.test"`},
	}, got.Configuration)
}

// TestFewPlansAreKept: a deployment that is planned again and again has the newest ones.
func TestFewPlansAreKept(t *testing.T) {
	p := newPlanned(t)
	var first string
	for n := range 25 {
		got, err := p.make(t, "", "sha256:r"+string(rune('a'+n)), "")
		require.NoError(t, err)
		if n == 0 {
			first = got.Digest
		}
	}
	files, err := filepath.Glob(filepath.Join(p.Dirs.State, "plans", "*.json"))
	require.NoError(t, err)
	require.Len(t, files, 20)
	_, err = state.Plan(t.Context(), p.state.store, first)
	require.ErrorIs(t, err, state.ErrNoPlan)
}

// TestAPlanOfAPath has which components come and go with its first upgrade, and names the releases
// that follow.
func TestAPlanOfAPath(t *testing.T) {
	p := newPlanned(t)
	cfg, err := config.Load([]byte("apiVersion: slipway.sh/v1\nglobal: {name: demo}\n"), config.Options{DefaultProvider: "local"})
	require.NoError(t, err)
	installs := func(version string) {
		t.Helper()
		files := os.DirFS("../../examples/platform/" + version)
		digest, err := platform.Digest(files)
		require.NoError(t, err)
		repo, err := backup.Open(t.Context(), p.state.backend, p.state.store)
		require.NoError(t, err)
		require.NoError(t, repo.KeepInstalled(t.Context(), 1, nil, contract.Installed{Platform: "reference", Version: version, Digest: digest, Config: cfg.Canonical()}, files))
		require.NoError(t, state.PutRuntime(t.Context(), p.state.store, 1, contract.RuntimeState{Platform: version}))
	}
	brings := func(version string) string {
		t.Helper()
		p.Dirs.Platform = t.TempDir()
		require.NoError(t, os.CopyFS(p.Dirs.Platform, os.DirFS("../../examples/platform/"+version)))
		digest, err := platform.Digest(os.DirFS(p.Dirs.Platform))
		require.NoError(t, err)
		return digest
	}
	installs("1.0.0")
	p.path = contract.PlannedPath{Later: []string{"2.0.0"}}
	was, err := p.make(t, "", brings("1.1.0"), "")
	require.NoError(t, err)
	require.Equal(t, contract.PlannedChange{Of: contract.PlanComponents, Action: contract.PlanAdd, Name: "welcome", Note: "app"}, was.Changes[0])
	require.Equal(t, []string{"2.0.0"}, was.Later)
	p.path.Later = nil
	_, err = p.make(t, "", was.Release.Digest, was.Digest)
	require.NoError(t, err, "what follows is not what the plan is of")
	_, err = p.make(t, "", brings("2.0.0"), was.Digest)
	require.ErrorContains(t, err, "the platform release is reference 2.0.0, not reference 1.1.0")
}

// TestAPlanWithoutTheInstalledRelease guesses no components.
func TestAPlanWithoutTheInstalledRelease(t *testing.T) {
	p := newPlanned(t)
	require.NoError(t, state.PutRuntime(t.Context(), p.state.store, 1, contract.RuntimeState{Platform: "0.9.0"}))
	got, err := p.make(t, "", "sha256:r", "")
	require.NoError(t, err)
	require.NotEqual(t, contract.PlanComponents, got.Changes[0].Of)
	require.Contains(t, got.Unknown, contract.PlannedUnknown{What: "components", Why: "the deployment's state has no copy of the release that is installed"})
}

// TestAStepWhoseOutputIsPresumed is previewed beside the others, of which it sees nothing, and
// what they were presumed is found out.
func TestAStepWhoseOutputIsPresumed(t *testing.T) {
	p := newPlanned(t)
	var finds contract.Ownership
	var fails error
	step.Register(p.Steps, contract.OwnershipStep(), step.Repeatable(func(context.Context, *step.Env, contract.OwnershipInput) (contract.Ownership, error) {
		return finds, fails
	}).Planned(func(_ context.Context, env *step.Env, _ contract.OwnershipInput) (contract.Ownership, error) {
		env.Plan.Note(contract.PlannedStyle("seen"))
		return finds, fails
	}))
	adopt := false
	look := func(s contract.Spec, known *contract.Infrastructure) (json.RawMessage, *plan.Plan, error) {
		t.Helper()
		made := &planner{Planner: p.Planner, req: contract.PlanRequest{Cluster: true, Inputs: contract.Inputs{RunOptions: contract.RunOptions{TakeOwnership: adopt}}}, seen: &plan.Plan{}, outputs: map[string]json.RawMessage{}, known: known}
		out, err := made.step(t.Context(), t.Context(), s, contract.Request{Run: "r1", Stage: s.Stage, Step: s.Name, Deployment: "demo", Input: json.RawMessage("{}")})
		require.NoError(t, err)
		return out, made.seen, made.beside.Wait()
	}
	terraform, ownership := contract.TerraformStep().Spec, contract.OwnershipStep().Spec
	same := &contract.Infrastructure{StorageClass: "c"}
	_, _, err := look(terraform, same)
	require.NoError(t, err)
	out, _, err := look(terraform, &contract.Infrastructure{StorageClass: "before"})
	require.ErrorIs(t, err, errOther)
	require.Contains(t, string(out), "before")

	finds.Objects = 7
	_, seen, err := look(ownership, same)
	require.NoError(t, err)
	require.Empty(t, seen.Notes())
	out, seen, err = look(ownership, nil)
	require.NoError(t, err)
	require.Contains(t, string(out), "7", "nothing is known, and nothing presumed")
	require.Empty(t, seen.Notes(), "a plan is the same either way")
	fails = errors.New("somebody else's")
	_, _, err = look(ownership, same)
	require.ErrorContains(t, err, "somebody else's")

	adopt, fails, finds.TakenOver = true, nil, []string{"Service shop/web"}
	out, seen, err = look(ownership, same)
	require.NoError(t, err)
	require.Contains(t, string(out), "Service shop/web", "what is taken over is not presumed")
	require.Len(t, seen.Notes(), 1)
}

// TestAPlanNamesAllThatAStepIsRefused, each with its own remedy and without secrets.
func TestAPlanNamesAllThatAStepIsRefused(t *testing.T) {
	p := newPlanned(t)
	fails := errors.Join(
		&fault.Fault{Code: "KUB-005", Class: fault.Step, Op: "apply Secret shop/a", Err: errors.New("its type is immutable"), Fix: "delete a"},
		fmt.Errorf("component db: %w", &fault.Fault{Code: "KUB-005", Class: fault.Step, Op: "apply Service shop/b", Err: errors.New("taken"), Fix: "undo b"}),
		errors.New("no answer"),
	)
	step.Register(p.Steps, contract.OwnershipStep(), step.Repeatable(func(context.Context, *step.Env, contract.OwnershipInput) (contract.Ownership, error) {
		return contract.Ownership{}, fails
	}))
	s := contract.OwnershipStep().Spec
	made := &planner{Planner: p.Planner, req: contract.PlanRequest{Cluster: true}, seen: &plan.Plan{}, outputs: map[string]json.RawMessage{}, out: &contract.Plan{}}
	_, err := made.step(t.Context(), t.Context(), s, contract.Request{Run: "r1", Stage: s.Stage, Step: s.Name, Deployment: "demo", Input: json.RawMessage("{}")})
	made.note([]pipeline.Result{{Key: s.Key, Status: pipeline.Failed, Err: err}})
	id := s.Key.String()
	require.Equal(t, []contract.PlannedUnknown{
		{What: id, Why: "apply Secret shop/a: its type is immutable", Code: "KUB-005", Exit: 4, Fix: "delete a"},
		{What: id, Why: "component db: apply Service shop/b: taken", Code: "KUB-005", Exit: 4, Fix: "undo b"},
		{What: id, Why: "run " + id + ": no answer", Code: "STP-001", Exit: 4, Fix: "look at the step's log, then run the same command again"},
	}, made.out.Refused)
	require.Empty(t, made.out.Unknown)
}

// TestAPlanNamesThePhases of its run; those of a removal are of the last run. They do not make
// it another plan.
func TestAPlanNamesThePhases(t *testing.T) {
	p := newPlanned(t)
	was, err := p.make(t, "", "sha256:r", "")
	require.NoError(t, err)
	require.Empty(t, was.Phases)
	file := filepath.Join(p.Dirs.Platform, platform.File)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, append(text, []byte("phases:\n  - {name: User Approval, approval: true}\n  - {name: Bootstrap, components: [gitea]}\n  - {name: Removal, steps: [infrastructure/node-remove]}\n")...), 0o600))
	now, err := p.make(t, "", "sha256:r", was.Digest)
	require.NoError(t, err)
	require.Equal(t, []string{"User Approval", "Bootstrap"}, now.Phases)
	require.Equal(t, was.Digest, now.Digest)
	var shown strings.Builder
	require.NoError(t, now.Text(&shown))
	require.Contains(t, shown.String(), "\nPhases: User Approval, Bootstrap\n")

	removal := []pipeline.Node{{Key: contract.NodeRemoveKey()}}
	names, err := p.state.phases(t.Context(), nil, removal)
	require.NoError(t, err)
	require.Empty(t, names, "there was no run yet")
	r, err := platform.Load(os.DirFS(p.Dirs.Platform))
	require.NoError(t, err)
	const last = "20260102-030405-a1b2c3"
	record, err := (&report.Run{ID: last, Workflow: config.Install, Outcome: report.Succeeded, Phases: stages.PhasesOf(r, nil)}).Encode()
	require.NoError(t, err)
	require.NoError(t, state.Keep(t.Context(), p.state.store, last, map[string][]byte{report.RecordFile: record}))
	require.NoError(t, state.PutLatest(t.Context(), p.state.store, 1, last))
	names, err = p.state.phases(t.Context(), nil, removal)
	require.NoError(t, err)
	require.Equal(t, []string{"User Approval", "Removal"}, names)
}

// TestAPlanOfADestroyNamesTheRelease: the state only has its version.
func TestAPlanOfADestroyNamesTheRelease(t *testing.T) {
	p := newPlanned(t)
	require.NoError(t, state.PutRuntime(t.Context(), p.state.store, 1, contract.RuntimeState{Platform: "1.0.0"}))
	of := func() contract.PlannedRelease {
		out := &contract.Plan{Workflow: config.Destroy}
		_, err := p.state.before(t.Context(), contract.Inputs{Config: config.Default()}, out)
		require.NoError(t, err)
		return out.Release
	}
	require.Equal(t, contract.PlannedRelease{From: "1.0.0"}, of())
	p.installed(t, contract.Installed{Version: "1.1.0"})
	require.Equal(t, contract.PlannedRelease{From: "1.0.0"}, of())
	p.installed(t, contract.Installed{Version: "1.0.0"})
	require.Equal(t, contract.PlannedRelease{Name: "reference", From: "1.0.0"}, of())
}
