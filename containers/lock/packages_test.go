package lock

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/fault"
)

func TestPackagesAreCompared(t *testing.T) {
	l := &Lock{Packages: map[string][]Package{"linux/amd64": {{Name: "curl", Version: "7.88"}, {Name: "git", Version: "1:2.39.5"}}}}
	require.NoError(t, l.VerifyPackages("linux/amd64", map[string]map[string]string{
		"gitea": {"git": "1:2.39.5", "curl": "7.88"}, "argocd": {"git": "1:2.39.5"},
	}))
	err := l.VerifyPackages("linux/amd64", map[string]map[string]string{"gitea": {"git": "1:2.39.6"}, "node": {"runc": "1.1"}})
	require.ErrorIs(t, err, &fault.Fault{Code: CodePackages})
	require.Equal(t, fault.Preflight, fault.ClassOf(err))
	for _, says := range []string{
		"image gitea: it has the package git 1:2.39.6, the lock says 1:2.39.5",
		"image node: it has the package runc 1.1, which the lock does not have",
	} {
		require.ErrorContains(t, err, says)
	}
	require.NoError(t, l.VerifyPackages("linux/arm64", map[string]map[string]string{"gitea": {"git": "2"}}), "nothing is pinned there")
	l.Packages["linux/arm64"] = []Package{{Name: "git", Version: "2"}}
	require.NoError(t, l.VerifyPackages("linux/arm64", map[string]map[string]string{"gitea": {"git": "2"}}))
	err = l.VerifyPackages("linux/arm64", map[string]map[string]string{"gitea": {"git": "1:2.39.5", "curl": "7.88"}})
	require.ErrorContains(t, err, "image gitea: it has the package git 1:2.39.5, the lock says 2")
	require.ErrorContains(t, err, "it has the package curl 7.88, which the lock does not have", "those of the other architecture do not count")
}

func TestWrongPins(t *testing.T) {
	l, err := Load()
	require.NoError(t, err)
	for _, platform := range []string{"linux/amd64", "linux/arm64"} {
		require.Greater(t, len(l.Packages[platform]), 150, platform)
	}
	sum := strings.Repeat("a", 64)
	l.Packages = map[string][]Package{
		"linux/amd64":  {{Name: "git", Version: "1", SHA256: sum}, {Name: "curl", Version: "1", SHA256: sum}, {Name: "zip", Version: "1", SHA256: "a"}},
		"plan9/mips64": nil,
	}
	err = l.Validate()
	for _, says := range []string{"curl is not sorted", `"zip": name, version and sha256 are required`, `"plan9/mips64" is neither linux/amd64`} {
		require.ErrorContains(t, err, says)
	}
}

// The line is that of what the lock pins, and of nothing that a platform release added.
func TestLineOf(t *testing.T) {
	l, err := Load()
	require.NoError(t, err)
	index := func() bundle.Index {
		return bundle.Index{
			Version: bundle.Format, Platform: "linux/amd64",
			Files: []bundle.File{
				{Path: "bin/helm", Name: "helm", Kind: bundle.Tool, Version: "3", Origin: "go:helm", SHA256: strings.Repeat("a", 64)},
				{Path: bundle.WorkloadArchive, Name: "workloads", Kind: bundle.Images, SHA256: strings.Repeat("b", 64)},
				{Path: "manifests/argocd/a.yaml", Name: "argocd", Kind: bundle.Manifest, Version: "3", Origin: "go:argocd", SHA256: strings.Repeat("c", 64)},
			},
			Images: []bundle.Image{{Name: "gitea", Ref: "slipway.local/gitea:1", Digest: "sha256:" + strings.Repeat("d", 64)}},
		}
	}
	line := func(l *Lock, x bundle.Index) string {
		t.Helper()
		out, err := LineOf(l, x)
		require.NoError(t, err)
		require.True(t, bundle.IsDigest(out))
		return out
	}
	want := line(l, index())
	for what, alike := range map[string]func(l *Lock, x *bundle.Index){
		"order":           func(_ *Lock, x *bundle.Index) { x.Files[0], x.Files[2] = x.Files[2], x.Files[0] },
		"another archive": func(_ *Lock, x *bundle.Index) { x.Files[1].SHA256 = strings.Repeat("e", 64) },
		"an added image": func(_ *Lock, x *bundle.Index) {
			x.Images = append(x.Images, bundle.Image{Name: "docker.io/library/redis:8", Archive: "images/added/a.tar", Digest: "sha256:" + strings.Repeat("e", 64)})
		},
	} {
		t.Run(what, func(t *testing.T) {
			other, x := *l, index()
			alike(&other, &x)
			require.Equal(t, want, line(&other, x))
		})
	}
	for what, unlike := range map[string]func(l *Lock, x *bundle.Index){
		"platform":          func(_ *Lock, x *bundle.Index) { x.Platform = "linux/arm64" },
		"tool":              func(_ *Lock, x *bundle.Index) { x.Files[0].SHA256 = strings.Repeat("e", 64) },
		"version of a tool": func(_ *Lock, x *bundle.Index) { x.Files[0].Version = "4" },
		"manifest":          func(_ *Lock, x *bundle.Index) { x.Files[2].SHA256 = strings.Repeat("e", 64) },
		"image":             func(_ *Lock, x *bundle.Index) { x.Images[0].Digest = "sha256:" + strings.Repeat("e", 64) },
		"an image on demand": func(_ *Lock, x *bundle.Index) {
			x.Images = append(x.Images, bundle.Image{Name: "dex", Digest: "sha256:" + strings.Repeat("e", 64)})
		},
		"manifests on demand": func(_ *Lock, x *bundle.Index) {
			x.Files = append(x.Files, bundle.File{Path: "manifests/external-secrets/bundle.yaml", Name: "external-secrets", Kind: bundle.Manifest, SHA256: strings.Repeat("e", 64)})
		},
		"pins":     func(l *Lock, _ *bundle.Index) { l.Suite = "trixie" },
		"packages": func(l *Lock, _ *bundle.Index) { l.Packages = nil },
		"packages of the other architecture": func(l *Lock, _ *bundle.Index) {
			l.Packages = map[string][]Package{"linux/amd64": l.Packages["linux/amd64"]}
		},
	} {
		t.Run(what, func(t *testing.T) {
			other, x := *l, index()
			unlike(&other, &x)
			require.NotEqual(t, want, line(&other, x))
		})
	}
}
