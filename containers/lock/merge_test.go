package lock

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/fault"
)

// pushed is the lock of a bundle for a platform that was pushed somewhere, with an image that was
// added to it under a name.
func pushed(t *testing.T, platform, to, digit, added string) *Lock {
	t.Helper()
	l, err := Load()
	require.NoError(t, err)
	entry := Registry{Ref: to + "/x:1", Digest: "sha256:" + strings.Repeat(digit, 64), Pushed: "sha256:" + strings.Repeat(digit, 64)}
	images := map[string]Registry{}
	for _, i := range l.Images {
		if i.Name != "dex" || digit == "b" {
			images[i.Name] = entry
		}
	}
	more := []Added{{Name: added, Path: "x", StandsFor: []string{added}, Registry: map[string]Registry{platform: entry}}}
	out, err := l.At(to, bundle.Index{Platform: platform, Files: []bundle.File{{Name: "argocd", Kind: bundle.Manifest}}}, images, entry, more)
	require.NoError(t, err)
	out.Lines = map[string]string{platform: entry.Digest}
	return out
}

// TestMerge: one lock says where the bundles of two platforms are.
func TestMerge(t *testing.T) {
	const to, amd64, arm64 = "registry.example.com/team", "linux/amd64", "linux/arm64"
	first, second := pushed(t, amd64, to, "a", "quay.io/team/web:1"), pushed(t, arm64, to, "b", "quay.io/argoproj/argocd:v3.6.1")
	both, err := second.Merge(first)
	require.NoError(t, err)
	text, err := both.Marshal()
	require.NoError(t, err)
	read, err := Parse(text)
	require.NoError(t, err)
	digest := func(name, platform string) string {
		i, ok := read.Image(name)
		require.True(t, ok, name)
		return i.Registry[platform].Digest
	}
	require.Equal(t, "sha256:"+strings.Repeat("a", 64), digest("toolchain", amd64))
	require.Equal(t, "sha256:"+strings.Repeat("b", 64), digest("toolchain", arm64))
	require.Equal(t, []string{"", "sha256:" + strings.Repeat("b", 64)}, []string{digest("dex", amd64), digest("dex", arm64)}, "only one was pushed for a platform with it")
	require.Len(t, read.Manifests[0].Registry, 2)
	require.Len(t, read.Lines, 2)
	require.Len(t, read.Added, 2)
	argocd, _ := read.Image("argocd")
	require.NotContains(t, argocd.StandsFor, "quay.io/argoproj/argocd:v3.6.1", "another stands for it")
	require.Contains(t, read.Overrides(arm64), Override{Path: "x", Digest: "sha256:" + strings.Repeat("b", 64), StandsFor: []string{"quay.io/argoproj/argocd:v3.6.1"}})
	own, err := Load()
	require.NoError(t, err)
	require.NoError(t, own.VerifyFile(read))

	again, err := pushed(t, arm64, to, "c", "quay.io/argoproj/argocd:v3.6.1").Merge(read)
	require.NoError(t, err)
	toolchain, _ := again.Image("toolchain")
	require.Equal(t, strings.Repeat("c", 64), strings.TrimPrefix(toolchain.Registry[arm64].Digest, "sha256:"), "what is pushed now counts")
	require.Equal(t, strings.Repeat("a", 64), strings.TrimPrefix(toolchain.Registry[amd64].Digest, "sha256:"))

	_, err = second.Merge(pushed(t, amd64, "registry.example.com/other", "a", "quay.io/team/web:1"))
	require.ErrorIs(t, err, &fault.Fault{Code: CodeFile})
	require.ErrorContains(t, err, `it is of what is in "registry.example.com/other", and this is pushed to "registry.example.com/team"`)
}
