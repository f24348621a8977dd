package provenance

import (
	"encoding/json"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/lock"
)

func TestWhatABundleWasBuiltFrom(t *testing.T) {
	pins, err := lock.Load()
	require.NoError(t, err)
	pins.Manifests = slices.DeleteFunc(pins.Manifests, func(m lock.Manifest) bool { return m.Name != "argocd" && m.Name != "traefik" })
	const sum = "h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
	pinned := pins.Packages["linux/amd64"][0]
	of := Of{
		Pins: pins, Platform: "linux/amd64", Sources: "sha256:" + strings.Repeat("ab", 32), Images: []string{"redis", "dex", "console"},
		Builds: map[string]*debug.BuildInfo{
			"a": {GoVersion: "go1.26.3", Deps: []*debug.Module{{Path: "example.com/m", Version: "v1.0.0+incompatible", Sum: sum}, {Path: "github.com/slipway-sh/slipway", Replace: &debug.Module{Path: "../.."}}}},
			"b": {GoVersion: "go1.26.3", Deps: []*debug.Module{{Path: "example.com/m", Version: "v1.0.0+incompatible", Sum: sum}, {Path: "example.com/old", Replace: &debug.Module{Path: "example.com/new", Version: "v2.0.0", Sum: sum}}}},
			"c": {GoVersion: "go1.26.3", Deps: []*debug.Module{
				{Path: "example.com/changed", Version: "v3.0.0", Replace: &debug.Module{Path: "../source", Version: "(devel)"}},
				{Path: "example.com/m", Version: "v1.0.0+incompatible", Replace: &debug.Module{Path: "../source", Version: "(devel)"}},
			}},
		},
		Packages: map[string]map[string]string{"redis": {pinned.Name: pinned.Version, "newer": "1:2+b1"}},
	}
	p, err := New(of)
	require.NoError(t, err)
	text, err := p.Marshal()
	require.NoError(t, err)
	again, err := New(of)
	require.NoError(t, err)
	same, err := again.Marshal()
	require.NoError(t, err)
	require.Equal(t, string(text), string(same))

	require.Equal(t, Parameters{Platform: "linux/amd64", OnDemand: []string{"console", "dex", "redis"}, Manifests: []string{"argocd", "traefik"}}, p.BuildDefinition.ExternalParameters)
	require.Equal(t, Toolchains{Go: []string{"go1.26.3"}, Debian: "bookworm"}, p.BuildDefinition.InternalParameters)
	byURI := map[string]Dependency{}
	for _, d := range p.BuildDefinition.ResolvedDependencies {
		require.NotContains(t, byURI, d.URI)
		byURI[d.URI] = d
	}
	h1 := map[string]string{"dirHash": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}
	require.Equal(t, h1, byURI["pkg:golang/example.com/m@v1.0.0+incompatible"].Digest)
	require.Equal(t, h1, byURI["pkg:golang/example.com/new@v2.0.0"].Digest)
	require.NotContains(t, string(text), "example.com/old")
	require.Equal(t, Dependency{URI: "pkg:golang/example.com/changed@v3.0.0"}, byURI["pkg:golang/example.com/changed@v3.0.0"], "built from a copy")
	require.NotContains(t, string(text), "gitea", "its image is not in the bundle")
	require.NotContains(t, string(text), "slipway-sh", "this repository is not a module of others")
	require.Equal(t, strings.Repeat("ab", 32), byURI[""].Digest["sha256"])
	at := slices.IndexFunc(p.BuildDefinition.ResolvedDependencies, func(d Dependency) bool { return strings.HasPrefix(d.URI, "pkg:deb/debian/"+pinned.Name+"@") })
	require.Equal(t, pinned.SHA256, p.BuildDefinition.ResolvedDependencies[at].Digest["sha256"])
	require.Empty(t, byURI["pkg:deb/debian/newer@1%3A2%2Bb1?distro=bookworm"].Digest, "only apt knows it")
	require.Contains(t, byURI, "pkg:deb/debian/newer@1%3A2%2Bb1?distro=bookworm")
	require.Len(t, pins.Manifests, 2)
	for _, m := range pins.Manifests {
		require.Contains(t, byURI, "pkg:golang/"+m.Modules[0].Path+"@"+m.Modules[0].Version)
	}
	require.NotContains(t, string(text), "cert-manager", "neither its images nor its manifests are in the bundle")

	var slsa struct { // as others read it
		BuildDefinition struct {
			BuildType            string
			ExternalParameters   map[string]any
			ResolvedDependencies []map[string]any
		}
		RunDetails struct{ Builder struct{ ID string } }
	}
	require.NoError(t, json.Unmarshal(text, &slsa))
	require.Equal(t, "https://slipway.sh/bundle/v1 https://slipway.sh/make-bundle", slsa.BuildDefinition.BuildType+" "+slsa.RunDetails.Builder.ID)

	programs, err := Built(of.Sources, of.Builds)
	require.NoError(t, err)
	require.Equal(t, []Dependency{byURI[""], byURI["pkg:golang/example.com/changed@v3.0.0"], byURI["pkg:golang/example.com/m@v1.0.0+incompatible"], byURI["pkg:golang/example.com/new@v2.0.0"]}, programs)

	of.Builds["a"].Deps[0].Sum = "sha256:1"
	_, err = New(of)
	require.ErrorContains(t, err, `the module example.com/m@v1.0.0+incompatible has the sum "sha256:1"`)
	_, err = Built(of.Sources, of.Builds)
	require.ErrorContains(t, err, "example.com/m@v1.0.0+incompatible")
}
