package cli

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/stages/contract"
)

// upgradeOf is an upgrade of deployment blue with a configuration.
func upgradeOf(t *testing.T, file string) *upgradeOptions {
	t.Helper()
	p := program()
	o := &upgradeOptions{install: installOptions{program: &p}}
	cmd := &cobra.Command{Use: "upgrade"}
	addDeployment(cmd, &p, &o.install.deployment)
	newRoot(t.Context(), &p).AddCommand(cmd)
	require.NoError(t, cmd.ParseFlags([]string{"--config", file, "--name", "blue"}))
	return o
}

// TestAPlanOfTheSameUpgrade is made with its flags.
func TestAPlanOfTheSameUpgrade(t *testing.T) {
	require.Empty(t, (&upgradeOptions{}).planFlags())
	require.Equal(t, "--to 2.0.0 --style in-place", (&upgradeOptions{to: "2.0.0", style: contract.InPlace}).planFlags())
}

// TestTheCommandOfAPlan names what was planned: of several upgrades the first one.
func TestTheCommandOfAPlan(t *testing.T) {
	o := planOptions{upgrade: *upgradeOf(t, configFile(t, "apiVersion: slipway.sh/v1\n"))}
	plan := &contract.Plan{Workflow: config.Upgrade, Digest: "sha256:aa", Release: contract.PlannedRelease{To: "1.1.0"}}
	require.NotContains(t, o.approve(plan), "--to")
	plan.Later = []string{"2.0.0"}
	require.Contains(t, o.approve(plan), "slipway upgrade --approve sha256:aa --to 1.1.0")
	o.upgrade.to, plan.Later = "v1.1.0", nil
	require.Contains(t, o.approve(plan), "--to v1.1.0")
}
