package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/migrate"
	"github.com/slipway-sh/slipway/fault"
)

func TestUpgradeFile(t *testing.T) {
	steps := []migrate.Step{{Version: "2.0.0", Move: map[string]string{"platform.components.database": "platform.components.postgresql"}}}
	text, changes, err := config.UpgradeFile([]byte("apiVersion: slipway.sh/v1 # mine\nplatform:\n  components: {database: {enabled: false}}\n"), "f", steps, "2.0.0")
	require.NoError(t, err)
	require.Len(t, changes, 2)
	require.Equal(t, "apiVersion: slipway.sh/v1 # mine\nplatform:\n  components: {postgresql: {enabled: false}}\n  release: 2.0.0\n", string(text))
	_, changes, err = config.UpgradeFile(text, "f", steps, "2.0.0")
	require.NoError(t, err)
	require.Empty(t, changes, "once is enough")

	text, changes, err = config.UpgradeFile([]byte("version: 1\nname: blue\n"), "f", steps, "")
	require.NoError(t, err)
	require.NotEmpty(t, changes)
	require.Equal(t, "apiVersion: slipway.sh/v1\nglobal:\n  name: blue\n", string(text), "a file of an older version of the schema is migrated first")

	_, changes, err = config.UpgradeFile(nil, "f", steps, "2.0.0")
	require.NoError(t, err)
	require.Empty(t, changes, "there is nothing in it")

	_, _, err = config.UpgradeFile([]byte("apiVersion: slipway.sh/v1\nplatform:\n  components: {database: {}, postgresql: {}}\n"), "f", steps, "")
	require.ErrorIs(t, err, &fault.Fault{Code: config.CodeTaken})
	require.Equal(t, fault.Usage, fault.ClassOf(err))
	require.ErrorContains(t, err, "line 3: platform.components.database: got a value beside platform.components.postgresql (line 3)")
	_, _, err = config.UpgradeFile([]byte("apiVersion: slipway.sh/v1\na: 1\na: 2\n"), "f", steps, "")
	require.ErrorIs(t, err, &fault.Fault{Code: config.CodeInvalid})
}

func TestWrittenFor(t *testing.T) {
	for release, want := range map[string]string{
		"": "", "release: 1.1.0": "1.1.0", "release: ./mine": "",
		"release: https://git.example.org/a/b.git//c@v1.2.0": "1.2.0", "release: ssh://git@git.example.org/a/b.git@main": "",
	} {
		cfg, err := config.Load([]byte("apiVersion: slipway.sh/v1\nplatform: {"+release+"}\n"), config.Options{DefaultProvider: "local"})
		require.NoError(t, err)
		require.Equal(t, want, cfg.WrittenFor(), release)
	}
	require.Empty(t, config.Default().WrittenFor())
}

// TestGoBack: how long things may take is what the configuration at hand says, so that it can
// be raised.
func TestGoBack(t *testing.T) {
	at := func(text string) *config.Config {
		t.Helper()
		c, err := config.Load([]byte("apiVersion: slipway.sh/v1\n"+text), config.Options{})
		require.NoError(t, err)
		return c
	}
	c := at("global: {name: blue}\nadvanced: {timeouts: {step: 2h}}\n")
	was := at("global: {name: green, domain: green.example.org}\nadvanced: {timeouts: {step: 1h}, missingImages: pull}\n")
	c.GoBack(was)
	require.Equal(t, []any{"blue", "green.example.org", "2h", "pull"}, []any{c.Global.Name, c.Global.Domain, c.Advanced.Timeouts.Step.String(), c.Advanced.MissingImages})
}

// TestGoBackRunsNothingOfOthers: a backup is where others may write, and so decides neither which
// hooks run nor where secrets come from.
func TestGoBackRunsNothingOfOthers(t *testing.T) {
	at := func(text string) *config.Config {
		t.Helper()
		c, err := config.Load([]byte("apiVersion: slipway.sh/v1\n"+text), config.Options{})
		require.NoError(t, err)
		return c
	}
	const same = "{name: same, before: workflow, run: [a], secrets: {T: 'env:T'}}"
	c := at("smtp: {host: new.test, from: a@b.test, username: me, password: 'env:MINE'}\nadvanced: {save: {key: 'env:MINE'}}\nhooks: [" + same + ", {name: new, before: workflow, run: [a], env: {}}, {name: other, after: workflow, run: [a]}]\n")
	was, err := config.Load(at("smtp: {host: old.test, from: a@b.test, username: me, password: 'cmd:touch /x'}\nplatform: {secrets: {p: 'file:/y'}}\n"+
		"advanced: {save: {key: 'cmd:touch /z'}}\n"+
		"hooks: ["+same+", {name: new, before: workflow, run: [a], secrets: {T: 'env:T'}}, {name: evil, after: workflow, run: [a]}]\n").Canonical(), config.Options{})
	require.NoError(t, err)
	dropped, missing := c.GoBack(was)
	require.Equal(t, []string{"new", "evil"}, dropped)
	require.Equal(t, map[string]config.SecretRef{"platform.secrets.p": "file:/y"}, missing)
	require.Equal(t, map[string]config.SecretRef{"smtp.password": "env:MINE", "hooks.same.secrets.T": "env:T", "advanced.save.key": "env:MINE"}, c.References(nil))
	require.Equal(t, "old.test", c.SMTP.Host)
	require.Equal(t, config.Save{Key: "env:MINE"}, c.Advanced.Save)

	none := config.Default()
	_, missing = none.GoBack(was)
	require.Contains(t, missing, "smtp.password")
	_, missing = c.GoBack(config.Default())
	require.Empty(t, missing)
	require.Equal(t, map[string]config.SecretRef{"advanced.save.key": "env:MINE"}, c.References(nil), "what there was no secret for has none now")
}
