package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestValidateLooksForTheServicesThatAreAsked(t *testing.T) {
	withoutImages(t)
	dir := filepath.Join(t.TempDir(), "shop")
	code, _, errs := slipway("platform", "init", dir)
	require.Zero(t, code, errs)
	code, _, errs = slipway("validate", "--platform", dir)
	require.Zero(t, code, errs)

	file := filepath.Join(dir, "platform.yaml")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "shop/web:80", "shop/weg:80")), 0o600))
	code, _, errs = slipway("validate", "--platform", dir)
	require.Equal(t, 2, code, errs)
	require.Contains(t, errs, "error PLT-017: read what shop 0.1.0 is made of: ")
	require.Contains(t, errs, "no component has the Service shop/weg")

	for gate, says := range map[string]string{
		"rollout: apps/v1/Deployment shop/weg": "error PLT-017",
		`endpoint: "shop/weg:80"`:              "error PLT-017",
	} {
		require.NoError(t, os.WriteFile(file, []byte(string(text)+"tests:\n  - name: is-up\n    ready:\n      - "+gate+"\n"), 0o600))
		code, _, errs = slipway("validate", "--platform", dir)
		require.Equal(t, 2, code, errs)
		require.Contains(t, errs, says)
		require.Regexp(t, `test is-up \(\S+/platform.yaml, line \d+\): gate .*: no component has the \w+ shop/weg`, errs)
	}
}
