package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/dev/build"
	"github.com/slipway-sh/slipway/ci/dev/build/debian"
	"github.com/slipway-sh/slipway/ci/dev/build/gotool"
	"github.com/slipway-sh/slipway/ci/dev/build/oci"
	"github.com/slipway-sh/slipway/ci/dev/bundle/rootfs"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/fault"
)

// sample has a builder on an empty store, and the parts of a small bundle.
func sample(t *testing.T) (*builder, []part, []bundle.Image) {
	t.Helper()
	st, err := build.OpenStore(t.TempDir())
	require.NoError(t, err)
	pins, err := lock.Load()
	require.NoError(t, err)
	b := &builder{arch: runtime.GOARCH, lock: pins, sources: "sha256:" + strings.Repeat("5", 64), store: st, report: build.NewReporter(io.Discard, 0), added: bundle.Additions(t.TempDir())}
	tool := filepath.Join(st.Path(), "objects", "helm")
	require.NoError(t, os.WriteFile(tool, []byte("helm"), 0o755))
	layer, err := oci.WriteLayer(t.Context(), t.TempDir(), nil, []oci.File{{Path: "pause", Mode: 0o755, Data: []byte("pause")}})
	require.NoError(t, err)
	image, err := oci.NewImage(oci.Config{Arch: runtime.GOARCH}, layer)
	require.NoError(t, err)
	digest, err := image.Digest()
	require.NoError(t, err)
	ref := bundle.Host + "/pause:1"
	return b, []part{
		{source: tool, mode: 0o755, File: bundle.File{Path: "bin/helm", Name: "helm", Kind: bundle.Tool, Version: "1", Origin: "source"}},
		{images: []oci.Named{{Ref: ref, Image: image}}, mode: 0o644, File: bundle.File{
			Path: bundle.WorkloadArchive, Name: "workloads", Kind: bundle.Images, Version: "1", Origin: "images",
		}},
	}, []bundle.Image{{Name: "pause", Ref: ref, Digest: digest.String()}}
}

func TestABundleIsPlacedOnce(t *testing.T) {
	b, parts, images := sample(t)
	dir, built, hit, err := b.place(t.Context(), parts, images)
	require.NoError(t, err)
	require.False(t, hit)
	verify(t, dir)
	current := filepath.Join(b.store.Path(), "bundle", "current")
	target, err := filepath.EvalSymlinks(current)
	require.NoError(t, err)
	require.Equal(t, dir, target)
	read, err := bundle.Read(dir)
	require.NoError(t, err)
	digest, err := read.Digest()
	require.NoError(t, err)
	require.Equal(t, strings.TrimPrefix(digest, "sha256:"), filepath.Base(dir))
	require.Equal(t, digest, built)

	again, _, hit, err := b.place(t.Context(), parts, images)
	require.NoError(t, err)
	require.True(t, hit)
	require.Equal(t, dir, again)

	left, err := filepath.Glob(filepath.Join(b.store.Path(), "bundle", ".building-*"))
	require.NoError(t, err)
	require.Empty(t, left)

	// What is in its folder does not vouch for itself.
	forge(t, dir, func(x *bundle.Index) { x.Files[0].Version = "2" })
	forged, vouched, _, err := b.place(t.Context(), parts, images)
	require.NoError(t, err)
	require.Equal(t, dir, forged)
	require.Equal(t, built, vouched)
	require.NoError(t, os.RemoveAll(dir))
	again, _, hit, err = b.place(t.Context(), parts, images)
	require.NoError(t, err)
	require.False(t, hit)
	verify(t, again)
}

// forge changes a bundle's index and gives its digest.
func forge(t *testing.T, dir string, change func(*bundle.Index)) string {
	t.Helper()
	b, err := bundle.Read(dir)
	require.NoError(t, err)
	change(&b.Index)
	text, err := b.Marshal()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, bundle.IndexFile), text, 0o644))
	b, err = bundle.Parse(text)
	require.NoError(t, err)
	return b.ReadDigest()
}

// TestABundleWithAddedImagesStays: what was added is in no other.
func TestABundleWithAddedImagesStays(t *testing.T) {
	b, parts, images := sample(t)
	dir, built, _, err := b.place(t.Context(), parts, images)
	require.NoError(t, err)
	archive := bundle.AddedDir + "/" + strings.Repeat("1", 64) + ".tar"
	require.NoError(t, os.MkdirAll(filepath.Join(dir, bundle.AddedDir), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, archive), []byte("image"), 0o644))
	sum, err := bundle.Sum(t.Context(), filepath.Join(dir, archive))
	require.NoError(t, err)
	digest := forge(t, dir, func(x *bundle.Index) {
		x.Files = append(x.Files, bundle.File{Path: archive, Name: "web", Kind: bundle.Images, Version: "1", Origin: "archive", SHA256: sum, Size: 5})
		x.Images = append(x.Images, bundle.Image{
			Name: "quay.io/web:1", Ref: "quay.io/web@sha256:" + strings.Repeat("1", 64), Digest: "sha256:" + strings.Repeat("1", 64),
			Archive: archive, StandsFor: []string{"quay.io/web:1", "quay.io/web:2"},
		})
	})

	_, vouched, _, err := b.place(t.Context(), parts, images)
	require.NoError(t, err)
	require.Equal(t, built, vouched, "no slipway bundle add of this user's made the other")
	require.NoError(t, b.added.Keep(built, digest))
	_, vouched, hit, err := b.place(t.Context(), parts, images)
	require.NoError(t, err)
	require.True(t, hit)
	require.Equal(t, digest, vouched)
	require.FileExists(t, filepath.Join(dir, archive))
}

func TestOnlyTheNewestBundlesStay(t *testing.T) {
	b, parts, images := sample(t)
	last := ""
	week := time.Now().Add(-retention - time.Hour)
	for range 5 {
		parts[0].Version += "1"
		dir, _, _, err := b.place(t.Context(), parts, images)
		require.NoError(t, err)
		last = dir
		require.NoError(t, os.Chtimes(dir, week, week))
	}
	entries, err := os.ReadDir(filepath.Dir(last))
	require.NoError(t, err)
	require.Len(t, entries, 1+1) // and "current"
	require.DirExists(t, last)

	// One of another architecture is nothing for this machine, and takes nothing from it.
	b.arch = "s390x"
	if _, _, _, err = b.place(t.Context(), parts, images); err == nil {
		t.Fatal("an index has no such platform")
	}
	b.arch = "arm64"
	if runtime.GOARCH == b.arch {
		b.arch = "amd64"
	}
	other, _, _, err := b.place(t.Context(), parts, images)
	require.NoError(t, err)
	read, err := bundle.Read(other)
	require.NoError(t, err)
	require.Equal(t, "linux/"+b.arch, read.Platform)
	target, err := filepath.EvalSymlinks(filepath.Join(filepath.Dir(last), "current"))
	require.NoError(t, err)
	require.Equal(t, last, target)
	require.DirExists(t, last, "though it is old")
}

func TestAFileThatIsNotWhatTheLockSaysStopsTheBuild(t *testing.T) {
	b, parts, images := sample(t)
	parts[0].SHA256 = strings.Repeat("0", 64)
	_, _, _, err := b.place(t.Context(), parts, images)
	require.ErrorContains(t, err, "write bin/helm: its sha256 is")
	_, err = os.Lstat(filepath.Join(b.store.Path(), "bundle", "current"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestABundleSaysWhatItIsMadeOf: with the modules of its programs, and the same of the same.
func TestABundleSaysWhatItIsMadeOf(t *testing.T) {
	b, parts, images := sample(t)
	self, err := os.Executable() // a Go program
	require.NoError(t, err)
	b.built = map[string]string{"pause": self}
	root := t.TempDir()
	var all [][]byte
	for range 2 {
		dir, err := b.assemble(t.Context(), root, parts, images)
		require.NoError(t, err)
		verify(t, dir)
		for _, name := range []string{bundle.SBOMFile, bundle.ProvenanceFile, bundle.IndexFile} {
			text, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(t, err)
			all = append(all, text)
		}
	}
	require.Equal(t, all[:3], all[3:])
	for _, says := range []string{`"bomFormat": "CycloneDX"`, `"slipway-bundle"`, `"image/pause|github.com/klauspost/compress"`, b.sources} {
		require.Contains(t, string(all[0]), says)
	}
	require.NotContains(t, string(all[0]), "timestamp")
	require.NotContains(t, string(all[0]), "../..", "the repository itself")
	for _, says := range []string{bundle.SumOf(all[0]), strings.Repeat("5", 64), `"go1.`, `"linux/` + runtime.GOARCH + `"`} {
		require.Contains(t, string(all[1]), says)
	}
	b.built["pause"] = parts[0].source
	_, err = b.assemble(t.Context(), root, parts, images)
	require.ErrorContains(t, err, "read what pause was built from")
	left, err := filepath.Glob(filepath.Join(root, "*"))
	require.NoError(t, err)
	require.Len(t, left, 2, "nothing is left of it")
}

// TestTheLockAndTheModulesAgree: the modules that the commands are built in have the versions and
// sums of the lock.
func TestTheLockAndTheModulesAgree(t *testing.T) {
	l, err := lock.Load()
	require.NoError(t, err)
	source, err := gotool.Checkout()
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(source, "ci/dev/bundle/tools/*/go.sum"))
	require.NoError(t, err)
	var sums []string
	for _, name := range append(files, filepath.Join(source, "containers/node/go.sum")) {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		sums = append(sums, strings.Split(string(text), "\n")...)
	}
	var modules []lock.Module
	for _, tool := range l.Tools {
		modules = append(modules, tool.Modules...)
	}
	for _, i := range l.Images {
		modules = append(modules, i.Modules...)
	}
	for _, m := range l.Manifests {
		modules = append(modules, m.Modules...)
	}
	for _, m := range modules {
		require.Contains(t, sums, m.Path+" "+m.Version+" "+m.Sum)
	}
}

func TestEveryImageOfTheLockHasALayerOfItsPackages(t *testing.T) {
	l, err := lock.Load()
	require.NoError(t, err)
	r, err := loadRecipes()
	require.NoError(t, err)
	layers := map[string]addition{}
	for _, a := range r.additions(l) {
		layers[a.Name] = a
	}
	for image, layer := range map[string]string{
		"toolchain": "git", "gitea": "git", "argocd": "argocd", "node": "node", "postgresql": "postgresql",
		"redis": "redis", "busybox": "busybox",
	} {
		locked, ok := l.Image(image)
		require.True(t, ok)
		var have []string
		for at := layer; at != "base"; at = layers[at].on {
			have = append(have, layers[at].Packages...)
		}
		require.Subset(t, have, locked.Debian, image)
	}
}

func TestAFailedBuildNamesItsLog(t *testing.T) {
	b, _, _ := sample(t)
	err := b.failure(t.Context(), "gitea", errors.New("build gitea: exit status 1\n"+strings.Repeat("noise\n", 50)+"cc: not found"))
	e, ok := errors.AsType[*fault.Fault](err)
	require.True(t, ok)
	require.EqualValues(t, codeBuild, e.Code)
	log := filepath.Join(b.store.Path(), "logs", "bundle-gitea.log")
	require.Contains(t, e.Fix, log)
	require.ErrorContains(t, err, "cc: not found")
	require.Less(t, strings.Count(err.Error(), "noise"), 20)
	text, readErr := os.ReadFile(log)
	require.NoError(t, readErr)
	require.Equal(t, 50, strings.Count(string(text), "noise"))
}

// TestTheFirstFailureStopsTheOthers builds a part that does not compile beside one that does, and
// others after them.
func TestTheFirstFailureStopsTheOthers(t *testing.T) {
	b, _, _ := sample(t)
	b.built, b.layers = map[string]string{}, map[string]*rootfs.Layer{}
	var out strings.Builder
	b.report = build.NewReporter(&out, 0)
	module := func(text string) string {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/tool\n\ngo 1.24\n"), 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(text), 0o644))
		return dir
	}
	broken := module("package main\n\nfunc main() { missing() }\n")
	commands := []gotool.Command{
		{Name: "broken", Module: broken, Package: "."},
		{Name: "next", Module: broken, Package: "./next"},
	}
	err := b.programs(t.Context(), commands)
	e, ok := errors.AsType[*fault.Fault](err)
	require.True(t, ok, err)
	require.EqualValues(t, codeBuild, e.Code)
	require.ErrorContains(t, err, "build the bundle's broken: ")
	require.ErrorContains(t, err, "undefined: missing")
	require.Contains(t, e.Fix, "bundle-broken.log")
	require.NotContains(t, out.String(), "next")

	stopped, stop := context.WithCancel(t.Context())
	stop()
	require.Equal(t, context.Canceled, b.programs(stopped, commands), "no part failed")
}

func TestWhoMayBuildABundle(t *testing.T) {
	require.NoError(t, mayBuild("linux", 0))
	for _, err := range []error{mayBuild("darwin", 0), mayBuild("linux", 1000)} {
		e, ok := errors.AsType[*fault.Fault](err)
		require.True(t, ok)
		require.EqualValues(t, codeMachine, e.Code)
		require.Contains(t, e.Fix, "sudo make bundle")
	}
}

func TestAnotherDebianCannotBuildTheBundle(t *testing.T) {
	l := &lock.Lock{Suite: "bookworm"}
	require.NoError(t, sameSuite(debian.Release{Codename: "bookworm"}, l))
	err := sameSuite(debian.Release{Codename: "trixie"}, l)
	e, ok := errors.AsType[*fault.Fault](err)
	require.True(t, ok)
	require.EqualValues(t, codeMachine, e.Code)
	require.ErrorContains(t, err, "this machine's packages are for trixie, the lock says bookworm")
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"bake"}, {"build", "extra"}, {"build", "--nope"}, {"build", "--arch", "s390x"}, {"pin", "--arch", "mips"}} {
		var output bytes.Buffer
		require.Equal(t, 2, run(args, io.Discard, &output), args)
		require.Contains(t, output.String(), "usage:")
	}
	var help bytes.Buffer
	require.Zero(t, run([]string{"help"}, &help, io.Discard))
	require.Contains(t, help.String(), "outdated")
}

func TestWhatManifestsNameIsStoodFor(t *testing.T) {
	l, err := lock.Load()
	require.NoError(t, err)
	b := &builder{lock: l}
	require.NoError(t, b.stoodFor([]byte("      - image: quay.io/argoproj/argocd:v3.6.1\n        image: \"public.ecr.aws/docker/library/redis:8.10.1-alpine\"\n# image of\n")))
	err = b.stoodFor([]byte("  image: quay.io/argoproj/argocd:v9\n- image: Nonsense\n"))
	require.ErrorContains(t, err, "it names quay.io/argoproj/argocd:v9, which is in standsFor of no image")
	require.ErrorContains(t, err, `"Nonsense" is no reference`)
}

// verify verifies the bundle in dir.
func verify(t *testing.T, dir string) {
	t.Helper()
	b, err := bundle.Read(dir)
	require.NoError(t, err)
	require.NoError(t, b.Verify(t.Context()))
}
