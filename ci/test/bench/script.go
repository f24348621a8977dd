package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/ci/test/slipway"
	"github.com/slipway-sh/slipway/config/platform"
)

// Where containers/ puts things in the node's and the toolchain's container; the
// script's cluster is started as Slipway starts its own.
const (
	stateDir = "/slipway/state"
	nodeDir  = "/var/lib/slipway-node"
	archive  = "/slipway/images/workloads.tar"
	binDir   = "/usr/local/bin"
	apiPort  = 6443
)

// script is install.sh in the toolchain container, on a node of its own.
type script struct {
	root     string // the checkout
	bundle   string
	pins     *pins
	log      io.Writer
	release  release
	next     release // to which an upgrade brings it
	helmfile bool    // it, which make bench builds, applies the platform in place of kubectl
}

// release is a platform release that a script installs.
type release struct {
	name string // of the file with the script's second half
	dir  string // in the checkout
}

func reference() release { return release{"reference", "examples/platform/1.0.0"} }

// minor and major are the releases of the reference platform after that one.
func minor() release { return release{"reference", "examples/platform/1.1.0"} }

func major() release { return release{"reference", "examples/platform/2.0.0"} }

// static has neither a git server nor a GitOps engine.
func static() release { return release{"identity", "examples/platform/manifests/1.0.0"} }

type session struct {
	client    *dagger.Client
	toolchain *dagger.Container
	node      *dagger.Container
}

// open connects to the engine. The time that it takes belongs to the install, as
// it does for Slipway.
func (s *script) open(ctx context.Context, name string, r release) (*session, error) {
	client, err := dagger.Connect(ctx, dagger.WithLogOutput(s.log))
	if err != nil {
		return nil, fmt.Errorf("connect to the engine: %w", err)
	}
	bundle := client.Host().Directory(s.bundle)
	state := client.CacheVolume("slipway-bench-state-" + name)
	toolchain := client.Container().Import(bundle.File("images/toolchain.tar")).WithMountedCache(stateDir, state)
	for tool := range s.pins.tools { // mounted, as Slipway's are
		toolchain = toolchain.WithMountedFile(binDir+"/"+tool, bundle.File("bin/"+tool))
	}
	host := client.Host()
	for path, dir := range map[string]string{
		"/bench":            "ci/test/bench",
		"/slipway/platform": r.dir, "/slipway/terraform": "providers/local/terraform", "/slipway/addons": "providers/local/addons",
	} {
		toolchain = toolchain.WithDirectory(path, host.Directory(filepath.Join(s.root, dir)))
	}
	toolchain = toolchain.
		WithDirectory("/slipway/manifests", bundle.Directory("manifests")).
		WithNewFile("/bench/pins.env", s.pins.env()).
		WithEnvVariable("DEPLOYMENT", name).
		WithEnvVariable("PLATFORM", r.name)
	if s.helmfile {
		toolchain = toolchain.WithMountedFile(binDir+"/helmfile", host.File(filepath.Join(s.root, "bin/helmfile"))).WithEnvVariable("HELMFILE", "1")
	}
	node := client.Container().Import(bundle.File("images/node.tar")).
		WithMountedCache(nodeDir, client.CacheVolume("slipway-bench-node-"+name)).
		WithMountedCache(stateDir, state).
		WithMountedTemp("/run").
		WithMountedFile(archive, bundle.File("images/workloads.tar")).
		WithExposedPort(apiPort)
	return &session{client: client, toolchain: toolchain, node: node}, nil
}

// Install starts the node, runs the script and stops the node.
func (s *script) Install(ctx context.Context, name string, k kind) (err error) {
	r := s.release
	if k == upgraded {
		r = s.next
	}
	on, err := s.open(ctx, name, r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, on.client.Close()) }()
	cluster := on.node.AsService(dagger.ContainerAsServiceOpts{
		Args: []string{
			binDir + "/slipway-node", "run", "--cluster-name", name, "--images", archive, "--pause-image", s.pins.images["pause"],
		},
		InsecureRootCapabilities: true,
	})
	if _, err := cluster.Start(ctx); err != nil {
		return fmt.Errorf("start the node: %w", err)
	}
	ctr := on.toolchain.WithServiceBinding("cluster", cluster)
	switch k {
	case repeated:
		ctr = ctr.WithEnvVariable("REPEAT_CHECKS", "1")
	case upgraded:
		commands, err := dataCommands(os.DirFS(filepath.Join(s.root, r.dir)), s.pins.images)
		if err != nil {
			return err
		}
		ctr = ctr.WithNewFile("/bench/data.sh", commands).WithEnvVariable("UPGRADE", "1")
	}
	if err := s.exec(ctx, ctr, "sh", "/bench/install.sh"); err != nil {
		return err
	}
	if _, err := cluster.Stop(ctx); err != nil {
		return fmt.Errorf("stop the node: %w", err)
	}
	return nil
}

// Remove empties the volumes.
func (s *script) Remove(ctx context.Context, name string) (err error) {
	on, err := s.open(ctx, name, s.release)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, on.client.Close()) }()
	if err := s.exec(ctx, on.toolchain, "find", stateDir, "-mindepth", "1", "-delete"); err != nil {
		return err
	}
	_, err = fresh(on.node).WithExec([]string{binDir + "/slipway-node", "wipe", "--data", nodeDir},
		dagger.ContainerWithExecOpts{InsecureRootCapabilities: true}).Sync(ctx)
	if err != nil {
		return fmt.Errorf("empty the node's volume: %w", err)
	}
	return nil
}

// exec runs a command that the engine does not take from its cache.
func (s *script) exec(ctx context.Context, ctr *dagger.Container, args ...string) error {
	done := fresh(ctr).WithExec(args, dagger.ContainerWithExecOpts{Expect: dagger.ReturnTypeAny})
	code, err := done.ExitCode(ctx)
	if err != nil {
		return fmt.Errorf("run %s: %w", args, err)
	}
	out, err := done.Stdout(ctx)
	if err != nil {
		return fmt.Errorf("read the output of %s: %w", args, err)
	}
	fmt.Fprint(s.log, out)
	if code == 0 {
		return nil
	}
	errs, err := done.Stderr(ctx)
	if err != nil {
		return fmt.Errorf("read the output of %s: %w", args, err)
	}
	return fmt.Errorf("%s: exit status %d:\n%s", args, code, slipway.Tail(out+errs))
}

func fresh(ctr *dagger.Container) *dagger.Container { return ctr.WithEnvVariable("NONCE", rand.Text()) }

// dataCommands are the pods and the commands of a release's data as functions of a shell, for
// upgrade.sh: the very ones that Slipway runs. The release has one data.
func dataCommands(files fs.FS, images map[string]string) (string, error) {
	r, err := platform.Load(files)
	if err != nil {
		return "", err
	}
	if len(r.Data) != 1 {
		return "", fmt.Errorf("release %s has %d data, not one", r.Version, len(r.Data))
	}
	d := r.Data[0]
	live, scratch := d.Pods()
	var b strings.Builder
	fmt.Fprintf(&b, "# The data %s of %s %s.\n", d.Name, r.Name, r.Version)
	for _, p := range []struct {
		variable string
		pod      json.RawMessage
	}{{"live", live}, {"scratch", scratch}} {
		at, text, err := filled(p.pod, images)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%s=%s\n%s_pod=%s\n", p.variable, quoted(at), p.variable, quoted(text))
	}
	// data_NAME POD: runs a command in a pod.
	function := func(name string, command []string) {
		fmt.Fprintf(&b, "data_%s() { in_pod \"$1\"", name)
		for _, word := range command {
			b.WriteString(" " + quoted(word))
		}
		b.WriteString("; }\n")
	}
	function("dump", d.Dump)
	function("restore", d.Restore)
	function("check", d.Check)
	for _, when := range []platform.When{platform.Before, platform.After} {
		var names []string
		for _, m := range r.Migrations {
			if m.When == when {
				name := strings.ReplaceAll(m.Name, "-", "_")
				function(name, m.Command)
				names = append(names, "data_"+name)
			}
		}
		fmt.Fprintf(&b, "migrations_%s=%s\n", when, quoted(strings.Join(names, " ")))
	}
	return b.String(), nil
}

// filled is a Pod with its images, and "namespace/name".
func filled(pod json.RawMessage, images map[string]string) (at, text string, err error) {
	var o struct {
		Metadata struct{ Namespace, Name string }
		Spec     struct{ Containers []struct{ Image string } }
	}
	if err := json.Unmarshal(pod, &o); err != nil {
		return "", "", fmt.Errorf("read a Pod of the release: %w", err)
	}
	if platform.HolesIn(pod) != nil {
		return "", "", errors.New("a Pod of the release has names in braces")
	}
	for _, c := range o.Spec.Containers {
		ref := images[c.Image]
		if ref == "" {
			return "", "", fmt.Errorf("the bundle lacks the image %s", c.Image)
		}
		pod = bytes.ReplaceAll(pod, []byte(`"image":"`+c.Image+`"`), []byte(`"image":"`+ref+`"`))
	}
	return o.Metadata.Namespace + "/" + o.Metadata.Name, string(pod), nil
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
