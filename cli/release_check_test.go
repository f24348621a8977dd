package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
)

// wholeBundle is a bundle for linux/amd64 with every image of the lock, by name.
func wholeBundle(t *testing.T) string {
	t.Helper()
	pins, err := lock.Load()
	require.NoError(t, err)
	dir := t.TempDir()
	index := bundle.Index{Version: bundle.Format, Platform: "linux/amd64"}
	for _, i := range pins.Images {
		index.Images = append(index.Images, bundle.Image{
			Name: i.Name, Ref: bundle.Host + "/" + i.Name + ":" + i.Version, Digest: "sha256:" + strings.Repeat("a", 64), StandsFor: i.StandsFor,
		})
	}
	for path, text := range map[string]string{
		bundle.WorkloadArchive: "images",
		"manifests/argocd/install.yaml": "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {spec: {containers: [{name: a, image: 'quay.io/argoproj/argocd:v3.6.1'}]}}}}\n" +
			// What the reference platform takes out of them.
			"---\n{apiVersion: apps/v1, kind: Deployment, metadata: {name: argocd-repo-server}, spec: {template: {spec: {initContainers: [{name: copyutil}]}}}}\n" +
			"---\n{apiVersion: apps/v1, kind: Deployment, metadata: {name: argocd-redis}, spec: {template: {spec: {initContainers: [{name: secret-init}]}}}}\n",
	} {
		sum := sha256.Sum256([]byte(text))
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(path)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, path), []byte(text), 0o644))
		index.Files = append(index.Files, bundle.File{Path: path, Name: "x", Kind: bundle.Images, Version: "1", Origin: "x", SHA256: hex.EncodeToString(sum[:]), Size: int64(len(text))})
	}
	text, err := index.Marshal()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, bundle.IndexFile), text, 0o644))
	return dir
}

// shop is a platform release of one chart that runs these images.
func shop(t *testing.T, images ...string) string {
	t.Helper()
	dir := t.TempDir()
	var containers []string
	for _, i := range images {
		containers = append(containers, fmt.Sprintf("{name: c%d, image: '%s'}", len(containers), i))
	}
	for name, text := range map[string]string{
		"platform.yaml":               "apiVersion: slipway/v2\nname: shop\nversion: 1.0.0\nnamespaces: [{name: shop}]\ncomponents: [{name: web, kind: chart, path: charts/web, namespace: shop}]\n",
		"charts/web/Chart.yaml":       "{apiVersion: v2, name: web, version: 1.0.0}",
		"charts/web/templates/a.yaml": "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {spec: {containers: [" + strings.Join(containers, ", ") + "]}}}}",
	} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	return dir
}

// served pushes the image of an OCI layout to a registry of this process.
func served(t *testing.T, from string) (host string) {
	t.Helper()
	s := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(s.Close)
	host = strings.TrimPrefix(s.URL, "http://")
	path, err := layout.FromPath(from)
	require.NoError(t, err)
	index, err := path.ImageIndex()
	require.NoError(t, err)
	m, err := index.IndexManifest()
	require.NoError(t, err)
	var image v1.Image
	image, err = index.Image(m.Manifests[0].Digest)
	require.NoError(t, err)
	ref, err := name.ParseReference(host + "/team/web:1")
	require.NoError(t, err)
	require.NoError(t, remote.Write(ref, image))
	return host
}

// TestImagesThatAreMissing are named before anything starts, and can all be added at once.
func TestImagesThatAreMissing(t *testing.T) {
	t.Setenv("SLIPWAY_BUNDLE", "")
	t.Setenv("SLIPWAY_LOCK", "")
	dir := wholeBundle(t)
	code, out, errs := slipway("validate", "--bundle", dir)
	require.Zero(t, code, "the reference platform's are there: %s", errs)
	require.Contains(t, out, "valid: ")

	host := served(t, webLayout(t))
	release := shop(t, host+"/team/web:1", "quay.io/argoproj/argocd:v3.6.1")
	missing := "component web (" + filepath.Join(release, "charts/web/templates/a.yaml") + ", line 1): " + host + "/team/web:1"
	code, _, errs = slipway("validate", "--bundle", dir, "--platform", release)
	require.Equal(t, 3, code, errs)
	for _, says := range []string{"IMG-001", missing, "of shop 1.0.0 in the bundle", "slipway bundle add " + dir + "; ", dir + " REF=FILE", "(with the same flags: --platform " + release + ")"} {
		require.Contains(t, errs, says)
	}
	require.NotContains(t, errs, "argocd", "which an image of the bundle stands for")

	code, _, errs = slipway("validate", "--lock", lockFile(t, "registry.example.com/team"), "--platform", release)
	require.Equal(t, 3, code, errs)
	for _, says := range []string{"IMG-001", missing, "in the registry", "slipway bundle add DIR (", "push DIR registry.example.com/team"} {
		require.Contains(t, errs, says)
	}
	code, _, errs = slipway("validate", "--lock", lockFile(t, "registry.example.com/team"))
	require.Zero(t, code, errs)

	code, _, errs = slipway("validate", "--bundle", dir, "--platform", release, "--config", configFile(t, "apiVersion: slipway.sh/v1\nadvanced: {missingImages: pull}\n"))
	require.Zero(t, code, errs)
	require.Contains(t, errs, "the cluster has to pull these itself:\n"+missing)
	code, _, errs = slipway("validate", "--config", configFile(t, "apiVersion: slipway.sh/v1\nadvanced: {missingImages: never}\n"))
	require.Equal(t, 2, code)
	require.Contains(t, errs, "advanced.missingImages")

	code, _, errs = slipway("bundle", "add", dir, "--platform", release)
	require.Zero(t, code, errs)
	require.Contains(t, errs, host+"/team/web:1 added")
	code, _, errs = slipway("validate", "--bundle", dir, "--platform", release)
	require.Zero(t, code, errs)
	code, out, errs = slipway("bundle", "add", dir, "--platform", release)
	require.Zero(t, code, errs)
	require.Contains(t, out, "nothing is missing in "+dir)
}

// What only a cluster knows keeps nothing else from being found, and is told.
func TestImagesThatAreNotKnownBefore(t *testing.T) {
	dir := wholeBundle(t)
	release := shop(t, `{{ (lookup "v1" "ConfigMap" "shop" "images").data.web }}`, "quay.io/argoproj/argocd:v3.6.1")
	code, _, errs := slipway("validate", "--bundle", dir, "--platform", release)
	require.Zero(t, code, errs)
	require.Contains(t, errs, "the images of web are not known before the install: ")
	withoutImages(t)
	code, _, errs = slipway("validate", "--platform", release)
	require.Zero(t, code, errs)
	require.Contains(t, errs, "what comes with web is not known before the install: ")
}

// TestAnImageWithTheLastNameOfAShortOne is another one.
func TestAnImageWithTheLastNameOfAShortOne(t *testing.T) {
	release := shop(t, "redis", "docker.io/bitnami/redis:8.2", "public.ecr.aws/docker/library/redis:8.10.1-alpine")
	file := filepath.Join(release, "platform.yaml")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), "namespace: shop}", "namespace: shop, images: [redis]}", 1)), 0o644))
	code, _, errs := slipway("validate", "--bundle", wholeBundle(t), "--platform", release)
	require.Equal(t, 3, code, errs)
	require.Contains(t, errs, "component web ("+filepath.Join(release, "charts/web/templates/a.yaml")+", line ")
	require.Contains(t, errs, "): docker.io/bitnami/redis:8.2\n")
	require.NotContains(t, errs, "public.ecr.aws", "which the bundle's redis stands for")
}

// TestImagesThatOnlyAnotherBundleHas are named all at once.
func TestImagesThatOnlyAnotherBundleHas(t *testing.T) {
	dir := wholeBundle(t)
	release := shop(t, "docker.io/library/nginx:1")
	text, err := os.ReadFile(filepath.Join(release, "platform.yaml"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(release, "platform.yaml"), []byte(strings.Replace(string(text), "namespace: shop}", "namespace: shop, images: [busybox, unknown, another, 'busybox:latest']}", 1)), 0o644))
	code, _, errs := slipway("validate", "--bundle", dir, "--platform", release)
	require.Equal(t, 3, code, errs)
	require.Contains(t, errs, "4 images are not there")
	require.Contains(t, errs, "component web ("+filepath.Join(release, "platform.yaml")+", line 5): unknown\n")
	require.Contains(t, errs, "component web ("+filepath.Join(release, "platform.yaml")+", line 5): docker.io/library/busybox:latest\n", "not the bundle's busybox")
	require.Contains(t, errs, "make bundle PLATFORM=DIR; then add the others to it: slipway bundle add BUNDLE; or name", "one short name is enough")
	code, _, errs = slipway("bundle", "add", dir, "--platform", release)
	require.Equal(t, 2, code, errs)
	require.Contains(t, errs, fmt.Sprintf("component web (%s, line 5) runs the image another of the bundle\ncomponent web (%[1]s, line 5) runs the image unknown of the bundle, which only another bundle can have", filepath.Join(release, "platform.yaml")))
}
