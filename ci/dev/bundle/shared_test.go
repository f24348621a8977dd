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
	for _, dir := range []string{
		"ci/dev/bundle/tools/argocd", "ci/dev/bundle/tools/coredns", "ci/dev/bundle/tools/external-secrets",
		"ci/dev/bundle/tools/helm", "ci/dev/bundle/tools/local-path-provisioner", "ci/dev/bundle/tools/traefik",
		"containers/node",
	} {
		its := required(t, filepath.Join(source, dir))
		require.Equal(t, program[client], its[client], dir)
		var older []string
		for module, version := range its {
			wanted, ok := program[module]
			if ok && semver.Compare(version, wanted) < 0 && module != ofTests && (dir != "containers/node" || !ownOfNode[module]) {
				older = append(older, module+"@"+wanted)
			}
		}
		require.Empty(t, older, "go get them in %s", dir)
	}
}

// ofTests is a module that the program has for its tests only.
const ofTests = "golang.org/x/tools"

// ownOfNode are modules for which Kubernetes' API server needs an older version: with that of the
// program, it does not compile.
var ownOfNode = map[string]bool{"github.com/google/cel-go": true, "github.com/antlr4-go/antlr/v4": true}

// required are the versions of modules that the go.mod of a directory has, by path, those in whose
// place it has others included.
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
	for _, r := range file.Replace {
		versions[r.Old.Path] = r.New.Version
	}
	return versions
}
