package sbom

import (
	"bytes"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
)

func TestDocument(t *testing.T) {
	pins, err := lock.Load()
	require.NoError(t, err)
	sha := strings.Repeat("ab", 32)
	git := pins.Packages["linux/amd64"][slices.IndexFunc(pins.Packages["linux/amd64"], func(p lock.Package) bool { return p.Name == "git" })]
	index, err := bundle.Index{
		Version: bundle.Format, Platform: "linux/amd64", Files: []bundle.File{{Path: "bin/terraform", Name: "terraform", Kind: bundle.Tool, SHA256: sha}},
		Images: []bundle.Image{{Name: "gitea", Ref: "slipway.local/gitea:1", Digest: "sha256:" + sha}},
	}.Marshal()
	require.NoError(t, err)
	b, err := bundle.Parse(index)
	require.NoError(t, err)
	of := Of{
		Packages: map[string]map[string]string{"gitea": {"libc6": "2.0", "git": git.Version}},
		Version:  "v1.2.3", Pins: pins, Bundle: b,
		Builds: map[string]*debug.BuildInfo{"slipway": {GoVersion: "go1.26.0", Deps: []*debug.Module{{Path: "example.com/m", Version: "v1.0.0+incompatible", Sum: "h1:x"}}}},
	}
	text, err := Document(of)
	require.NoError(t, err)
	again, err := Document(of)
	require.NoError(t, err)
	require.Equal(t, string(text), string(again))
	var bom cyclonedx.BOM
	require.NoError(t, cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&bom))
	require.Equal(t, cyclonedx.SpecVersion1_6, bom.SpecVersion)
	require.Regexp(t, `^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, bom.SerialNumber)
	all := map[string]cyclonedx.Component{}
	for _, c := range *bom.Components {
		require.NotContains(t, all, c.BOMRef)
		all[c.BOMRef] = c
	}
	require.Equal(t, sha, (*all["tool/terraform"].Hashes)[0].Value)
	require.Equal(t, "pkg:golang/github.com/hashicorp/terraform@"+(*all["tool/terraform"].Components)[0].Version, (*all["tool/terraform"].Components)[0].PackageURL)
	require.Contains(t, all["image/gitea"].PackageURL, "pkg:oci/gitea@sha256%3A"+sha)
	require.NotEmpty(t, *all["image/gitea"].Components)
	for _, c := range *all["image/gitea"].Components {
		if c.Name == "git" {
			require.Equal(t, git.SHA256, (*c.Hashes)[0].Value, "the lock pins the version")
		}
	}
	require.Contains(t, string(text), `"pkg:deb/debian/libc6@2.0?distro=bookworm"`, "what the image has, also if nothing but another package needs it")
	require.Equal(t, 2, strings.Count(string(text), `"purl": "pkg:deb/`), "and nothing else")
	require.Equal(t, 1, strings.Count(string(text), "|deb/git"))
	require.Equal(t, "pkg:golang/example.com/m@v1.0.0+incompatible", (*all["slipway"].Components)[0].PackageURL)
	require.Equal(t, "pkg:golang/std@1.26.0", (*all["slipway"].Components)[1].PackageURL)

	// With what its tools were built from.
	of.Builds["terraform"] = &debug.BuildInfo{GoVersion: "go1.26.0", Deps: []*debug.Module{{Path: "example.com/t", Version: "v2.0.0"}}}
	of.Builds["gitea"] = of.Builds["terraform"]
	text, err = Document(of)
	require.NoError(t, err)
	require.Contains(t, string(text), `"image/gitea|example.com/t"`)
	bom = cyclonedx.BOM{}
	require.NoError(t, cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&bom))
	require.Equal(t, "slipway-bundle "+b.ReadDigest(), bom.Metadata.Component.Name+" "+bom.Metadata.Component.Version)
	require.Empty(t, bom.Metadata.Timestamp)
	for _, c := range *bom.Components {
		if c.BOMRef == "tool/terraform" {
			require.Equal(t, "tool/terraform|example.com/t tool/terraform|std", (*c.Components)[0].BOMRef+" "+(*c.Components)[1].BOMRef)
		}
	}
}

func TestProgram(t *testing.T) {
	sha := strings.Repeat("ab", 32)
	build := &debug.BuildInfo{GoVersion: "go1.26.0", Deps: []*debug.Module{
		{Path: "example.com/old", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/new", Version: "v2.0.0", Sum: "h1:x"}},
	}}
	text, err := Program("v1.2.3", sha, build)
	require.NoError(t, err)
	var bom cyclonedx.BOM
	require.NoError(t, cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&bom))
	about := bom.Metadata.Component
	require.Equal(t, "slipway v1.2.3 "+sha, about.Name+" "+about.Version+" "+(*about.Hashes)[0].Value)
	require.Nil(t, about.Components)
	var names []string
	for _, c := range *bom.Components {
		names = append(names, c.Name+" "+c.Version)
	}
	require.Equal(t, []string{"example.com/new v2.0.0", "std go1.26.0"}, names)
	require.NotContains(t, string(text), "timestamp")
	other, err := Program("v1.2.3", strings.Repeat("cd", 32), build)
	require.NoError(t, err)
	require.NotContains(t, string(other), bom.SerialNumber, "each has its own")
}
