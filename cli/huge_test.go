package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault/faulttest"
)

// TestHugeFilesAreNotReadWhole: files that somebody else may have made, wherever a command line,
// a configuration or a release names them. They take no room on the disk.
func TestHugeFilesAreNotReadWhole(t *testing.T) {
	kept(t)
	dir := t.TempDir()
	huge := filepath.Join(dir, "huge")
	make := func(file string) string {
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		require.NoError(t, os.Truncate(file, 2<<30))
		return file
	}
	make(huge)
	release := filepath.Join(dir, "release")
	require.NoError(t, os.CopyFS(release, os.DirFS(filepath.Join("..", "examples", "platform", "1.0.0"))))
	make(filepath.Join(release, "platform.yaml"))
	run := filepath.Join(dir, "run")
	require.NoError(t, os.Mkdir(run, 0o700))
	make(filepath.Join(run, "config.yaml"))
	packed := make(filepath.Join(dir, "p.tar.zst"))
	config := func(name, more string) string {
		file := filepath.Join(dir, name+".yaml")
		require.NoError(t, os.WriteFile(file, []byte("apiVersion: slipway.sh/v1\nglobal: {name: blue, domain: slipway.test, scale: 50}\n"+more), 0o600))
		return file
	}
	plain := config("plain", "provider: local\n")
	for what, args := range map[string][]string{
		"configuration":    {"validate", "--config", huge},
		"migration":        {"config", "migrate", "--config", huge},
		"answers":          {"configure", "--out", "-", "--answers", huge},
		"an answer":        {"configure", "--out", "-", "--set", "global.name=blue", "--set", "global.scale=50", "--set", "tls.certificate=@" + huge},
		"former one":       {"configure", "--out", "-", "--file", huge},
		"a run":            {"configure", "--out", "-", "--file", run},
		"destination":      {"configure", "--out", huge},
		"package":          {"save", "--verify", packed},
		"release":          {"validate", "--config", plain, "--platform", release},
		"secrets":          {"validate", "--config", config("secret", "provider: existing\nexisting: {kubeconfig: \"env:KUBECONFIG_TEXT\"}\n"), "--secrets", huge},
		"kubeconfig":       {"validate", "--config", config("existing", "provider: existing\nexisting: {kubeconfig: \"file:"+huge+"\"}\n")},
		"lock of images":   {"validate", "--config", plain, "--lock", huge},
		"key of a package": {"save", "--verify", packed, "--package-key", huge},
	} {
		t.Run(what, func(t *testing.T) {
			var code int
			var errs string
			faulttest.Bounded(t, func() { code, _, errs = slipway(args...) })
			require.NotZero(t, code, errs)
			require.NotEqual(t, 1, code, errs)
			require.Contains(t, errs, "larger than", strings.Join(args, " "))
		})
	}
}
