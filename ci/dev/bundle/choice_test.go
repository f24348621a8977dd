package main

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/dev/build/gotool"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/fault"
)

// chosen are the images and the Go commands of a bundle.
func chosen(t *testing.T, o choice) (images, programs []string) {
	t.Helper()
	l, err := lock.Load()
	require.NoError(t, err)
	left, err := o.choose(l)
	require.NoError(t, err)
	source, err := gotool.Checkout()
	require.NoError(t, err)
	for _, i := range l.Images {
		images = append(images, i.Name)
	}
	r, err := loadRecipes()
	require.NoError(t, err)
	all, _, err := r.commands(t.Context(), source, l, runtime.GOARCH, append(left, slipway)) // its sources are not looked for
	require.NoError(t, err)
	for _, c := range all {
		programs = append(programs, c.Name)
		for _, flag := range c.LDFlags {
			require.NotRegexp(t, "ersion=v?$", flag, "%s gets its version from the lock", c.Name)
		}
	}
	return images, programs
}

func TestImagesOnDemandAreForWhoNamesThem(t *testing.T) {
	source, err := gotool.Checkout()
	require.NoError(t, err)
	release := filepath.Join(source, "examples/platform/manifests/1.0.0")
	reference := filepath.Join(source, "examples/platform/1.0.0")

	images, programs := chosen(t, choice{platforms: []string{reference}})
	ordinary, ordinaryPrograms := chosen(t, choice{})
	require.Equal(t, ordinary, images, "those of the reference platform, if no other is named")
	require.Equal(t, ordinaryPrograms, programs)
	require.ElementsMatch(t, []string{
		"toolchain", "node", "pause", "coredns", "local-path-provisioner", "busybox", "gitea", "argocd", "redis", "postgresql", "guestbook",
	}, images)
	for _, name := range []string{"dex", "console"} {
		require.NotContains(t, images, name)
		require.NotContains(t, programs, name)
	}

	images, programs = chosen(t, choice{platforms: []string{release, reference}})
	require.ElementsMatch(t, append(ordinary, "dex", "console"), images)
	require.ElementsMatch(t, append(ordinaryPrograms, "dex", "console"), programs)

	images, programs = chosen(t, choice{platforms: []string{release}})
	require.Subset(t, images, []string{"dex", "console", "postgresql", "coredns"})
	for _, name := range []string{"gitea", "argocd", "redis", "guestbook"} {
		require.NotContains(t, images, name)
		require.NotContains(t, programs, name)
	}
}

// TestProgramsOfAnotherArchitecture: those that are linked with C are linked by Debian's compiler
// for it, and what is for this machine is built as ever.
func TestProgramsOfAnotherArchitecture(t *testing.T) {
	l, err := lock.Load()
	require.NoError(t, err)
	source, err := gotool.Checkout()
	require.NoError(t, err)
	r, err := loadRecipes()
	require.NoError(t, err)
	for arch, cc := range map[string]string{"amd64": "x86_64-linux-gnu-gcc", "arm64": "aarch64-linux-gnu-gcc"} {
		all, _, err := r.commands(t.Context(), source, l, arch, []string{slipway})
		require.NoError(t, err)
		system := "linux/" + arch
		if arch == runtime.GOARCH {
			system, cc = "", ""
		}
		var withC []string
		for _, c := range all {
			require.Equal(t, system, c.System, c.Name)
			require.Equal(t, cc, c.CC, c.Name)
			if c.CGO {
				withC = append(withC, c.Name)
			}
		}
		require.Equal(t, []string{gotool.Runc, "dex"}, withC)
	}
}

// What an upstream reference names is in the bundle if an image of the lock stands for it, and added
// to it otherwise.
func TestReferencesOfAPlatform(t *testing.T) {
	l, err := lock.Load()
	require.NoError(t, err)
	at := slices.IndexFunc(l.Images, func(i lock.Image) bool { return i.Name == "dex" })
	l.Images[at].StandsFor = []string{"ghcr.io/dexidp/dex:v2.44.0"}
	dir := t.TempDir()
	text := "components: [{name: a, images: [\"ghcr.io/dexidp/dex:v2.44.0\", \"nginx:1.29\", quay.io/team/web]}]\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "platform.yaml"), []byte(text), 0o600))
	names, manifests, err := namedBy(dir, l)
	require.NoError(t, err)
	require.Equal(t, []string{"dex"}, names)
	require.Empty(t, manifests)
}

// Manifests on demand are in the bundle of a release that has a component of them.
func TestManifestsOnDemandAreForWhoNamesThem(t *testing.T) {
	manifests := func(dirs ...string) (names []string) {
		t.Helper()
		l, err := lock.Load()
		require.NoError(t, err)
		_, err = choice{platforms: dirs}.choose(l)
		require.NoError(t, err)
		for _, m := range l.Manifests {
			names = append(names, m.Name)
		}
		return names
	}
	require.Equal(t, []string{"argocd"}, manifests())
	dir := t.TempDir()
	text := "components: [{name: a, kind: manifests, bundle: cert-manager}, {name: c, kind: manifests, bundle: nowhere}]\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "platform.yaml"), []byte(text), 0o600))
	require.Equal(t, []string{"cert-manager"}, manifests(dir))
}

func TestPlatformsThatNoBundleCanBeFor(t *testing.T) {
	l, err := lock.Load()
	require.NoError(t, err)
	dir := t.TempDir()
	_, err = choice{platforms: []string{dir}}.choose(l)
	e, ok := errors.AsType[*fault.Fault](err)
	require.True(t, ok)
	require.EqualValues(t, codePlatform, e.Code)
	require.ErrorIs(t, err, os.ErrNotExist)

	text := "components: [{name: a, images: [dex, left-pad]}, {name: b, images: [left-pad, yodeler]}]\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "platform.yaml"), []byte(text), 0o600))
	_, err = choice{platforms: []string{dir}}.choose(l)
	e, ok = errors.AsType[*fault.Fault](err)
	require.True(t, ok)
	require.EqualValues(t, codePlatform, e.Code)
	require.ErrorContains(t, err, "the lock does not have: left-pad, yodeler")
}
