package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/slipway-sh/slipway/ci/dev/build"
	"github.com/slipway-sh/slipway/ci/dev/build/debian"
	"github.com/slipway-sh/slipway/ci/dev/build/gotool"
	"github.com/slipway-sh/slipway/containers/ociarchive"
	"github.com/slipway-sh/slipway/fault"
)

const daggerModule = "ci/dev/engine/dagger"

// rootPackages is what the engine runs: containers, their network and names,
// git sources. The Go SDK's image has the same root below it.
func rootPackages() []string {
	return []string{
		"ca-certificates", "containernetworking-plugins", "dnsmasq-base", "git",
		"iptables", "openssh-client", gotool.RuncLibrary,
	}
}

func hostTools() []debian.Tool {
	return []debian.Tool{
		{Command: "mmdebstrap", Package: "mmdebstrap"},
		{Command: "tar", Package: "tar"},
		{Command: "gcc", Package: "build-essential"}, // for runc
	}
}

// tasks is how many numbered lines start shows when it builds an engine.
const tasks = 11

// engineParts is all that an engine is made of, as paths into the store.
type engineParts struct {
	cli      string
	programs []string // all of Dagger's, the CLI among them
	debian   string   // the tar of the Debian root below engine and SDK
	root     string   // folder: the engine's root file system
	sdk      string   // folder: OCI layout of the Go SDK's image
	image    string   // digest of its manifest
}

func (c *control) command(name string) gotool.Command {
	const dagger = "github.com/dagger/dagger"
	command := gotool.Command{
		Name:    "dagger-" + name,
		Module:  filepath.Join(c.checkout, daggerModule),
		Package: dagger + "/cmd/" + name,
		LDFlags: []string{"-w", "-X", dagger + "/engine.Version=" + daggerVersion, "-X", dagger + "/engine.Tag=" + daggerVersion},
	}
	if name == "engine" { // the only one with the Dang SDK
		command.Instead = &gotool.Instead{Module: dagger, Files: "instead"}
	}
	return command
}

// task runs one numbered piece of the build. While another process builds the
// same thing, its line says so.
func (c *control) task(p *build.Reporter, name, doing string, do func() (hit bool, err error)) error {
	return p.Do(name, doing, func(say func(string)) (bool, error) {
		c.store.Waiting = func() { say("waiting for another process, which builds it") }
		return do()
	})
}

func (c *control) compile(ctx context.Context, p *build.Reporter, name string, path *string) error {
	return c.task(p, "dagger "+name+" "+daggerVersion, "building", func() (bool, error) {
		built, hit, err := c.command(name).Build(ctx, c.store)
		*path = built
		return hit, buildFault(err)
	})
}

func buildFault(err error) error {
	if err == nil {
		return nil
	}
	return &fault.Fault{Class: fault.Preflight, Code: debian.CodeBuild, Op: "build the Dagger engine", Err: err,
		Fix: "see the message above; make the Go module proxy (go env GOPROXY) and the Debian mirror (apt-get update) reachable, and room in the store (SLIPWAY_CACHE names another folder); then run make engine again"}
}

// buildEngine builds what is missing of an engine.
func (c *control) buildEngine(ctx context.Context, p *build.Reporter) (engineParts, error) {
	var parts engineParts
	var err error
	do := func(name, doing string, build func() (hit bool, err error)) {
		if err == nil {
			err = c.task(p, name, doing, build)
		}
	}
	do("host packages", "checking", func() (bool, error) {
		return len(debian.Missing(hostTools()...)) == 0, debian.Need(ctx, func(text string) { c.logf("%s", text) }, hostTools()...)
	})
	if err != nil {
		return parts, err
	}
	release, err := debian.HostRelease("/")
	if err != nil {
		return parts, &fault.Fault{Class: fault.Preflight, Code: debian.CodeBuild, Op: "find the Debian mirror", Err: err,
			Fix: "run on a Debian machine whose apt sources name a mirror of its own release, or start a Docker daemon and run make engine again"}
	}
	root := rootBuild{}
	sdk := sdkImage{}
	for _, b := range []struct {
		name string
		path *string
	}{{"engine", &root.engine}, {"dagger", &parts.cli}, {"init", &root.initd}, {"dnsname", &root.dnsname}, {"codegen", &sdk.codegen}} {
		if err := c.compile(ctx, p, b.name, b.path); err != nil {
			return parts, err
		}
		parts.programs = append(parts.programs, *b.path)
	}
	base := debian.Root{Name: "engine-debian", Packages: rootPackages(), Release: release}
	do("Debian "+release.Codename+" root", "installing packages", func() (bool, error) {
		dir, hit, err := base.Build(ctx, c.store)
		parts.debian = filepath.Join(dir, debian.TarFile)
		return hit, buildFault(err)
	})
	do(gotool.Runc, "building", func() (hit bool, err error) {
		root.runc, hit, err = c.runc(ctx, base.Key(), parts.debian)
		parts.programs = append(parts.programs, root.runc)
		return hit, buildFault(err)
	})
	do("engine root", "putting together", func() (hit bool, err error) {
		root.base, root.tar = base.Key(), parts.debian
		parts.root, hit, err = root.build(ctx, c.store)
		return hit, buildFault(err)
	})
	do("Go SDK image", "packing", func() (hit bool, err error) {
		sdk.base, sdk.tar = base.Key(), parts.debian
		parts.sdk, parts.image, hit, err = sdk.build(ctx, c.store)
		return hit, buildFault(err)
	})
	return parts, err
}

// runc builds runc with the library in the tar of the Debian root.
func (c *control) runc(ctx context.Context, base build.Key, tar string) (path string, hit bool, err error) {
	key := build.NewInputs("engine-seccomp").String("debian", base.Digest).Key()
	root, _, err := c.store.Do(ctx, key, func(ctx context.Context, dir string) error {
		return unpack(ctx, tar, dir, "--wildcards", "./usr/include/seccomp*", "./usr/lib/*/libseccomp*")
	})
	if err != nil {
		return "", false, err
	}
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	return gotool.BuildRunc(c.checkout, root, key.Digest, machine).Build(ctx, c.store)
}

// buildCLI gives the path of a dagger CLI of the right version, building it
// when PATH has none.
func (c *control) buildCLI(ctx context.Context) (string, error) {
	if path := cliOnPath(ctx); path != "" {
		return path, nil
	}
	p := build.NewReporter(os.Stderr, 1)
	var path string
	if err := c.compile(ctx, p, "dagger", &path); err != nil {
		return "", err
	}
	return path, nil
}

// digestOf is the digest of a file in the store: its folder's name.
func digestOf(path string) string { return filepath.Base(filepath.Dir(path)) }

func (c *control) programs(ctx context.Context) error {
	parts, err := c.buildEngine(ctx, build.NewReporter(os.Stderr, tasks))
	if err != nil {
		return err
	}
	for _, path := range parts.programs {
		fmt.Fprintln(c.stdout, path)
	}
	return nil
}

// outdated fails if Debian has a security update for a package of the engine, which it builds.
func (c *control) outdated(ctx context.Context) error {
	parts, err := c.buildEngine(ctx, build.NewReporter(os.Stderr, tasks))
	if err != nil {
		return err
	}
	status, err := exec.CommandContext(ctx, "tar", "--extract", "--to-stdout", "--file", parts.debian, "./var/lib/dpkg/status").Output()
	if err != nil {
		return fmt.Errorf("read the packages of the engine's root: %w", err)
	}
	versions, err := ociarchive.Installed(bytes.NewReader(status))
	if err != nil {
		return err
	}
	release, err := debian.HostRelease("/")
	if err != nil {
		return err
	}
	lists, err := debian.FetchLists(ctx, release)
	if err != nil {
		return err
	}
	defer lists.Close()
	return lists.RequireUpdated(ctx, versions, "run: make engine-stop; remove engine-debian, engine-root and engine-go-sdk below "+
		filepath.Join(c.store.Path(), "objects")+", which are built again; then run: make engine")
}
