package conductor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/contract"
)

func TestTheStatusOfWhatIsNotInstalled(t *testing.T) {
	c := &Records{name: "demo"}
	for what, s := range map[string]*contract.Stored{
		"nothing":    {},
		"no cluster": {Record: &report.Run{ID: "r1"}},
		"no run":     {Cluster: true},
	} {
		status, err := c.status(s)
		require.ErrorIs(t, err, &fault.Fault{Code: contract.CodeNotThere}, what)
		require.Equal(t, fault.Usage, fault.ClassOf(err))
		require.ErrorContains(t, err, "show the status: deployment demo is not installed")
		require.Equal(t, contract.NotStarted, status.State)
		var text strings.Builder
		require.NoError(t, status.Text(&text))
		require.Equal(t, "demo: NotStarted\n", text.String())
	}
	status, err := c.status(&contract.Stored{Record: &report.Run{ID: "r1", Workflow: "install"}, Cluster: true})
	require.NoError(t, err)
	require.Equal(t, "r1", status.Run)
	require.Equal(t, "install", status.Workflow)
}

func TestTheReleaseThatIsInstalled(t *testing.T) {
	c := &Records{name: "demo"}
	for says, s := range map[string]*contract.Stored{
		"deployment demo is not installed":                {Record: &report.Run{ID: "r1"}},
		"no install of deployment demo has succeeded yet": {Record: &report.Run{ID: "r1"}, Cluster: true},
	} {
		_, err := c.installed(s)
		require.ErrorIs(t, err, &fault.Fault{Code: contract.CodeNotThere})
		require.ErrorContains(t, err, says)
	}
	version, err := c.installed(&contract.Stored{Cluster: true, Platform: "1.0.0"})
	require.NoError(t, err)
	require.Equal(t, "1.0.0", version)
}

// TestTheStatesOfADeployment: those before there is a cluster, too.
func TestTheStatesOfADeployment(t *testing.T) {
	c := &Records{name: "demo"}
	wait := contract.Wait{Step: "orchestrator/web", For: "the gate http shop/web:80/", Since: time.Unix(0, 0).UTC(), Until: time.Unix(300, 0).UTC(), Seen: "answered 503,\nnot 200"}
	for _, x := range []struct {
		want     contract.Progress
		there    bool
		workflow string
		outcome  report.Outcome
		cluster  bool
		waits    []contract.Wait
	}{
		{"InProgress", true, "install", report.Running, false, nil},
		{"InProgress", true, "install", report.Running, true, nil},
		{"Waiting", true, "install", report.Running, true, []contract.Wait{wait}},
		{"Success", true, "install", report.Succeeded, true, nil},
		{"Failed", true, "install", report.Failed, true, nil},
		{"Interrupted", true, "install", report.Interrupted, true, nil},
		{"Failed", false, "install", report.Failed, false, nil},
		{"NotStarted", false, "destroy", report.Succeeded, false, nil},
		{"Failed", true, "destroy", report.Failed, true, nil},
		{"Failed", false, "destroy", report.Failed, false, nil},
		{"InProgress", true, "destroy", report.Running, false, nil},
	} {
		status, err := c.status(&contract.Stored{Record: &report.Run{ID: "r1", Workflow: x.workflow, Outcome: x.outcome}, Cluster: x.cluster, Waits: x.waits})
		require.Equal(t, x.there, err == nil, x)
		require.Equal(t, x.want, status.State, x)
		var text strings.Builder
		require.NoError(t, status.Text(&text))
		require.True(t, strings.HasPrefix(text.String(), "demo: "+string(x.want)+"\n"), text.String())
		if x.waits != nil {
			require.Contains(t, text.String(), "\norchestrator/web waits for the gate http shop/web:80/ since 00:00:00, until 00:05:00 UTC: answered 503, not 200\n")
		}
	}
}

// TestGatesThatDoNotHoldNow are in the row of their component.
func TestGatesThatDoNotHoldNow(t *testing.T) {
	status := &contract.DeploymentStatus{Deployment: "demo", State: "Success", Live: true, Steps: []report.Step{
		{Stage: "orchestrator", Step: "web", Status: "succeeded"}, {Stage: "orchestrator", Step: "db", Status: "reused"},
	}, Gates: []contract.Gate{
		{Step: "orchestrator/web", Gate: "endpoint of shop/web:80", Open: true}, {Step: "orchestrator/web", Gate: "http shop/web:80/", Seen: "answered 503, not 200"},
		{Step: "orchestrator/db", Gate: "endpoint of shop/db:5432", Open: true},
	}}
	var text strings.Builder
	require.NoError(t, status.Text(&text))
	require.Regexp(t, `(?m)^orchestrator/web +succeeded; now gate http shop/web:80/ is shut: answered 503, not 200 `, text.String())
	require.Regexp(t, `(?m)^orchestrator/db +reused +-$`, text.String())
	require.Empty(t, status.Steps[0].Note)

	status.Apps = []report.App{{Name: "base", Sync: "Synced", Health: "Healthy"}, {Name: "shop", Sync: "Synced", Health: "Degraded", Cause: "no image"}}
	err := unhealthy(status)
	require.ErrorIs(t, err, &fault.Fault{Code: "DEP-016"})
	require.Equal(t, fault.Step, fault.ClassOf(err))
	require.ErrorContains(t, err, "app shop is Synced and Degraded: no image\n")
	require.ErrorContains(t, err, "gate http shop/web:80/ of orchestrator/web is shut: answered 503, not 200")
	require.NotContains(t, err.Error(), "base")
	require.NotContains(t, err.Error(), "endpoint")
	status.Apps, status.Gates = status.Apps[:1], status.Gates[:1]
	require.NoError(t, unhealthy(status))
}

// A deployment that was removed is known, so that it can be removed again.
func TestWhatWasEverInstalledIsKnown(t *testing.T) {
	for state, known := range map[string]bool{
		`{"cluster":false}`: false, `{"cluster":true}`: true, `{"cluster":false,"id":"a"}`: true, `{"cluster":false,"record":{"version":1,"id":"r1","workflow":"destroy"}}`: true,
	} {
		c, _ := conducted(t, map[string]any{`"state","show"`: state})
		got, err := c.Known(t.Context())
		require.NoError(t, err)
		require.Equal(t, known, got, state)
	}
}

// TestADeploymentThatIsNotThereIsNotStarted: a name that was mistyped must make no node.
func TestADeploymentThatIsNotThereIsNotStarted(t *testing.T) {
	for what, ask := range map[string]func(*Conductor) error{
		"cluster":      func(c *Conductor) error { return c.Up(t.Context(), true, nil) },
		"cluster's id": func(c *Conductor) error { _, err := c.ClusterID(t.Context()); return err },
		"toolchain": func(c *Conductor) error {
			_, err := c.Shell(t.Context(), []string{"true"}, io.Discard, io.Discard)
			return err
		},
		"toolchain's id":  func(c *Conductor) error { _, err := c.ToolchainID(t.Context()); return err },
		"kubeconfig":      func(c *Conductor) error { _, err := c.Kubeconfig(t.Context(), ""); return err },
		"status":          func(c *Conductor) error { _, err := c.Status(t.Context(), true); return err },
		"toolchain only":  func(c *Conductor) error { c.service = nil; _, err := c.ToolchainID(t.Context()); return err },
		"after a destroy": func(c *Conductor) error { return c.Up(t.Context(), true, nil) },
	} {
		state := `{"cluster":false}`
		if what == "after a destroy" {
			state = `{"cluster":false,"record":{"version":1,"id":"r1"}}`
		}
		c, e := conducted(t, map[string]any{`"state","show"`: state})
		err := ask(c)
		require.ErrorIs(t, err, &fault.Fault{Code: contract.CodeNotThere}, what)
		require.Equal(t, fault.Usage, fault.ClassOf(err))
		require.NotContains(t, e.all(), "asService", what)
	}

	other, asked := conducted(t, map[string]any{`"state","show"`: `{"cluster":true,"lost":true}`})
	err := other.Up(t.Context(), true, nil)
	require.ErrorIs(t, err, &fault.Fault{Code: codeLost})
	require.ErrorContains(t, err, "run the cluster: the engine has removed the cluster of deployment slipway")
	require.NotContains(t, asked.all(), "asService", "a second one is not made")

	c, e := conducted(t, map[string]any{`"state","show"`: `{"cluster":true}`, `"await-pods"`: ""})
	_, err = c.ToolchainID(t.Context())
	require.NoError(t, err)
	require.Contains(t, e.all(), "asService", "one that is there runs")
}

func TestAClusterThatSlipwayDoesNotRun(t *testing.T) {
	c := &Cluster{provider: "elsewhere"}
	for _, ask := range []func() error{
		func() error { return c.Up(t.Context(), true, nil) },
		func() error { _, err := c.ClusterID(t.Context()); return err },
	} {
		err := ask()
		require.ErrorIs(t, err, &fault.Fault{Code: codeNoCluster})
		require.Equal(t, fault.Usage, fault.ClassOf(err))
	}
}

func TestARecordThatIsNotWritten(t *testing.T) {
	conductor, _ := conducted(t, nil)
	c := &run{Conductor: conductor}
	require.NoError(t, c.notWritten(nil))
	for class, err := range map[fault.Class]error{
		fault.Step:      errors.New("exit status 4: no space left on device"),
		fault.Timeout:   fmt.Errorf("exec: %w", errWriteTime),
		fault.Cancelled: context.Canceled,
	} {
		got := c.notWritten(err)
		require.ErrorIs(t, got, &fault.Fault{Code: codeNotWritten})
		require.Equal(t, class, fault.ClassOf(got))
		require.EqualError(t, got, "write the run's record: write to the state of deployment "+c.name+": "+err.Error())
	}
	require.ErrorContains(t, c.notWritten(errWriteTime), "did not end within 2m0s")
	lost := &fault.Fault{Code: "CTR-001", Class: fault.Step, Op: "run it", Err: errors.New("killed")}
	require.ErrorIs(t, c.notWritten(lost), lost)
	require.NotErrorIs(t, c.notWritten(lost), &fault.Fault{Code: codeNotWritten})
}

func TestStatusSaysThatTheClusterIsElsewhere(t *testing.T) {
	var out strings.Builder
	s := &contract.DeploymentStatus{Deployment: "blue", Run: "r1", Apps: []report.App{{Name: "web", Sync: "Synced", Health: "Healthy"}}}
	require.NoError(t, s.Text(&out))
	require.NotContains(t, out.String(), "on this engine")
	require.Contains(t, out.String(), "as the last run saw them; use --live to check them now.\n")
	s.Elsewhere = true
	require.NoError(t, s.Text(&out))
	require.Contains(t, out.String(), "The cluster is not on this engine: the applications are as the last run saw them.\n")
}

// TestStatusSaysWhichReleaseIsInstalled, where the last run was for another one: a downgrade
// that was refused has changed nothing.
func TestStatusSaysWhichReleaseIsInstalled(t *testing.T) {
	for installed, says := range map[string]string{
		"1.1.0": "the last run was for release 1.0.0; the last complete install is of release 1.1.0\n", "1.0.0": "", "": "",
	} {
		stored := &contract.Stored{Record: &report.Run{ID: "r1", Workflow: "install", Outcome: report.Failed, Platform: report.Platform{Version: "1.0.0"}}, Cluster: true, Platform: installed}
		s, err := (&Records{}).status(stored)
		require.NoError(t, err)
		require.Equal(t, installed, s.Installed)
		var w strings.Builder
		require.NoError(t, s.Text(&w))
		if says == "" {
			require.NotContains(t, w.String(), "the last run was for")
			continue
		}
		require.Contains(t, w.String(), ": Failed\n"+says)
	}
}

// TestStatusIsAnsweredFromTheRecord: without --live no cluster is started for it.
func TestStatusIsAnsweredFromTheRecord(t *testing.T) {
	c, e := conducted(t, map[string]any{`"state","show"`: `{"cluster":true,"record":{"version":1,"id":"r1","apps":[{"name":"web","sync":"Synced","health":"Healthy"}]}}`})
	s, err := c.Status(t.Context(), false)
	require.NoError(t, err)
	require.False(t, s.Live)
	require.Len(t, s.Apps, 1)
	require.Equal(t, "web", s.Apps[0].Name)
	require.NotContains(t, e.all(), "asService")
}

// TestARecordIsWrittenWithCommandsForItsDeployment: what a report tells people to
// type works on the deployment that it is about.
func TestARecordIsWrittenWithCommandsForItsDeployment(t *testing.T) {
	c, e := conducted(t, nil)
	c.opts.Flags = "--name dev"
	r := &run{Conductor: c}
	record := &report.Run{ID: "r1", Commands: []string{"slipway cluster"}}
	require.NoError(t, r.finish(t.Context(), record, nil, nil, nil))
	require.Len(t, record.Commands, 2)
	require.Contains(t, record.Commands[1], "--name dev")
	require.Contains(t, e.all(), record.Commands[1], "the summary says the same")
}
