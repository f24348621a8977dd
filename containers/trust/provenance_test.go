package trust

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
	pins.Images = slices.DeleteFunc(pins.Images, func(i lock.Image) bool { return !slices.Contains([]string{"node", "redis", "dex", "console"}, i.Name) })
	pins.Manifests = slices.DeleteFunc(pins.Manifests, func(m lock.Manifest) bool { return m.Name != "argocd" && m.Name != "traefik" })
	of := Build{
		Pins: pins, Platform: "linux/amd64", Sources: "sha256:" + strings.Repeat("ab", 32), Contents: "sha256:" + strings.Repeat("cd", 32),
		Builds: map[string]*debug.BuildInfo{"a": {GoVersion: "go1.26.3"}, "b": {GoVersion: "go1.26.3"}, "c": {GoVersion: "go1.26.2"}},
	}
	p := NewProvenance(of)
	text, err := p.Marshal()
	require.NoError(t, err)
	same, err := NewProvenance(of).Marshal()
	require.NoError(t, err)
	require.Equal(t, string(text), string(same))

	require.Equal(t, Parameters{Platform: "linux/amd64", OnDemand: []string{"console", "dex", "redis"}, Manifests: []string{"argocd", "traefik"}}, p.BuildDefinition.ExternalParameters)
	require.Equal(t, Toolchains{Go: []string{"go1.26.2", "go1.26.3"}, Debian: "bookworm"}, p.BuildDefinition.InternalParameters)
	require.Equal(t, []Dependency{
		{Name: "contents of the bundle", Digest: map[string]string{"sha256": strings.Repeat("cd", 32)}}, Sources(of.Sources),
	}, p.BuildDefinition.ResolvedDependencies)

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
	of.Sources = ""
	require.Len(t, NewProvenance(of).BuildDefinition.ResolvedDependencies, 1, "slipway is not in the bundle")
}
