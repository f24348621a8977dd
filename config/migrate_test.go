package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/migrate"
	"github.com/slipway-sh/slipway/fault"
)

// The defaults of the older version are those of the current one.
func TestAMigratedDefaultIsTheDefault(t *testing.T) {
	want, err := config.Load(nil, config.Options{DefaultProvider: "local"})
	require.NoError(t, err)
	for _, version := range migrate.Versions() {
		text, err := os.ReadFile(filepath.Join("migrate/testdata/default." + strings.TrimPrefix(version, "slipway.sh/") + ".yaml"))
		require.NoError(t, err)
		var reported []migrate.Change
		got, err := config.Load(text, config.Options{DefaultProvider: "local", Migrated: func(c []migrate.Change) { reported = c }})
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
	text, err := os.ReadFile("migrate/testdata/odd.v1alpha1.yaml")
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
