package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// theirs is a configuration for an existing cluster, whose kubeconfig is
// nowhere yet.
func theirs(t *testing.T, more string) string {
	t.Helper()
	t.Setenv("SLIPWAY_TEST_KUBECONFIG", "")
	return configFile(t, "apiVersion: slipway.sh/v1\nprovider: existing\nexisting: {kubeconfig: env:SLIPWAY_TEST_KUBECONFIG}\n"+more)
}

// TestImagesForAClusterThatIsThere: they come from a registry, and what the cluster
// would pull from public registries is named before anything starts.
func TestImagesForAClusterThatIsThere(t *testing.T) {
	t.Setenv("SLIPWAY_BUNDLE", "")
	t.Setenv("SLIPWAY_LOCK", "")
	config := theirs(t, "")
	code, _, errs := slipway("validate", "--bundle", wholeBundle(t), "--config", config)
	require.Equal(t, 2, code, errs)
	require.Contains(t, errs, "IMG-008")
	require.Contains(t, errs, "not from a bundle")

	lock := lockFile(t, "registry.example.com/team")
	code, _, errs = slipway("validate", "--lock", lock, "--config", config)
	require.Zero(t, code, errs)

	release := shop(t, "quay.io/argoproj/argocd:v3.6.1")
	code, _, errs = slipway("validate", "--lock", lock, "--config", config, "--platform", release)
	require.Zero(t, code, "what Slipway applies is rewritten: %s", errs)
	hook := strings.Join([]string{
		"apiVersion: batch/v1", "kind: Job", "metadata: {name: h, annotations: {helm.sh/hook: pre-install}}",
		"spec: {template: {spec: {containers: [{name: a, image: 'quay.io/argoproj/argocd:v3.6.1'}]}}}",
	}, "\n")
	require.NoError(t, os.WriteFile(filepath.Join(release, "charts/web/templates/hook.yaml"), []byte(hook), 0o644))
	code, _, errs = slipway("validate", "--lock", lock, "--config", config, "--platform", release)
	require.Equal(t, 3, code, errs)
	require.Contains(t, errs, "IMG-008")
	require.Contains(t, errs, "component web ("+filepath.Join(release, "charts/web/templates/hook.yaml")+", line 4): quay.io/argoproj/argocd:v3.6.1")
	code, _, errs = slipway("validate", "--lock", lock, "--config", theirs(t, "advanced: {missingImages: pull}\n"), "--platform", release)
	require.Zero(t, code, errs)

	code, _, errs = slipway("validate", "--lock", lockFile(t, "localhost:5000/team"), "--config", config)
	require.Equal(t, 2, code, errs)
	require.Contains(t, errs, "REG-010")
	require.Contains(t, errs, "existing: {registry:")
}

// TestAccessThatIsRefused: before anything starts, and without a word of the credentials.
func TestAccessThatIsRefused(t *testing.T) {
	config := theirs(t, "")
	t.Setenv("SLIPWAY_TEST_KUBECONFIG", `{"clusters":[{"name":"c","cluster":{"server":"https://a"}}],"users":[{"name":"u","user":{"exec":{"command":"aws","args":["hunter22"]}}}],"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"current-context":"x"}`)
	for _, command := range [][]string{{"validate"}, {"install", "--lock", lockFile(t, "registry.example.com/team")}, {"destroy", "--yes", "--lock", lockFile(t, "registry.example.com/team")}} {
		code, _, errs := slipway(append(command, "--config", config)...)
		require.Equal(t, 2, code, errs)
		require.Contains(t, errs, "ACC-003")
		require.Contains(t, errs, "kubectl create serviceaccount slipway")
		require.NotContains(t, errs, "hunter22")
	}
}
