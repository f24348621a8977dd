package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/containers/ociarchive"
)

// anyChart runs images as charts of others name them: by a tag of the hub's, asked for
// anew each time; by the digest of an index of several platforms; and in a hook.
const anyChart = `
apiVersion: batch/v1
kind: Job
metadata: {name: prepare, annotations: {helm.sh/hook: pre-install, helm.sh/hook-delete-policy: before-hook-creation}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: "{{ .Values.hook }}", command: ["true"]}]}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {terminationGracePeriodSeconds: 0, containers: [{name: web, image: "{{ .Values.image }}", imagePullPolicy: Always, command: [sleep, "3600"]}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: tool}
spec:
  selector: {matchLabels: {app: tool}}
  template:
    metadata: {labels: {app: tool}}
    spec: {terminationGracePeriodSeconds: 0, containers: [{name: tool, image: "registry.k8s.io/e2e/tool:v1@{{ .Values.digest }}", imagePullPolicy: Always, command: [sleep, "3600"]}]}
`

// TestImagesOfAnyChart installs an unchanged chart whose images no registry that can be
// reached has: from a bundle that they were added to, and from a registry that this was
// pushed to.
func TestImagesOfAnyChart(t *testing.T) {
	takesLong(t)
	inTurn(t)
	d := open(t, "e2e-images")
	original := d.Bundle
	shop := newAnyRelease(t, original)
	release, digest := shop.release, shop.digest
	const port = "apiPort: 6643"
	k := &kept{deployment: d, config: write(t, configured+"local: {"+port+"}\n")}
	k.must(t, "cluster", "--stop") // whatever an earlier run of the tests left
	k.must(t, "destroy", "--yes", "--ignore-not-found")
	t.Cleanup(func() { _ = finish(t, d.CLI(context.Background(), "cluster", "--stop")) })

	t.Run("what is missing is named before anything starts", func(t *testing.T) {
		got := k.cli(t, "install", "--platform", release)
		require.Equal(t, 3, got.code, slipway.Tail(got.err))
		for _, says := range []string{"IMG-001", "component shop (", "/charts/shop/templates/a.yaml", "e2e-web:1.0", "quay.io/e2e/hook:1", "registry.k8s.io/e2e/tool:v1@" + digest.String()} {
			require.Contains(t, got.err, says)
		}
		require.NotContains(t, got.err, "infrastructure/", "no step started")
	})

	k.Bundle, k.Config = linked(t, original), t.TempDir() // which remembers what was added
	add := append([]string{"bundle", "add", k.Bundle}, shop.images...)
	require.Contains(t, k.tool(t, add...), "added")
	require.Regexp(t, `e2e/tool@sha256:\S+ there already`, k.tool(t, add...))
	require.Contains(t, k.tool(t, "bundle", "verify", k.Bundle), "with what you have added to it")
	require.Contains(t, k.tool(t, "bundle", "list", k.Bundle), "docker.io/library/e2e-web:1.0")

	const images = `kubectl get pods -n shop -o 'jsonpath={range .items[*]}{.metadata.labels.app} {.spec.containers[0].image} {.status.phase}{"\n"}{end}'`
	runs := func(t *testing.T, k *kept) {
		t.Helper()
		got := k.shell(t, images)
		require.Regexp(t, `(?m)^web e2e-web:1\.0 Running$`, got, "as the chart has it")
		require.Regexp(t, `(?m)^tool registry\.k8s\.io/e2e/tool:v1@`+digest.String()+` Running$`, got)
	}
	t.Run("from a bundle", func(t *testing.T) {
		k.must(t, "install", "--keep-cluster", "--platform", release)
		runs(t, k)
		// Each new pod asks for its image anew.
		k.shell(t, "kubectl delete pods -n shop --all --wait --timeout 60s && kubectl rollout status -n shop deployment/web deployment/tool --timeout 60s")
		runs(t, k)
		r := k.must(t, "install", "--platform", release)
		require.Regexp(t, `(?m)^\s*orchestrator/shop\s+reused`, r.out)
		stranger := *k
		stranger.Config = ""
		r = stranger.cli(t, "status")
		require.Equal(t, 3, r.code, r.out)
		require.Contains(t, r.err, "BUN-007", "nobody else has added it")
		k.must(t, "destroy", "--yes")
	})

	t.Run("from a registry", func(t *testing.T) {
		r := startRegistry(t)
		to := r.loopback + "/team/slipway"
		lock := filepath.Join(t.TempDir(), "slipway.lock.json")
		k.tool(t, "bundle", "push", k.Bundle, to, "--out", lock)
		k := k.with(write(t, fmt.Sprintf(configured+"advanced: {registry: %q}\nlocal: {registryMirror: \"http://%s/team/slipway\", %s}\n", to, r.bridge, port)))
		k.Lock = lock
		before := time.Now()
		k.must(t, "install", "--keep-cluster", "--platform", release)
		runs(t, k)
		pulled := strings.Join(r.pulled(before), "\n")
		for _, path := range []string{"docker.io-library-e2e-web/manifests/", "quay.io-e2e-hook/manifests/", "registry.k8s.io-e2e-tool/blobs/" + digest.String()} {
			require.Contains(t, pulled, "/v2/team/slipway/"+path)
		}
		k.must(t, "destroy", "--yes")
	})
}

// anyRelease is a release of anyChart, with the digest of its index, and the options of
// `bundle add` that add its images.
type anyRelease struct {
	release string
	digest  v1.Hash
	images  []string
}

func newAnyRelease(t *testing.T, dir string) anyRelease {
	t.Helper()
	web, hook, index := worldly(t, dir)
	digest, err := index.Digest()
	require.NoError(t, err)
	release := t.TempDir()
	for file, text := range map[string]string{
		"platform.yaml":                "apiVersion: slipway/v2\nname: shop\nversion: 1.0.0\nnamespaces: [{name: shop}]\ncomponents: [{name: shop, kind: chart, path: charts/shop, namespace: shop}]\n",
		"charts/shop/Chart.yaml":       "{apiVersion: v2, name: shop, version: 1.0.0}\n",
		"charts/shop/values.yaml":      fmt.Sprintf("image: e2e-web:1.0\nhook: quay.io/e2e/hook:1\ndigest: %s\n", digest),
		"charts/shop/templates/a.yaml": anyChart,
	} {
		require.NoError(t, os.MkdirAll(filepath.Join(release, filepath.Dir(file)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(release, file), []byte(text), 0o644))
	}
	layout := newLayout(t)
	require.NoError(t, layout.AppendIndex(index))
	return anyRelease{release, digest, []string{
		"e2e-web:1.0=" + web, "quay.io/e2e/hook:1=" + hook,
		"registry.k8s.io/e2e/tool:v1@" + digest.String() + "=" + string(layout),
	}}
}

// imagesThere has anyChart on an existing cluster, whose nodes know nothing of its
// images' registries: they are pulled from the one that base names. What a hook of a chart runs
// has to be named there.
func (k *kept) imagesThere(t *testing.T, r *testRegistry, base string) {
	shop, there := newAnyRelease(t, k.Bundle), *k
	there.Bundle, there.Config, there.Name = linked(t, k.Bundle), t.TempDir(), "e2e-images-host"
	there.config = write(t, configured+base)
	there.forget(t)
	before := k.everything(t)
	there.Lock = filepath.Join(t.TempDir(), "slipway.lock.json")
	there.tool(t, append([]string{"bundle", "add", there.Bundle}, shop.images...)...)
	there.tool(t, "bundle", "push", there.Bundle, r.loopback+"/team/slipway", "--out", there.Lock)
	refused := there.cli(t, "install", "--platform", shop.release)
	require.Equal(t, 3, refused.code, slipway.Tail(refused.err))
	require.Contains(t, refused.err, "IMG-008")
	require.Contains(t, refused.err, "quay.io/e2e/hook:1")
	require.NotContains(t, refused.err, "e2e-web", "it is rewritten")

	b, err := bundle.Read(there.Bundle)
	require.NoError(t, err)
	pushed, _, err := lock.Read(there.Lock)
	require.NoError(t, err)
	in := map[string]string{}
	for _, i := range pushed.Bundles[b.Platform].Index.Images {
		in[i.Repository()] = r.bridge + "/team/slipway/" + i.Repository() + "@" + i.Digest
	}
	hook := in["quay.io-e2e-hook"]
	require.NotEmpty(t, hook)
	named := there.with(write(t, configured+base+"platform: {components: {shop: {values: {hook: \""+hook+"\"}}}}\n"))
	named.must(t, "install", "--platform", shop.release)
	got := named.kubectl(t, "get", "pods", "-n", "shop", "-o", `jsonpath={range .items[*]}{.metadata.labels.app} {.spec.containers[0].image} {.status.phase}{"\n"}{end}`)
	require.Contains(t, got, "web "+in["docker.io-library-e2e-web"]+" Running\n")
	require.Contains(t, got, "tool "+in["registry.k8s.io-e2e-tool"]+" Running\n")
	require.Regexp(t, `(?m)^\s*orchestrator/shop\s+reused`, named.must(t, "install", "--platform", shop.release).out)
	named.must(t, "destroy", "--yes")
	k.requireAgain(t, before)
}

// worldly makes of the bundle's busybox images that no bundle has: two in archives of
// docker save, and one in an index of two platforms.
func worldly(t *testing.T, dir string) (web, hook string, index v1.ImageIndex) {
	t.Helper()
	b, err := bundle.Read(dir)
	require.NoError(t, err)
	a, err := ociarchive.Open(b.Path(bundle.WorkloadArchive))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	var image v1.Image
	for _, i := range b.Index.Images {
		if i.Name == "busybox" {
			image, err = a.Image(i.Ref, i.Digest)
			require.NoError(t, err)
		}
	}
	require.NotNil(t, image)
	of := func(image v1.Image, system, arch, label string) v1.Image {
		config, err := image.ConfigFile()
		require.NoError(t, err)
		config = config.DeepCopy()
		config.OS, config.Architecture = system, arch
		config.Config.Labels = map[string]string{"e2e": label}
		image, err = mutate.ConfigFile(image, config)
		require.NoError(t, err)
		return image
	}
	system, arch, _ := strings.Cut(b.Platform, "/")
	archived := func(ref, label string) string {
		tag, err := name.NewTag(ref)
		require.NoError(t, err)
		archive := filepath.Join(t.TempDir(), label+".tar")
		require.NoError(t, tarball.WriteToFile(archive, tag, of(image, system, arch, label)))
		return archive
	}
	foreign, err := random.Image(100, 1)
	require.NoError(t, err)
	index = empty.Index
	for arch, i := range map[string]v1.Image{arch: of(image, system, arch, "tool"), "s390x": of(foreign, "linux", "s390x", "foreign")} {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: i, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
	}
	return archived("e2e-web:1.0", "web"), archived("quay.io/e2e/hook:1", "hook"), index
}

// newLayout is an OCI layout without images.
func newLayout(t *testing.T) layout.Path {
	t.Helper()
	path, err := layout.Write(filepath.Join(t.TempDir(), "layout"), empty.Index)
	require.NoError(t, err)
	return path
}

// copies are the folders of bundles that tests change.
const copies = ".e2e-images-*"

// linked is a copy of a bundle whose files are links to the original's: nothing that is
// there is ever written to. Copies that tests left when they were killed go.
func linked(t *testing.T, from string) string {
	t.Helper()
	from, err := filepath.EvalSymlinks(from)
	require.NoError(t, err)
	store := filepath.Dir(from) // on the same disk
	left, err := filepath.Glob(filepath.Join(store, copies))
	require.NoError(t, err)
	for _, dir := range left {
		if info, err := os.Stat(dir); err == nil && time.Since(info.ModTime()) > 3*callLimit { // else it is another test's that runs
			require.NoError(t, os.RemoveAll(dir))
		}
	}
	to, err := os.MkdirTemp(store, copies)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(to)) })
	require.NoError(t, filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if entry.IsDir() {
			return errors.Join(os.MkdirAll(target, 0o755), os.Chmod(target, 0o755))
		}
		return os.Link(path, target)
	}))
	return to
}
