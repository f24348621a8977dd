package config_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/config"
)

func TestWhatIsInClearIsNamed(t *testing.T) {
	text := `apiVersion: slipway.sh/v1
platform:
  components:
    web:
      values:
        adminPassword: hunter2
        auth: {clientSecret: "a b c", existingSecret: web-auth, password: 12345678}
        env:
          - {name: DB_PASSWORD, value: correct}
          - {name: DB_HOST, value: db}
        database: postgres://app:hunter2@db/app
        tls: {secretName: web-tls, passwordFile: /run/password, enabled: true}
        tokenTTL: 1h
        secretKeys: {adminPasswordKey: password}
        imagePullSecrets: [{name: regcred}]
        passwordLength: 16
        hidden: {password: "***", token: "false"}
        title: Slipway
  settings: {apiKey: Zq81xWv0Kq}
hooks:
  - name: a
    before: workflow
    script: |
      curl -u "me:$TOKEN" https://example.com
      PGPASSWORD="$(cat /run/password)" psql
    env: {DB_PASSWORD: hunter2, GREETING: hello, SECRET_REF: "env:SECRET"}
  - name: b
    before: workflow
    run: [curl, "https://me:hunter2@example.com"]
`
	c, err := config.Load([]byte(text), config.Options{})
	require.NoError(t, err)
	var got []string
	for _, p := range c.Doubts() {
		require.NotContains(t, p.String(), "hunter2")
		line, _, _ := strings.Cut(p.String(), ": what looks like a secret, and is in clear: ")
		got = append(got, line)
	}
	require.Equal(t, []string{
		"line 6: platform.components.web.values.adminPassword",
		"line 7: platform.components.web.values.auth.clientSecret",
		"line 7: platform.components.web.values.auth.password",
		"line 9: platform.components.web.values.env[0].value",
		"line 11: platform.components.web.values.database",
		"line 19: platform.settings.apiKey",
		"line 26: hooks[0].env.DB_PASSWORD",
		"line 29: hooks[1].run[1]",
	}, got)
}

func TestNothingIsInClearByItself(t *testing.T) {
	require.Empty(t, config.Default().Doubts())
}

// TestTheValuesOfOurChartsAreNotInClear: names of Secrets and of their keys are no secrets.
func TestTheValuesOfOurChartsAreNotInClear(t *testing.T) {
	seen := 0
	require.NoError(t, filepath.WalkDir("../examples/platform", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "values.yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		values, err := yaml.YAMLToJSON(text)
		require.NoError(t, err)
		c := config.Default()
		c.Platform.Components = map[string]config.Component{"web": {Values: values}}
		require.Empty(t, c.Doubts(), path)
		seen++
		return nil
	}))
	require.Greater(t, seen, 10)
}
