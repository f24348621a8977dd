package config_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
)

var update = flag.Bool("update", false, "write the golden files")

// TestMigrate migrates each file of testdata/migrate. The result and the reported changes are in the
// files of the current version.
func TestMigrate(t *testing.T) {
	files, err := filepath.Glob("testdata/migrate/*.v1alpha1.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, from := range files {
		name := strings.TrimSuffix(from, ".v1alpha1.yaml") + ".v1"
		t.Run(filepath.Base(name), func(t *testing.T) {
			text, err := os.ReadFile(from)
			require.NoError(t, err)
			migrated, changes, err := config.Migrate(text, "slipway.yaml")
			require.NoError(t, err)
			lines := ""
			for _, c := range changes {
				lines += c.String() + "\n"
			}
			for file, got := range map[string]string{name + ".yaml": string(migrated), name + ".changes": lines} {
				if *update {
					require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
				}
				want, err := os.ReadFile(file)
				require.NoError(t, err)
				require.Equal(t, string(want), got, file)
			}
		})
	}
}

// A migration never removes a value that is in the file, nor adds a field.
func TestMigrate_keepsWhatIsThere(t *testing.T) {
	for _, text := range []string{
		"version: 1\nglobal: 7\nname: a", "version: 1\nscale: [small]", "version: 1\nname: {a: b}\nglobal:",
		"version: 1\nadminEmail: a\nglobal: {admin: b}", "apiVersion: slipway.sh/v1alpha1\nadvanced: []\ntimeouts: {}",
		"version: 1\nglobal: {admin: {email: b}}\nadminEmail: a",
	} {
		after, changes, err := config.Migrate([]byte(text), "slipway.yaml")
		require.NoError(t, err, text)
		require.NotEmpty(t, changes)
		require.GreaterOrEqual(t, scalars(t, after), scalars(t, []byte(text))-1, "%s\n%s", text, after) // version: 1 is one field, as apiVersion is
	}
}

func scalars(t *testing.T, text []byte) int {
	t.Helper()
	var n yaml.Node
	require.NoError(t, yaml.Unmarshal(text, &n))
	var count func(n *yaml.Node) int
	count = func(n *yaml.Node) (all int) {
		if n.Kind == yaml.ScalarNode {
			all = 1
		}
		for _, c := range n.Content {
			all += count(c)
		}
		return all
	}
	return count(&n)
}

// The defaults of the older version are those of the current one.
func TestAMigratedDefaultIsTheDefault(t *testing.T) {
	want, err := config.Load(nil, config.Options{DefaultProvider: "local"})
	require.NoError(t, err)
	for _, version := range []string{"slipway.sh/v1alpha1", config.APIVersion} {
		text, err := os.ReadFile(filepath.Join("testdata/migrate/default." + strings.TrimPrefix(version, "slipway.sh/") + ".yaml"))
		require.NoError(t, err)
		var reported []config.Change
		got, err := config.Load(text, config.Options{DefaultProvider: "local", Migrated: func(c []config.Change) { reported = c }})
		require.NoError(t, err)
		require.Equal(t, string(want.Canonical()), string(got.Canonical()), version)
		require.Equal(t, version != config.APIVersion, len(reported) > 0)

		migrated, changes, err := config.Migrate(text, "slipway.yaml")
		require.NoError(t, err)
		require.Equal(t, reported, changes)
		again, changes, err := config.Migrate(migrated, "slipway.yaml")
		require.NoError(t, err)
		require.Empty(t, changes)
		require.Equal(t, string(migrated), string(again))
	}
}

func TestProblemsOfAnOlderFileHaveItsLines(t *testing.T) {
	text, err := os.ReadFile("testdata/migrate/odd.v1alpha1.yaml")
	require.NoError(t, err)
	_, err = config.Load(text, config.Options{DefaultProvider: "local", Providers: []string{"aws", "azure", "local", "onprem"}})
	var got []string
	for _, p := range config.Problems(err) {
		got = append(got, p.String())
	}
	require.Equal(t, []string{
		`line 3: global.other: got an unknown field, want one of admin, domain, name, scale`,
		`line 4: name: got an older name of global.name, which is there too, want one of them`,
		`line 5: global.scale: got text, want 50, 100, 500 or 1000`,
		`line 7: colour: got an unknown field, want one of advanced, apiVersion, aws, azure, git, global, hooks, local, observability, onprem, platform, provider, proxy, smtp, state, tls`,
	}, got)
}

func TestMigrate_whatCannotBe(t *testing.T) {
	_, _, err := config.Migrate([]byte("apiVersion: slipway.sh/v9"), "new.yaml")
	require.ErrorIs(t, err, &fault.Fault{Code: "CFG-002"})
	_, _, err = config.Migrate([]byte("- a"), "list.yaml")
	require.ErrorIs(t, err, &fault.Fault{Code: "CFG-001"})
}
