package e2e

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/slipway-sh/slipway/ci/test/slipway"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
)

// podinfo is the commit of its tag 6.9.2, which is no version of a Go module of that path.
// `go mod download -json github.com/stefanprodan/podinfo@COMMIT` prints both of a newer one.
var podinfo = lock.Module{
	Path:    "github.com/stefanprodan/podinfo",
	Version: "v1.8.1-0.20250910200901-e86405a8674e",
	Sum:     "h1:ikpMMm5HbQT/1DehrPM+Lpwk3WAw/1Hg540eR+jsXus=",
}

// notes is a component that writes a line to a volume of local-path-provisioner's each time
// it starts.
const notes = `components: [{name: notes, kind: manifests, path: manifests/notes.yaml, namespace: storage, after: [local-path-provisioner], images: [busybox]}]`

const notesYAML = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: notes}
spec: {storageClassName: others, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: notes}
spec:
  selector: {matchLabels: {app: notes}}
  template:
    metadata: {labels: {app: notes}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: notes, image: busybox, command: [sh, -c, "echo started >> /notes/starts; exec sleep 100000"], volumeMounts: [{name: notes, mountPath: /notes}]}]
      volumes: [{name: notes, persistentVolumeClaim: {claimName: notes}}]
`

// TestPublicCharts installs two charts that others wrote, as their repositories have them,
// from a release that was written as docs/platforms.md says, without a registry. Their
// repositories are Go modules.
func TestPublicCharts(t *testing.T) {
	takesLong(t)
	inTurn(t)
	d := open(t, "e2e-charts")
	d.Bundle, d.Config = linked(t, d.Bundle), t.TempDir() // which remembers what was added
	k := &kept{deployment: d, config: write(t, configured)}
	k.must(t, "cluster", "--stop") // whatever an earlier run of the tests left
	k.must(t, "destroy", "--yes", "--ignore-not-found")
	t.Cleanup(func() { _ = finish(t, d.CLI(context.Background(), "cluster", "--stop")) })

	b, err := bundle.Read(d.Bundle)
	require.NoError(t, err)
	pins, err := lock.Load()
	require.NoError(t, err)
	provisioner, ok := pins.Image("local-path-provisioner")
	require.True(t, ok)
	source := downloaded(t, podinfo)
	charts := []string{ // as the repositories have them
		filepath.Join(source, "charts/podinfo"),
		filepath.Join(downloaded(t, provisioner.Modules[0]), "deploy/chart/local-path-provisioner"),
	}
	const image, helper = "ghcr.io/stefanprodan/podinfo:6.9.2", "busybox:latest"
	other := "rancher/local-path-provisioner:" + provisioner.Modules[0].Version
	own, built := podinfoImage(t, source, b.Platform)

	release := filepath.Join(t.TempDir(), "shop")
	k.tool(t, "platform", "init", release)
	for _, chart := range charts {
		to := "charts/" + filepath.Base(chart)
		addTo(t, release, ofGuide(t, "    path: "+to+"\n"))
		require.NoError(t, os.CopyFS(filepath.Join(release, to), os.DirFS(chart)))
	}
	addTo(t, release, notes)
	require.NoError(t, os.WriteFile(filepath.Join(release, "manifests/notes.yaml"), []byte(notesYAML), 0o600))
	was := digest(t, release)
	install := []string{"--platform", release, "--keep-cluster", "--unpublished"}

	// Each builds on the one before.
	stage := func(name string, do func(t *testing.T)) { require.True(t, t.Run(name, do)) }
	stage("without their images it is refused", func(t *testing.T) {
		r := k.cli(t, "install", install...)
		require.Equal(t, 3, r.code, slipway.Tail(r.err))
		for _, says := range []string{
			"IMG-001", "3 images are not there", "/charts/podinfo/templates/deployment.yaml", image,
			"/charts/local-path-provisioner/templates/deployment.yaml", other, "/platform.yaml, line ", "docker.io/library/busybox:latest",
		} {
			require.Contains(t, r.err, says)
		}
		require.NotContains(t, r.err, "infrastructure/", "no step started")
	})

	stage("with them it is installed", func(t *testing.T) {
		workloads := b.Path(bundle.WorkloadArchive) // in which the bundle has the two others, as its own
		k.tool(t, "bundle", "add", k.Bundle, image+"="+own,
			other+"="+workloads+":"+imageNamed(t, b, "local-path-provisioner").Ref, helper+"="+workloads+":"+imageNamed(t, b, "busybox").Ref)
		require.Contains(t, k.tool(t, "validate", "--platform", release, "--bundle", k.Bundle), "valid: ")
		k.must(t, "install", install...)
		require.Equal(t, was, k.record(t).Platform.Digest)
		got := k.shell(t, `kubectl get pods -A -o 'jsonpath={range .items[*]}{.metadata.namespace} {.spec.containers[0].image} {.status.phase} {.status.containerStatuses[0].imageID}{"\n"}{end}'`)
		for _, line := range []string{
			"podinfo " + image + " Running %@" + built.String(),
			"storage " + other + " Running %@" + imageNamed(t, b, "local-path-provisioner").Digest,
		} {
			require.Regexp(t, `(?m)^`+strings.Replace(regexp.QuoteMeta(line), "%", `\S+`, 1)+"$", got, "under the chart's own name, and that of the bundle")
		}
	})

	stage("both do what they are for", func(t *testing.T) {
		var version struct{ Commit, Version string }
		require.NoError(t, json.Unmarshal([]byte(k.shell(t, "curl -fsS --retry 30 --retry-all-errors --retry-delay 1 http://cluster:9898/version")), &version))
		require.Equal(t, "6.9.2", version.Version)
		require.Equal(t, podinfo.Version, version.Commit, "the program that the test has built")
		require.Equal(t, "Bound others cluster.local/local-path-provisioner\n", k.shell(t, `kubectl get pvc -n storage notes -o 'jsonpath={.status.phase} {.spec.storageClassName} '
kubectl get pv "$(kubectl get pvc -n storage notes -o 'jsonpath={.spec.volumeName}')" -o 'jsonpath={.metadata.annotations.pv\.kubernetes\.io/provisioned-by}{"\n"}'`))
		require.Contains(t, k.shell(t, `kubectl get events -n storage -o 'jsonpath={range .items[*]}{.involvedObject.name} {.message}{"\n"}{end}'`), `image "busybox:latest"`,
			"of the Pod that makes the directory")
	})

	stage("a second install changes nothing", func(t *testing.T) {
		r := k.must(t, "install", install...)
		for _, component := range []string{"web", "hello", "sign-in", "podinfo", "local-path-provisioner", "notes"} {
			require.Regexp(t, `(?m)^\s*orchestrator/`+component+`\s+reused`, r.out)
		}
		require.Equal(t, was, k.record(t).Platform.Digest)
	})

	stage("the volume outlives the node", func(t *testing.T) {
		const starts = "kubectl rollout status -n storage deployment/notes --timeout 2m >&2; kubectl exec -n storage deployment/notes -- cat /notes/starts"
		require.Equal(t, "started\n", k.shell(t, starts))
		k.must(t, "cluster", "--stop")
		require.Regexp(t, `^(started\n){2,}$`, k.shell(t, starts))
	})

	stage("destroy leaves nothing", func(t *testing.T) {
		r := k.must(t, "destroy", "--yes")
		require.Regexp(t, `infrastructure/inventory\s+succeeded`, r.out)
		require.Contains(t, r.err, "nothing is left")
		r = k.cli(t, "status")
		require.Equal(t, 2, r.code)
		require.Equal(t, d.Name+": NotStarted\n", r.out)
	})

	require.Equal(t, was, digest(t, release), "nothing has changed the release")
	for _, chart := range charts {
		want := contents(t, chart)
		require.Contains(t, want, "Chart.yaml")
		require.Equal(t, want, contents(t, filepath.Join(release, "charts", filepath.Base(chart))), "as its repository has it")
	}
}

// ofGuide is the example of docs/platforms.md with a line in it.
func ofGuide(t *testing.T, line string) string {
	t.Helper()
	before, after, found := strings.Cut(read(t, root(t), "docs/platforms.md"), line)
	require.True(t, found, line)
	const fence = "```"
	example, _, _ := strings.Cut(after, fence)
	return before[strings.LastIndex(before, fence+"yaml\n")+len(fence+"yaml\n"):] + line + example
}

// addTo adds what an example lists to the lists of a release, but for what has a name that
// is there.
func addTo(t *testing.T, release, example string) {
	t.Helper()
	var has map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(read(t, release, "platform.yaml")), &has))
	var more map[string][]map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(example), &more))
	for field, list := range more {
		all, _ := has[field].([]any)
		for _, item := range list {
			if !slices.ContainsFunc(all, func(other any) bool { return other.(map[string]any)["name"] == item["name"] }) {
				all = append(all, item)
			}
		}
		has[field] = all
	}
	text, err := yaml.Marshal(has)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(release, "platform.yaml"), text, 0o600))
}

// imageNamed is a bundle's own image of a short name.
func imageNamed(t *testing.T, b *bundle.Bundle, name string) bundle.Image {
	t.Helper()
	for _, i := range b.Index.Images {
		if i.Name == name {
			return i
		}
	}
	t.Fatalf("the bundle has no image %s", name)
	return bundle.Image{}
}

// downloaded is the directory of a module of Go's, with the checksum that it must have.
func downloaded(t *testing.T, m lock.Module) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", m.Path+"@"+m.Version)
	cmd.Dir = t.TempDir() // in no module
	r := finish(t, cmd)
	require.Zero(t, r.code, r.out+r.err)
	var module struct{ Dir, Sum string }
	require.NoError(t, json.Unmarshal([]byte(r.out), &module))
	require.Equal(t, m.Sum, module.Sum, m.Path)
	return module.Dir
}

// podinfoImage builds podinfo's image for a platform as its Dockerfile does, without what is
// of the distribution there. It returns an OCI layout and the image's digest.
func podinfoImage(t *testing.T, source, platform string) (string, v1.Hash) {
	t.Helper()
	system, arch, _ := strings.Cut(platform, "/")
	const home = "home/app"
	root := t.TempDir()
	for program, to := range map[string]string{"podinfo": home, "podcli": "usr/local/bin"} {
		cmd := exec.CommandContext(t.Context(), "go", "build", "-C", source, "-trimpath", "-buildvcs=false", "-mod=readonly",
			"-ldflags", "-s -w -X "+podinfo.Path+"/pkg/version.REVISION="+podinfo.Version, "-o", filepath.Join(root, to, program), "./cmd/"+program)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOOS="+system, "GOARCH="+arch)
		r := finish(t, cmd)
		require.Zero(t, r.code, "build %s: %s", program, r.err)
	}
	require.NoError(t, os.CopyFS(filepath.Join(root, home, "ui"), os.DirFS(filepath.Join(source, "ui"))))
	return imageOf(t, root, v1.ConfigFile{OS: system, Architecture: arch, Config: v1.Config{
		Env: []string{"PATH=/usr/local/bin"}, WorkingDir: "/" + home, User: "65534:65534", Cmd: []string{"./podinfo"},
	}})
}

// imageOf makes an image of a folder, readable for everybody. It returns an OCI layout and
// the image's digest.
func imageOf(t *testing.T, root string, config v1.ConfigFile) (string, v1.Hash) {
	t.Helper()
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	require.NoError(t, fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text := read(t, root, name)
		info, err := entry.Info()
		require.NoError(t, err)
		mode := int64(0o444)
		if info.Mode()&0o111 != 0 {
			mode = 0o555
		}
		require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(text))}))
		_, err = w.Write([]byte(text))
		return err
	}))
	require.NoError(t, w.Close())
	image, err := mutate.ConfigFile(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), &config)
	require.NoError(t, err)
	image, err = mutate.AppendLayers(image, static.NewLayer(layer.Bytes(), types.OCIUncompressedLayer))
	require.NoError(t, err)
	digest, err := image.Digest()
	require.NoError(t, err)
	to := newLayout(t)
	require.NoError(t, to.AppendImage(image))
	return string(to), digest
}

func TestImageOfAFolder(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "bin"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(root, "bin/run"), []byte("#!/bin/sh\n"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(root, "text"), []byte("text"), 0o600))
	dir, digest := imageOf(t, root, v1.ConfigFile{OS: "linux", Architecture: "arm64", Config: v1.Config{User: "65534"}})

	index, err := layout.Path(dir).ImageIndex()
	require.NoError(t, err)
	image, err := index.Image(digest)
	require.NoError(t, err)
	config, err := image.ConfigFile()
	require.NoError(t, err)
	require.Equal(t, "arm64 65534", config.Architecture+" "+config.Config.User)
	modes, r := map[string]int64{}, tar.NewReader(mutate.Extract(image))
	for h, err := r.Next(); !errors.Is(err, io.EOF); h, err = r.Next() {
		require.NoError(t, err)
		modes[h.Name] = h.Mode
	}
	require.Equal(t, map[string]int64{"bin/run": 0o555, "text": 0o444}, modes, "for every user")
}
