package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"github.com/slipway-sh/slipway/ci/dev/build/gotool"
)

// TestSharedLibraries: these commands take the libraries of Kubernetes as the program does, so
// that they are compiled once for all of them. A package is compiled again where any below it
// differs, so none that both have may be older. See docs/decisions/0031-ci-time.md.
func TestSharedLibraries(t *testing.T) {
	source, err := gotool.Checkout()
	require.NoError(t, err)
	program := required(t, source)
	const client = "k8s.io/client-go"
	for _, tool := range []string{"coredns", "external-secrets", "helm", "local-path-provisioner", "traefik"} {
		dir := filepath.Join(source, "ci/dev/bundle/tools", tool)
		its := required(t, dir)
		require.Equal(t, program[client], its[client], tool)
		var older []string
		for module, version := range its {
			if wanted, ok := program[module]; ok && semver.Compare(version, wanted) < 0 {
				older = append(older, module+"@"+wanted)
			}
		}
		require.Empty(t, older, "go get them in %s", dir)
	}
}

// required are the versions of modules that the go.mod of a directory has, by path.
func required(t *testing.T, dir string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	require.NoError(t, err)
	file, err := modfile.Parse("go.mod", text, nil)
	require.NoError(t, err)
	versions := map[string]string{}
	for _, r := range file.Require {
		versions[r.Mod.Path] = r.Mod.Version
	}
	return versions
}
