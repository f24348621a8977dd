package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/ci/test/slipway"
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

// session is one connection to the engine with what the script works on.
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
