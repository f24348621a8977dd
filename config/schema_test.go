package config_test

import (
	"flag"
	"os"
	"testing"

	"github.com/slipway-sh/slipway/config"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files")

func TestSchema_golden(t *testing.T) {
	got, err := config.Schema()
	require.NoError(t, err)
	const golden = "testdata/schema.json"
	if *update {
		require.NoError(t, os.WriteFile(golden, got, 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "run go test ./config -update if this change is meant")
}
