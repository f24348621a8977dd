package cli

import (
	"bytes"
	"os"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/pipeline/progress"
	"github.com/slipway-sh/slipway/stages/conductor"
	"github.com/slipway-sh/slipway/stages/contract"
)

// TestAnUpgradeReadsTheConfigurationAsItsReleaseHasIt, also of a release that it only goes
// through, and leaves the file alone.
func TestAnUpgradeReadsTheConfigurationAsItsReleaseHasIt(t *testing.T) {
	const older, newer = "components: {database: {enabled: false}, guestbook: {enabled: false, values: {title: Ours}}, welcome: {enabled: true}}", "components: {database: {enabled: false}, guestbook: {enabled: false, values: {heading: Ours}}}"
	choices := map[string]bool{"database": false, "guestbook": false}
	for name, c := range map[string]struct {
		platform, installed, to string
		says, command           string
	}{
		"it names a version":  {"release: 1.1.0, " + older, "1.1.0", "2.0.0", "welcome is gone", " --to 2.0.0"},
		"it names none":       {older, "1.1.0", "2.0.0", "welcome is gone", " --from 1.1.0 --to 2.0.0"},
		"it is there already": {"release: 2.0.0, " + newer, "1.1.0", "2.0.0", "", ""},
		"on the way":          {"release: 2.0.0, " + newer, "1.0.0", "1.1.0", "platform.components.guestbook.values.heading is now platform.components.guestbook.values.title", ""},
	} {
		t.Run(name, func(t *testing.T) {
			file := configFile(t, "apiVersion: slipway.sh/v1\nplatform: {"+c.platform+"}\n")
			before, err := os.ReadFile(file)
			require.NoError(t, err)
			var screen bytes.Buffer
			io := console.Streams{Err: progress.Open(&screen, progress.Options{})}
			o := upgradeOf(t, file)
			f := &o.install.deployment
			cfg, err := f.Source.Load(io)
			require.NoError(t, err)
			if o.written = cfg.WrittenFor(); o.written == "" {
				o.written = c.installed
			}
			unsaid := cfg.WrittenFor() == ""
			f.Release.Choose(cfg, c.to)
			r, err := f.Release.Load(cfg, f.Source.Path)
			require.NoError(t, err)
			run := &conductor.Options{Config: cfg, Release: r}
			require.NoError(t, o.migrate(io, run, unsaid))
			require.Equal(t, choices, run.Config.Choices())
			require.NoError(t, r.Fits(run.Config))
			require.Equal(t, []string{c.to, "blue"}, []string{run.Config.Platform.Release, run.Config.Global.Name})
			require.Equal(t, config.APIVersion, run.Config.APIVersion)
			if c.says == "" {
				require.Empty(t, screen.String())
			}
			require.Contains(t, screen.String(), c.says)
			if c.command == "" {
				require.NotContains(t, screen.String(), "writes it so")
			} else {
				require.Contains(t, screen.String(), "slipway config migrate"+c.command+" --config "+file+" --name blue writes it so")
			}
			after, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(before), string(after))
		})
	}
}

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
