package conductor

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/contract"
)

// installing is a workflow of one step.
func installing(name string) Workflow {
	return Workflow{Name: name, Removes: name == config.Destroy, Tries: name == config.Test, Wire: func(g *Graph) error {
		Add(g, contract.RequiresStep(), func() contract.Nothing { return contract.Nothing{} })
		return nil
	}}
}

// TestADeploymentOfOthersIsLeftAlone: the container that takes the lock is told who works, and
// whatever it refuses, nothing is changed.
func TestADeploymentOfOthersIsLeftAlone(t *testing.T) {
	for _, code := range []fault.Code{contract.CodeTheirs, contract.CodeElsewhere} {
		for _, workflow := range []string{config.Install, config.Upgrade, config.Rollback, config.Test, config.Destroy} {
			c, e := conducted(t, map[string]any{`"state","show"`: `{}`})
			c.opts.Ephemeral, c.opts.Caller = true, contract.Caller{Owner: "bob@desk"}
			c, err := New(c.opts)
			require.NoError(t, err)
			e.problems = map[string]string{`"state","hold"`: `slipway-fault: {"code":"` + string(code) + `","class":2,"op":"recognise the deployment","message":"it is alice's"}`}
			record, err := c.Conduct(t.Context(), installing(workflow))
			require.Nil(t, record)
			require.ErrorIs(t, err, &fault.Fault{Code: code})
			require.ErrorContains(t, err, "it is alice's")
			require.Equal(t, fault.Usage, fault.ClassOf(err))
			asked := e.all()
			require.Contains(t, asked, `value:`+strconv.Quote(`{"deployment":"slipway","owner":"bob@desk","node":true}`))
			for _, not := range []string{`"state","open"`, `"purge"`, `"wipe"`, `"slipway","step"`, `"keep"`} {
				require.NotContains(t, asked, not, workflow)
			}
		}
	}
}

// TestADeploymentIsMadeThisEngines: the report says what is left on the other one.
func TestADeploymentIsMadeThisEngines(t *testing.T) {
	c, e := conducted(t, map[string]any{
		`"slipway","state","open"`: `{"from":{"id":"e1","by":"alice@laptop","run":"r1"}}`, `"slipway","state","keep"`: "{}",
		`"step","preorchestrator/requires"`: `{"status":"succeeded","output":{}}`,
	})
	c.opts.Ephemeral, c.opts.User, c.opts.Host, c.opts.Caller.Owner = true, "bob", "desk", "bob@desk"
	c.opts.ReleaseDir = c.opts.Client.Directory()
	record, err := c.Conduct(t.Context(), installing(config.Install))
	require.NoError(t, err)
	require.Len(t, record.Warnings, 1)
	require.Equal(t, "deployment slipway is this engine's from now on; the cluster that run r1 of alice@laptop made on another engine is left there", record.Warnings[0].Summary)
	require.Equal(t, "bob@desk", record.Owner)
	require.Contains(t, e.all(), `"--user","bob","--host","desk","--run","`+record.ID+`"`)
}

// TestTestsMakeADeploymentOnesOwn only where that is wanted: they open no state otherwise.
func TestTestsMakeADeploymentOnesOwn(t *testing.T) {
	for _, join := range []bool{false, true} {
		c, e := conducted(t, map[string]any{`"slipway","state","keep"`: "{}", `"step","preorchestrator/requires"`: `{"status":"succeeded","output":{}}`})
		c.opts.Caller.Join, c.opts.ReleaseDir = join, c.opts.Client.Directory()
		_, err := c.Conduct(t.Context(), installing(config.Test))
		require.NoError(t, err)
		require.Equal(t, join, strings.Contains(e.all(), `"state","open"`))
	}
}

// TestAPlanOfAnotherEngine is refused, unless the run is to make the cluster here.
func TestAPlanOfAnotherEngine(t *testing.T) {
	c, _ := conducted(t, map[string]any{`"state","show"`: `{"cluster":true,"here":false,"claim":{"engine":{"run":"r1","by":"alice@laptop","since":"2026-01-02T03:04:05Z"}}}`})
	_, err := c.running(t.Context(), Workflow{Name: config.Install})
	require.ErrorIs(t, err, &fault.Fault{Code: contract.CodeElsewhere})
	require.ErrorContains(t, err, "plan: the cluster of deployment slipway is on another engine, that of run r1 of alice@laptop (2026-01-02T03:04:05Z); nothing was changed")
	c.opts.Caller.Here = true
	there, err := c.running(t.Context(), Workflow{Name: config.Install})
	require.NoError(t, err)
	require.False(t, there)
}

// TestStatusSaysWhoseTheDeploymentIs, of everybody's.
func TestStatusSaysWhoseTheDeploymentIs(t *testing.T) {
	c, _ := conducted(t, map[string]any{`"state","show"`: `{"cluster":true,"record":{"version":1,"id":"r1","workflow":"install","outcome":"succeeded"},"claim":{
		"owners":[{"name":"alice@laptop","since":"2026-01-02T03:04:05Z"},{"name":"bob\u001b@desk","since":"2026-01-03T03:04:05Z"}],"engine":{"run":"r1","by":"alice@laptop"}}}`})
	s, err := c.Status(t.Context(), true)
	require.NoError(t, err)
	require.True(t, s.Elsewhere)
	require.Equal(t, "alice@laptop", s.Owners[0].Name)
	require.Equal(t, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), s.Owners[0].Since)
	var text strings.Builder
	require.NoError(t, s.Text(&text))
	require.Contains(t, text.String(), "slipway: Success\nit is of alice@laptop, since 2026-01-02T03:04:05Z\nit was joined by bob")
	require.NotContains(t, text.String(), "\x1b")
	require.Contains(t, text.String(), "The cluster runs on another engine, that of run r1 of alice@laptop: the applications are as the last run saw them.\n")
}

// TestOnlyGatesOfTheReleaseAtHandAreLookedAt, and only if it is the last run's: the state chooses
// neither a gate nor an object.
func TestOnlyGatesOfTheReleaseAtHandAreLookedAt(t *testing.T) {
	record := &report.Run{
		Platform: report.Platform{Name: "shop\x1b", Version: "1.0.0", Digest: "sha256:1"},
		Steps:    []report.Step{{Stage: "orchestrator", Step: "web"}, {Stage: "orchestrator", Step: "planted"}, {Stage: "postorchestrator", Step: "web"}},
	}
	c, _ := conducted(t, nil)
	var said []string
	c.opts.Warn = func(text string) { said = append(said, text) }
	c.opts.ReleaseDigest, c.opts.Release = "sha256:1", &platform.Release{Components: []platform.Component{
		{Name: "web", Ready: []platform.Await{{Job: "shop/seed"}}}, {Name: "later", Ready: []platform.Await{{Job: "shop/later"}}},
	}}
	in, err := c.live(record)
	require.NoError(t, err)
	require.Len(t, in.Components, 1)
	require.Equal(t, "orchestrator/web", in.Components[0].Step)
	require.Contains(t, string(in.Components[0].Ready), "shop/seed")
	require.Empty(t, said)

	c.opts.ReleaseDigest = "sha256:2"
	in, err = c.live(record)
	require.NoError(t, err)
	require.Empty(t, in.Components)
	require.Len(t, said, 1)
	require.Contains(t, said[0], "platform release shop 1.0.0, sha256:1, which is not the one at hand")
	c.opts.Release = nil
	in, err = c.live(record)
	require.NoError(t, err)
	require.Empty(t, in.Components)
}
