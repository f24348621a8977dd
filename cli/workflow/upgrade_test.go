package workflow

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/providers/all"
	"github.com/slipway-sh/slipway/stages/contract"
)

// line is a command line of a program with these commands.
func line(t *testing.T, cmd *cobra.Command, args ...string) *cobra.Command {
	t.Helper()
	p := &source.Program{Providers: all.All()}
	root := &cobra.Command{Use: "slipway"}
	root.AddCommand(cmd, NewUpgrade(p), NewKubeconfig(p), NewToolchain(p))
	require.NoError(t, cmd.ParseFlags(args))
	return cmd
}

// TestAPlanOfTheSameUpgrade is made with its flags.
func TestAPlanOfTheSameUpgrade(t *testing.T) {
	require.Empty(t, (&upgradeOptions{}).planFlags())
	require.Equal(t, "--to 2.0.0 --style in-place", (&upgradeOptions{to: "2.0.0", style: contract.InPlace}).planFlags())
}

// TestTheCommandOfAPlan names what was planned: of several upgrades the first one.
func TestTheCommandOfAPlan(t *testing.T) {
	var o planOptions
	cmd := &cobra.Command{Use: "plan"}
	o.upgrade.install.deployment.AddFlags(cmd, &source.Program{Providers: all.All()})
	line(t, cmd, "--config", "slipway.yaml", "--name", "blue")
	plan := &contract.Plan{Workflow: config.Upgrade, Digest: "sha256:aa", Release: contract.PlannedRelease{To: "1.1.0"}}
	require.NotContains(t, o.approve(plan), "--to")
	plan.Later = []string{"2.0.0"}
	require.Contains(t, o.approve(plan), "slipway upgrade --approve sha256:aa --to 1.1.0")
	o.upgrade.to, plan.Later = "v1.1.0", nil
	require.Contains(t, o.approve(plan), "--to v1.1.0")
}
