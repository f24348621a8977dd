package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
)

func TestASecretThatIsNotThereIsFoundOutBeforeARun(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("SLIPWAY_TEST_TOKEN", "")
	t.Setenv(moduleEnv, "")
	file := filepath.Join(home, "token")
	require.NoError(t, os.WriteFile(file, nil, 0o600))

	for _, there := range []string{"env:SLIPWAY_TEST_TOKEN", "file:" + file, "file:~/token"} {
		require.NoError(t, readable(config.SecretRef(there)), there)
	}
	for ref, says := range map[string]string{
		"env:SLIPWAY_TEST_NONE": "the environment variable SLIPWAY_TEST_NONE is not set",
		"file:~/none":           "no such file",
		"file:" + home:          "is not a plain file",
	} {
		require.ErrorContains(t, readable(config.SecretRef(ref)), says)
	}

	t.Setenv(moduleEnv, "1")
	require.ErrorContains(t, readable("env:SLIPWAY_TEST_TOKEN"), "dagger call does not hand it to hooks")
}
