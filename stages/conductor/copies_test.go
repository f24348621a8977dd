package conductor

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/contract"
)

// shelf keeps one copy, as it is told.
type shelf struct {
	kept    *Kept
	bad     error
	took    int
	fails   error
	left    []string
	removed bool
}

func (s *shelf) Newest() (*Kept, error) { return s.kept, s.bad }

func (s *shelf) Remove() ([]string, error) {
	s.removed = true
	return s.left, s.fails
}

func (s *shelf) Keep(write func(dir, have string) error) error {
	s.took++
	dir, err := os.MkdirTemp("", "slipway-copy-")
	if err != nil {
		return err
	}
	return errors.Join(write(dir, "x"), s.fails, os.RemoveAll(dir))
}

// lastInstall is a copy with the record of an install.
func lastInstall(t *testing.T, engine string) *Kept {
	t.Helper()
	dir := t.TempDir()
	c := contract.Copy{Identity: contract.Identity{ID: "d1", Name: "slipway"}, Files: map[string]contract.CopiedFile{contract.CopyStateFile: {Name: "state-1.tar.zst"}}}
	c.Stored = contract.Stored{
		ID: "d1", Cluster: true, Here: true, Platform: "1.0.0",
		Record: &report.Run{Version: 1, ID: "r1", Workflow: "install", Outcome: report.Running, Started: time.Unix(0, 0)},
	}
	text, err := json.Marshal(c)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, contract.CopyFile), text, 0o600))
	return &Kept{Copy: &c, Dir: dir, Engine: engine}
}

// TestADeploymentThatWasThrownAwayIsNamed, and one that never was, or is elsewhere, is not.
func TestADeploymentThatWasThrownAwayIsNamed(t *testing.T) {
	asked := map[string]func(*Conductor) error{
		"cluster":    func(c *Conductor) error { return c.Up(t.Context(), true, nil) },
		"kubeconfig": func(c *Conductor) error { _, err := c.Kubeconfig(t.Context(), ""); return err },
		"status":     func(c *Conductor) error { _, err := c.Status(t.Context(), true); return err },
		"installed":  func(c *Conductor) error { _, err := c.Installed(t.Context()); return err },
	}
	for name, x := range map[string]struct {
		stored string
		kept   *Kept
		code   fault.Code
		says   string
	}{
		"state and cluster": {`{}`, lastInstall(t, ""), codeLost, "the engine has thrown away the cluster of deployment slipway with all data in it, and its state; its last run was install r1 of 1970-01-01T00:00:00Z"},
		"the cluster":       {`{"id":"d1","cluster":true,"here":true,"lost":true,"record":{"version":1,"id":"r1","workflow":"install"}}`, nil, codeLost, "the engine has thrown away the cluster of deployment slipway with all data in it; its last run"},
		"never installed":   {`{}`, nil, CodeNotThere, "deployment slipway is not installed"},
		"removed":           {`{"record":{"version":1,"id":"r2","workflow":"destroy","outcome":"succeeded"}}`, lastInstall(t, ""), CodeNotThere, "deployment slipway is not installed"},
		"on another engine": {`{}`, lastInstall(t, "unix:///b"), CodeNotThere, "deployment slipway is not installed on this engine; it is on unix:///b"},
	} {
		for what, ask := range asked {
			c, e := conducted(t, map[string]any{`"state","show"`: x.stored})
			c.Records.copies = &shelf{kept: x.kept}
			err := ask(c)
			require.ErrorIs(t, err, &fault.Fault{Code: x.code}, "%s: %s", name, what)
			require.Equal(t, fault.Usage, fault.ClassOf(err))
			require.ErrorContains(t, err, x.says, name)
			require.NotContains(t, e.all(), "asService", name)
			require.False(t, c.Records.copies.(*shelf).removed, "who only looks removes nothing")
			require.Contains(t, e.all(), "SLIPWAY_NODE_DIR")
		}
	}
}

// TestWhatIsListedOfADeploymentThatWasThrownAway: where nothing is, it is told why.
func TestWhatIsListedOfADeploymentThatWasThrownAway(t *testing.T) {
	asked := map[string]func(*Conductor) error{
		"runs":    func(c *Conductor) error { _, err := c.Runs(t.Context()); return err },
		"a run":   func(c *Conductor) error { _, err := c.Run(t.Context(), "r7"); return err },
		"report":  func(c *Conductor) error { _, err := c.Report(t.Context(), "", t.TempDir()); return err },
		"backups": func(c *Conductor) error { _, err := c.Backups(t.Context()); return err },
	}
	const none = `slipway-fault: {"code":"DEP-001","class":2,"op":"read the run","message":"there is no run r7"}`
	for what, ask := range asked {
		for want, kept := range map[fault.Code]*Kept{codeLost: lastInstall(t, ""), CodeNotThere: nil} {
			c, e := conducted(t, map[string]any{`"state","show"`: `{}`, `"state","runs","/slipway/runs.json"]`: `[]`, `"state","runs","/slipway/runs.json","r7"`: none, `"state","report"`: none, `"state","backups"`: `[]`})
			e.exit, e.fails = 2, `"r7"`
			if what == "report" {
				e.fails = `"report"`
			}
			c.Records.copies = &shelf{kept: kept}
			err := ask(c)
			if kept == nil && what == "runs" {
				require.NoError(t, err, "there is nothing")
				continue
			}
			require.ErrorIs(t, err, &fault.Fault{Code: want}, what)
		}
	}
	c, _ := conducted(t, map[string]any{`"state","show"`: `{"id":"d1","cluster":true,"lost":true,"record":{"version":1,"id":"r1","workflow":"install"}}`, `"state","backups"`: `[]`})
	_, err := c.Backups(t.Context())
	require.NoError(t, err, "the state is there, and has none")
}

func TestTheStatusOfADeploymentThatWasThrownAway(t *testing.T) {
	c, _ := conducted(t, map[string]any{`"state","show"`: `{}`})
	c.Records.copies = &shelf{kept: lastInstall(t, "")}
	s, err := c.Status(t.Context(), false)
	f, _ := errors.AsType[*fault.Fault](err)
	require.Contains(t, f.Fix, "install it again, with the same secrets and without its data: slipway install; or forget it: slipway destroy; ")
	require.Equal(t, contract.Lost, s.State)
	require.Equal(t, "1.0.0", s.Installed)
	require.Equal(t, report.Interrupted, s.Outcome, "it ran when it was copied")
	var text strings.Builder
	require.NoError(t, s.Text(&text))
	require.Contains(t, text.String(), "slipway: Lost\n")
	require.Contains(t, text.String(), "run r1")
	require.Contains(t, text.String(), "The cluster is gone")
	known, err := c.Known(t.Context())
	require.NoError(t, err)
	require.True(t, known, "a destroy may forget it")

	c, _ = conducted(t, map[string]any{`"state","show"`: `{"cluster":true,"here":true,"lost":true,"record":{"version":1,"id":"r2","workflow":"install","outcome":"running"}}`})
	s, err = c.Status(t.Context(), false)
	require.NoError(t, err, "it is installed again")
	require.Equal(t, contract.InProgress, s.State)

	c, _ = conducted(t, map[string]any{`"state","show"`: `{}`})
	kept := lastInstall(t, "")
	kept.Stored.Cluster, kept.Stored.Here, kept.Stored.Record.Workflow, kept.Stored.Record.Outcome = false, false, "destroy", report.Failed
	c.Records.copies = &shelf{kept: kept}
	s, err = c.Status(t.Context(), false)
	require.ErrorIs(t, err, &fault.Fault{Code: codeLost}, "there was no cluster any more")
	require.ErrorContains(t, err, "the engine has thrown away the state of deployment slipway; its last run was destroy r1")
	require.Equal(t, contract.Lost, s.State)
	known, err = c.Known(t.Context())
	require.NoError(t, err)
	require.True(t, known, "a destroy may forget it")

	c, _ = conducted(t, map[string]any{`"state","show"`: `{}`})
	c.Records.copies = &shelf{bad: BadCopy("/d", errors.New("torn"))}
	_, err = c.Status(t.Context(), false)
	require.ErrorIs(t, err, &fault.Fault{Code: contract.CodeCopy})
}

// TestInABucketTheClusterIsLost where the state says so, and no copy.
func TestInABucketTheClusterIsLost(t *testing.T) {
	for want, lost := range map[fault.Code]string{codeLost: "true", contract.CodeElsewhere: "false"} {
		c, _ := conducted(t, map[string]any{`"state","show"`: `{"id":"d1","cluster":true,"here":false,"lost":` + lost + `,"record":{"version":1,"id":"r1","workflow":"install"}}`})
		c.opts.State.URL, c.Records.inBucket, c.Records.copies = "s3://bucket", true, &shelf{kept: lastInstall(t, "")}
		require.ErrorIs(t, c.Cluster.installed(t.Context(), "run the cluster"), &fault.Fault{Code: want})
	}
}

// conductWith conducts a workflow of the steps that generate something, which has copies.
func conductWith(t *testing.T, s *shelf, workflow string, answers map[string]any) (*report.Run, *engine, []string, error) {
	t.Helper()
	all := map[string]any{
		`"step","preorchestrator/secrets"`: `{"status":"succeeded","output":{}}`, `"step","preorchestrator/tls"`: `{"status":"reused","output":{}}`,
		`"slipway","state","keep"`: "{}", `"slipway","state","copy"`: "{}", `"state","show"`: "{}",
	}
	for k, v := range answers {
		all[k] = v
	}
	c, e := conducted(t, all)
	var warned []string
	c.opts.Ephemeral, c.opts.Warn = true, func(text string) { warned = append(warned, text) }
	c.opts.Copies, c.Records.copies = s, s
	c.opts.ReleaseDir = c.opts.Client.Directory()
	record, err := c.Conduct(t.Context(), Workflow{Name: workflow, Removes: workflow == config.Destroy, Wire: func(g *Graph) error {
		Add(g, contract.SecretsStep(), func() contract.SecretsInput { return contract.SecretsInput{} })
		Add(g, contract.TLSStep(), func() contract.TLSInput { return contract.TLSInput{} })
		return nil
	}})
	return record, e, warned, err
}

// TestTheStateIsCopied at the beginning of a run, once there are secrets, and at its end, while
// the run has the lock.
func TestTheStateIsCopied(t *testing.T) {
	s := &shelf{}
	record, e, warned, err := conductWith(t, s, config.Install, nil)
	require.NoError(t, err)
	require.Empty(t, warned)
	require.Equal(t, 3, s.took)
	require.Contains(t, e.all(), `"slipway","state","copy","/slipway/out/copy","x","--run","`+record.ID+`"`)
	require.Greater(t, strings.LastIndex(e.all(), `"slipway","state","copy"`), strings.LastIndex(e.all(), `"slipway","state","keep"`))
	require.NotContains(t, e.all(), `"--no-identity"`)

	s = &shelf{fails: errors.New("no space")}
	_, _, warned, err = conductWith(t, s, config.Install, nil)
	require.NoError(t, err, "that fails no run")
	require.Equal(t, []string{"the copy of the deployment's state could not be taken: no space"}, warned)

	s = &shelf{}
	_, _, _, err = conductWith(t, s, config.Destroy, nil)
	require.NoError(t, err)
	require.True(t, s.removed)
	require.LessOrEqual(t, s.took, 2, "there is nothing left at the end")
	s = &shelf{left: []string{"/d/mine"}}
	_, _, warned, err = conductWith(t, s, config.Destroy, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"left among the copies of deployment slipway, as it is not known whose it is: /d/mine"}, warned)
	s = &shelf{}
	_, _, _, err = conductWith(t, s, config.Install, map[string]any{`"slipway","state","open"`: `{"identity":{"id":"d2"},"last":"r1","removed":true}`})
	require.NoError(t, err)
	require.True(t, s.removed, "what somebody else has destroyed is forgotten")
	s = &shelf{}
	_, _, _, err = conductWith(t, s, config.Destroy, map[string]any{`"step","preorchestrator/tls"`: `{"status":"failed","fault":{"code":"INF-001","class":4,"message":"no"}}`})
	require.Error(t, err)
	require.False(t, s.removed)
}

// TestBackupsAreCopiedAfterTheState, once the run has given up the lock, and it is said that
// they are.
func TestBackupsAreCopiedAfterTheState(t *testing.T) {
	for what, fails := range map[string]string{"they come": "", "they do not": "no space left on device"} {
		c, e := conducted(t, map[string]any{`"slipway","state","keep"`: "{}", `{size}`: 3 << 20, `"slipway","state","copy"`: "{}", `"step","infrastructure/preflight"`: `{"status":"succeeded","output":{}}`})
		var stateOnly, all int
		var asked string // before the backups
		e.exports = func(dir string) {
			if !strings.Contains(dir, "slipway-copy-") {
				return
			}
			if err := os.WriteFile(filepath.Join(dir, contract.CopyFile), []byte(`{"files":{"state.tar.zst":{},"backups.tar.zst":{}},"backups":"x"}`), 0o600); err != nil {
				t.Error(err)
			}
			if e.last(`withoutFile(path:"backups.tar.zst")`) {
				stateOnly++
				return
			}
			all++
			asked = strings.Join(e.asked, "\n")
		}
		if fails != "" {
			e.problems = map[string]string{"{size}": fails}
		}
		s := &shelf{}
		var said, warned []string
		c.opts.Ephemeral, c.opts.Say, c.opts.Warn = true, func(text string) { said = append(said, text) }, func(text string) { warned = append(warned, text) }
		c.opts.Copies, c.Records.copies = s, s
		_, err := c.Conduct(t.Context(), Workflow{Name: config.Install, Wire: func(g *Graph) error {
			Add(g, contract.PreflightStep(), func() contract.PreflightInput { return contract.PreflightInput{} })
			return nil
		}})
		require.NoError(t, err, what)
		require.Equal(t, 2, stateOnly, what)
		if fails == "" {
			require.Equal(t, 1, all, what)
			require.Regexp(t, `asService.*\{stop`, asked, "the lock is given up")
			require.Equal(t, []string{"copying the backups of the platform's data to this machine: 3.0 MiB, for 10m0s at most"}, said)
			require.Empty(t, warned)
			continue
		}
		require.Zero(t, all, what)
		require.Len(t, warned, 1)
		require.Contains(t, warned[0], "the copy of the deployment's state is without its newest backups: ")
		require.Contains(t, warned[0], fails)
	}
}

// TestALostStateIsRestored before anything else is done, and the record says so.
func TestALostStateIsRestored(t *testing.T) {
	restored := map[string]any{`"slipway","state","open"`: `{}`, `"slipway","state","restore"`: `{"identity":{"id":"d1"},"lost":true,"last":"r1"}`}
	s := &shelf{kept: lastInstall(t, "")}
	record, e, _, err := conductWith(t, s, config.Install, restored)
	require.NoError(t, err)
	require.Contains(t, e.all(), `"--no-identity"`)
	require.Contains(t, e.all(), `include:["copy.json","state-1.tar.zst"]`)
	require.Contains(t, e.all(), s.kept.Dir)
	require.Less(t, strings.Index(e.all(), `"slipway","state","restore"`), strings.Index(e.all(), `"step","preorchestrator/secrets"`))
	require.Len(t, record.Warnings, 1)
	require.Equal(t, "the engine has thrown away the cluster of deployment slipway with all data in it, and its state; its last run was r1; the state was restored from a copy; the cluster is made anew, with the same secrets and without its data", record.Warnings[0].Summary)
	require.Contains(t, record.Warnings[0].Fix, "slipway explain ENG-011")

	record, _, _, err = conductWith(t, s, config.Upgrade, restored)
	require.Nil(t, record)
	require.ErrorIs(t, err, &fault.Fault{Code: codeLost})
	record, _, _, err = conductWith(t, s, config.Destroy, restored)
	require.NoError(t, err)
	require.Empty(t, record.Warnings)

	_, e, _, err = conductWith(t, &shelf{kept: lastInstall(t, "unix:///b")}, config.Install, nil)
	require.NoError(t, err)
	require.NotContains(t, e.all(), `"--no-identity"`, "that is a deployment of another engine")
	_, _, _, err = conductWith(t, &shelf{bad: BadCopy("/d", errors.New("torn"))}, config.Install, nil)
	require.NoError(t, err, "the copy is not needed")
	_, _, _, err = conductWith(t, &shelf{bad: BadCopy("/d", errors.New("torn"))}, config.Install, map[string]any{`"slipway","state","open"`: `{}`})
	require.ErrorIs(t, err, &fault.Fault{Code: contract.CodeCopy})
	f, _ := errors.AsType[*fault.Fault](err)
	require.Contains(t, f.Fix, "move it away")
}

// TestOnlyTheClusterIsLost: the state needs no copy.
func TestOnlyTheClusterIsLost(t *testing.T) {
	record, e, _, err := conductWith(t, &shelf{}, config.Install, map[string]any{`"slipway","state","open"`: `{"identity":{"id":"d1"},"lost":true,"last":"r1"}`})
	require.NoError(t, err)
	require.NotContains(t, e.all(), `"restore"`)
	require.Equal(t, "the engine has thrown away the cluster of deployment slipway with all data in it; its last run was r1; the cluster is made anew, with the same secrets and without its data", record.Warnings[0].Summary)
}

// TestACopyThatCannotBeRestoredStopsTheRun, and the lock is given up.
func TestACopyThatCannotBeRestoredStopsTheRun(t *testing.T) {
	c, e := conducted(t, map[string]any{`"slipway","state","open"`: `{}`, `"slipway","state","restore"`: `slipway-fault: {"code":"DEP-011","class":3,"op":"restore it","message":"its digest is another"}`})
	e.exit, e.fails = 3, `"slipway","state","restore"`
	s := &shelf{kept: lastInstall(t, "")}
	c.opts.Ephemeral, c.opts.Copies, c.Records.copies = true, s, s
	record, err := c.Conduct(t.Context(), Workflow{Name: config.Install, Wire: func(g *Graph) error {
		Add(g, contract.RequiresStep(), func() contract.Nothing { return contract.Nothing{} })
		return nil
	}})
	require.Nil(t, record)
	require.ErrorIs(t, err, &fault.Fault{Code: contract.CodeCopy})
	require.Equal(t, fault.Preflight, fault.ClassOf(err))
	require.ErrorContains(t, err, s.kept.Dir+": its digest is another")
	require.NotContains(t, e.all(), `"step"`)
	require.Regexp(t, `asService.*\{stop`, e.all())
	require.Zero(t, s.took)
}

// TestARestoreThatFailsIsNotTheCopysFault: as on an engine whose disk is full.
func TestARestoreThatFailsIsNotTheCopysFault(t *testing.T) {
	c, e := conducted(t, map[string]any{`"slipway","state","open"`: `{}`, `"slipway","state","restore"`: "error: no space left on device"})
	e.exit, e.fails = 1, `"slipway","state","restore"`
	s := &shelf{kept: lastInstall(t, "")}
	c.opts.Ephemeral, c.opts.Copies, c.Records.copies = true, s, s
	_, err := c.Conduct(t.Context(), Workflow{Name: config.Install, Wire: func(g *Graph) error {
		Add(g, contract.RequiresStep(), func() contract.Nothing { return contract.Nothing{} })
		return nil
	}})
	require.ErrorContains(t, err, "open the deployment's state: ")
	require.ErrorContains(t, err, "no space left on device")
	require.NotErrorIs(t, err, &fault.Fault{Code: contract.CodeCopy})
}

func TestACopyIsTakenOnceForTheSecrets(t *testing.T) {
	c, _ := conducted(t, map[string]any{`"slipway","state","copy"`: "{}"})
	key := func(s contract.Spec) pipeline.Key { return s.Key }
	nodes := []pipeline.Node{{Key: key(contract.SecretsStep().Spec)}, {Key: key(contract.TLSStep().Spec)}, {Key: key(contract.SyncStep().Spec)}}
	for want, statuses := range map[int][]pipeline.Status{0: {pipeline.Reused, pipeline.Reused, pipeline.Succeeded}, 1: {pipeline.Reused, pipeline.Succeeded, pipeline.Succeeded}} {
		s := &shelf{}
		c.Records.copies = s
		take := &copier{records: c.Records, run: "r1"}
		observe := take.after(context.WithoutCancel(t.Context()), nodes, nil)
		for i, n := range nodes {
			observe(pipeline.Event{Status: pipeline.Running, Result: pipeline.Result{Key: n.Key}})
			observe(pipeline.Event{Status: statuses[i], Result: pipeline.Result{Key: n.Key}})
		}
		take.begun.Wait()
		require.Equal(t, want, s.took)
	}
}
