package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/config"
)

const older = `version: 1 # the first one
name: blue
scale: large
timeouts: {app: 10m}
`

func configFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "slipway.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o640))
	return file
}

func TestMigrateWritesTheFileAndKeepsTheOriginal(t *testing.T) {
	file := configFile(t, older)
	code, out, errs := slipway("config", "migrate", "--config", file, "--dry-run")
	require.Zero(t, code, errs)
	require.Empty(t, out)
	require.Contains(t, errs, "line 2: name is now global.name")
	require.Contains(t, errs, "line 3: global.scale, large is now 1000")
	require.Contains(t, errs, "four map entries removed", "the difference is shown")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, older, string(text))
	require.NoFileExists(t, file+".orig")

	code, out, errs = slipway("config", "migrate", "--config", file)
	require.Zero(t, code, errs)
	require.Equal(t, file+" is now of version slipway.sh/v1; the original is "+file+".orig\n", out)
	text, err = os.ReadFile(file + ".orig")
	require.NoError(t, err)
	require.Equal(t, older, string(text))
	text, err = os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "apiVersion: slipway.sh/v1 # the first one\nglobal:\n  name: blue\n  scale: 1000\nadvanced:\n  timeouts: {app: 10m}\n", string(text))
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), info.Mode().Perm())

	code, _, errs = slipway("config", "migrate", "--config", file)
	require.Zero(t, code)
	require.Contains(t, errs, "is of the current version, slipway.sh/v1")

	require.NoError(t, os.WriteFile(file, []byte("version: 1\nname: other\n"), 0o600))
	code, _, errs = slipway("config", "migrate", "--config", file)
	require.Equal(t, 2, code)
	require.Contains(t, errs, "CFG-006")
	require.Contains(t, errs, "there is another file")
	text, err = os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "version: 1\nname: other\n", string(text))
}

func TestWhatIsNotMigratedIsLeftAsItIs(t *testing.T) {
	for text, says := range map[string]string{
		"version: 1\n\nscale: huge\n":        "line 3: global.scale: got text, want 50, 100, 500 or 1000",
		"apiVersion: slipway.sh/v9\na: 1\n":  "CFG-002",
		"version: 1\nname: [\n":              "CFG-001",
		"version: 1\nname: a\nglobal: {}\nx": "CFG-001",
		"version: \"1\"\nname: a\n":          "line 1: apiVersion: got nothing",
		"global: {name: a}\n":                "line 1: apiVersion: got nothing",
	} {
		file := configFile(t, text)
		code, _, errs := slipway("config", "migrate", "--config", file)
		require.Equal(t, 2, code, errs)
		require.Contains(t, errs, says)
		got, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, text, string(got))
		require.NoFileExists(t, file+".orig")
	}
	for _, args := range [][]string{{"config"}, {"config", "melt"}, {"config", "migrate"}, {"config", "explain", "--output", "xml"}} {
		code, _, errs := slipway(args...)
		require.Equal(t, 2, code, errs)
	}
}

func TestAnOlderFileIsReadAndToldOf(t *testing.T) {
	file := configFile(t, older)
	code, out, errs := slipway("validate", "--config", file)
	require.Zero(t, code, errs)
	require.Equal(t, "valid: deployment blue on local, platform reference 1.0.0\n", out)
	require.Contains(t, errs, "is of an older version; it is read as if it were of slipway.sh/v1")
	require.Contains(t, errs, "slipway config migrate --config "+file+" writes it so")
}

func TestExplainTellsWhereEveryValueComesFrom(t *testing.T) {
	t.Setenv("SLIPWAY_TEST_DOMAIN", "ci.example.com")
	file := configFile(t, `apiVersion: slipway.sh/v1
global:
  domain: ${SLIPWAY_TEST_DOMAIN}
  scale: 500
platform:
  components: {toolbox: {enabled: true}}
hooks:
  - {name: a, before: workflow, script: "true"}
local: {ports: [80]}
`)
	code, out, errs := slipway("config", "explain", "--config", file, "--name", "blue", "--output", "json")
	require.Zero(t, code, errs)
	var all []config.Setting
	require.NoError(t, json.Unmarshal([]byte(out), &all))
	got := map[string]string{}
	for _, s := range all {
		got[s.Path] = s.Value + " from " + string(s.Origin)
	}
	for path, want := range map[string]string{
		"global.name":                           "blue from flag --name",
		"global.domain":                         "ci.example.com from line 3, environment",
		"global.admin.email":                    "admin@ci.example.com from default",
		"global.scale":                          "500 from line 4",
		"platform.components.toolbox.enabled":   "true from line 6",
		"platform.components.guestbook.enabled": "true from platform reference 1.0.0",
		"hooks[0].script":                       "true from line 8",
		"hooks[0].timeout":                      "5m from default",
		"local.ports":                           "[80] from line 9",
		"advanced.timeouts.step":                "20m from default",
	} {
		require.Equal(t, want, got[path], path)
	}

	code, out, errs = slipway("config", "explain", "--config", file)
	require.Zero(t, code, errs)
	require.Regexp(t, `(?m)^global\.scale +500 +line 4$`, out)
	require.True(t, strings.HasPrefix(out, "SETTING"))
}

func TestMigratingALinkedConfigurationLeavesTheLink(t *testing.T) {
	file := configFile(t, "version: 1\nname: blue\n")
	link := filepath.Join(t.TempDir(), "link.yaml")
	require.NoError(t, os.Symlink(file, link))
	code, _, errs := slipway("config", "migrate", "--config", link)
	require.Zero(t, code, errs)
	info, err := os.Lstat(link)
	require.NoError(t, err)
	require.Equal(t, os.ModeSymlink, info.Mode().Type())
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), "apiVersion: slipway.sh/v1")
}

func TestConfigureSaysWhereAWrongNameIsFrom(t *testing.T) {
	t.Setenv(config.EnvFolder, t.TempDir())
	code, _, errs := slipway("configure", "--name", "prod-")
	require.Equal(t, 2, code, errs)
	require.Contains(t, errs, `--name is "prod-"; give 1 to 15 lower-case letters, digits and hyphens, starting with a letter, not ending with a hyphen`)
	t.Setenv(source.EnvDeployment, "prod-")
	code, _, errs = slipway("configure")
	require.Equal(t, 2, code, errs)
	require.Contains(t, errs, `SLIPWAY_DEPLOYMENT is "prod-"; give`)
}
