package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// TestRefusals: what the module refuses before Slipway's program runs has code,
// remedy and exit code as the program's own failures have.
func TestRefusals(t *testing.T) {
	beside(t)
	d := open(t, "e2e-refused")
	module := t.TempDir() // a copy, for the checkout's .env names a bundle
	for _, part := range []string{"dagger.json", "ci/*.go", "ci/go.mod", "ci/origin/*.go"} {
		files, err := filepath.Glob(filepath.Join(root(t), part))
		require.NoError(t, err)
		require.NotEmpty(t, files, part)
		for _, file := range files {
			rel, err := filepath.Rel(root(t), file)
			require.NoError(t, err)
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NoError(t, os.MkdirAll(filepath.Join(module, filepath.Dir(rel)), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(module, rel), text, 0o644))
		}
	}
	damaged := func(file string) []string { // a bundle with no more than the module looks at before the program runs
		bad := t.TempDir()
		for _, name := range []string{"bundle.json", "bin/slipway", file} {
			text, err := os.ReadFile(filepath.Join(d.Bundle, name))
			if name == file {
				text, err = []byte("damaged"), nil
			}
			require.NoError(t, err)
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(bad, name)), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(bad, name), text, 0o755))
		}
		return []string{"--bundle", bad, "--bundle-digest", indexDigest(t, bad)}
	}
	for what, c := range map[string]struct {
		flags []string
		code  int
		says  string
	}{
		"neither bundle nor lock": {nil, 2, "BUN-006"},
		"a registry alone":        {[]string{"--registry", "registry.example.com"}, 2, "REG-010"},
		"no bundle there":         {[]string{"--bundle", t.TempDir()}, 3, "BUN-001"},
		"no digest":               {damaged("bin/slipway")[:2], 3, "BUN-007"},
		"another digest":          {[]string{"--bundle", d.Bundle, "--bundle-digest", "sha256:" + emptySHA256}, 3, "BUN-007"},
		"a damaged index":         {damaged("bundle.json"), 3, "BUN-002"},
		"a damaged program":       {damaged("bin/slipway"), 3, "BUN-003"},
		"a damaged toolchain":     {damaged("images/toolchain.tar"), 3, "BUN-003"},
		"no lock":                 {[]string{"--lock", write(t, "no JSON")}, 2, "LCK-003"},
		"a registry that is not there": {
			[]string{"--registry", "registry.invalid/slipway", "--lock", write(t, `{"bundles":{
				"linux/amd64":{"toolchain":"sha256:`+emptySHA256+`"},"linux/arm64":{"toolchain":"sha256:`+emptySHA256+`"}}}`)}, 3, "REG-009",
		},
	} {
		t.Run(what, func(t *testing.T) {
			args := append([]string{"call", "--progress", "plain", "--mod", module}, c.flags...)
			cmd := exec.CommandContext(t.Context(), "dagger", append(args, "install", "--name", d.Name)...)
			cmd.Dir = module
			cmd.Env = append(os.Environ(), "NO_COLOR=1", "DAGGER_NO_NAG=1")
			out, err := cmd.CombinedOutput()
			require.Error(t, err)
			require.Equal(t, c.code, cmd.ProcessState.ExitCode(), slipway.Tail(string(out)))
			require.Contains(t, string(out), c.says+": ")
			require.Contains(t, string(out), "remedy: ")
		})
	}
}
