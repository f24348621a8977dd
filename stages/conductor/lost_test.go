package conductor

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
)

// TestADeploymentWithoutItsClusterIsNamed, and one that was never installed is not.
func TestADeploymentWithoutItsClusterIsNamed(t *testing.T) {
	asked := map[string]func(*Conductor) error{
		"cluster":    func(c *Conductor) error { return c.Up(t.Context(), true, nil) },
		"kubeconfig": func(c *Conductor) error { _, err := c.Kubeconfig(t.Context(), ""); return err },
		"status":     func(c *Conductor) error { _, err := c.Status(t.Context(), true); return err },
		"installed":  func(c *Conductor) error { _, err := c.Installed(t.Context()); return err },
	}
	for name, x := range map[string]struct {
		stored string
		code   fault.Code
		says   string
	}{
		"the cluster":     {`{"id":"d1","cluster":true,"lost":true,"record":{"version":1,"id":"r1","workflow":"install"}}`, codeLost, "the engine has removed the cluster of deployment slipway with all data in it; its last run"},
		"never installed": {`{}`, contract.CodeNotThere, "deployment slipway is not installed"},
		"removed":         {`{"record":{"version":1,"id":"r2","workflow":"destroy","outcome":"succeeded"}}`, contract.CodeNotThere, "deployment slipway is not installed"},
	} {
		for what, ask := range asked {
			c, e := conducted(t, map[string]any{`"state","show"`: x.stored})
			err := ask(c)
			require.ErrorIs(t, err, &fault.Fault{Code: x.code}, "%s: %s", name, what)
			require.Equal(t, fault.Usage, fault.ClassOf(err))
			require.ErrorContains(t, err, x.says, name)
			require.NotContains(t, e.all(), "asService", name)
			require.Contains(t, e.all(), "SLIPWAY_NODE_DIR")
		}
	}
}

func TestTheStatusOfADeploymentWithoutItsCluster(t *testing.T) {
	c, _ := conducted(t, map[string]any{`"state","show"`: `{"cluster":true,"lost":true,"platform":"1.0.0","record":{"version":1,"id":"r1","workflow":"install","outcome":"succeeded"}}`})
	s, err := c.Status(t.Context(), false)
	require.ErrorIs(t, err, &fault.Fault{Code: codeLost})
	require.Equal(t, contract.Lost, s.State)
	require.Equal(t, "1.0.0", s.Installed)
	var text strings.Builder
	require.NoError(t, s.Text(&text))
	require.Contains(t, text.String(), "slipway: Lost\n")
	require.Contains(t, text.String(), "run r1")
	require.Contains(t, text.String(), "The cluster is gone")
	known, err := c.Known(t.Context())
	require.NoError(t, err)
	require.True(t, known, "a destroy may forget it")

	c, _ = conducted(t, map[string]any{`"state","show"`: `{"cluster":true,"lost":true,"record":{"version":1,"id":"r2","workflow":"install","outcome":"running"}}`})
	s, err = c.Status(t.Context(), false)
	require.NoError(t, err, "it is installed again")
	require.Equal(t, contract.InProgress, s.State)
}

// installing is a workflow of one step.
func installing(name string) stages.Workflow {
	return stages.Workflow{Name: name, Removes: name == config.Destroy, Wire: func(g *stages.Graph) error {
		stages.Add(g, contract.RequiresStep(), func() contract.Nothing { return contract.Nothing{} })
		return nil
	}}
}

// TestALostClusterIsMadeAnew by an install, which says so, forgotten by a destroy, and missed by
// everything else.
func TestALostClusterIsMadeAnew(t *testing.T) {
	for url, lost := range map[string]string{
		"":            "the engine has removed the cluster of deployment slipway with all data in it",
		"s3://bucket": "the cluster of deployment slipway is not on this engine: another engine has it, or this one has removed its volume",
	} {
		conduct := func(workflow string) (*report.Run, error) {
			c, _ := conducted(t, map[string]any{
				`"slipway","state","open"`: `{"lost":true}`, `"slipway","state","keep"`: "{}", `"state","show"`: `{"cluster":true}`,
				`"step","preorchestrator/requires"`: `{"status":"succeeded","output":{}}`,
			})
			c.opts.State.URL, c.opts.ReleaseDir = url, c.opts.Client.Directory()
			c, err := New(c.opts)
			require.NoError(t, err)
			return c.Conduct(t.Context(), installing(workflow))
		}
		record, err := conduct(config.Install)
		require.NoError(t, err)
		require.Len(t, record.Warnings, 1)
		require.Equal(t, lost+"; it is made anew here, with new secrets and without its data", record.Warnings[0].Summary)

		record, err = conduct(config.Upgrade)
		require.Nil(t, record)
		require.ErrorIs(t, err, &fault.Fault{Code: codeLost})
		require.ErrorContains(t, err, lost)
		record, err = conduct(config.Destroy)
		require.NoError(t, err)
		if url == "" {
			require.Empty(t, record.Warnings)
			continue
		}
		require.Len(t, record.Warnings, 1)
		require.Equal(t, lost+"; only the deployment's state is removed", record.Warnings[0].Summary)
	}
}
