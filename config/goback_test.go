package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
)

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
