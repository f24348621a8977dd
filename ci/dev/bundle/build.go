package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sync/errgroup"

	"github.com/slipway-sh/slipway/ci/dev/build"
	"github.com/slipway-sh/slipway/ci/dev/build/debian"
	"github.com/slipway-sh/slipway/ci/dev/build/gotool"
	"github.com/slipway-sh/slipway/ci/dev/bundle/rootfs"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/fault"
)

// The codes of the build's errors, beside those of package debian.
const (
	// codeMachine: this machine cannot build a bundle: its user is not root on Linux, it has another
	// Debian release than the lock, or it cannot run programs of the bundle's architecture.
	codeMachine = "BUN-010"
	// codeBuild: a part of the bundle could not be built.
	codeBuild = "BUN-012"
)

type builder struct {
	source  string // the repository's root
	sources string // digest of slipway's sources
	arch    string
	lock    *lock.Lock
	recipes recipes
	store   *build.Store
	report  *build.Reporter
	added   bundle.Additions // what the user has added to bundles

	built  map[string]string // program by command name
	layers map[string]*rootfs.Layer
}

// parts builds commands and Debian layers side by side. The first part that fails stops the others
// and is the error; what they have compiled stays in Go's cache.
func (b *builder) parts(ctx context.Context, commands []gotool.Command, release debian.Release) error {
	b.built, b.layers = map[string]string{}, map[string]*rootfs.Layer{}
	lanes, building := errgroup.WithContext(ctx)
	isRunc := func(c gotool.Command) bool { return c.Name == gotool.Runc }
	lanes.Go(func() error { return b.programs(building, slices.DeleteFunc(slices.Clone(commands), isRunc)) })
	lanes.Go(func() error { return b.debian(building, release) })
	err := lanes.Wait()
	if at := slices.IndexFunc(commands, isRunc); err == nil && at >= 0 {
		library := b.layers[seccompLayer]
		with := gotool.BuildRunc(b.source, library.File(""), library.Key.Digest, string(targets()[b.arch]))
		commands[at].Env, commands[at].Linked = with.Env, with.Linked
		err = b.programs(ctx, commands[at:at+1])
	}
	return err
}

// programs builds the Go commands: two modules at a time, because the end of a build, with the linker,
// keeps only one core busy. Commands of one module share most packages, so they are built one after
// the other.
func (b *builder) programs(ctx context.Context, commands []gotool.Command) error {
	modules, ctx := errgroup.WithContext(ctx)
	modules.SetLimit(2)
	var mu sync.Mutex // guards b.built
	started := map[string]bool{}
	for _, first := range commands {
		if started[first.Module] {
			continue
		}
		started[first.Module] = true
		modules.Go(func() error {
			for _, c := range commands {
				if c.Module != first.Module {
					continue
				}
				path, err := b.command(ctx, c)
				if err != nil {
					return err
				}
				mu.Lock()
				b.built[c.Name] = path
				mu.Unlock()
			}
			return nil
		})
	}
	return modules.Wait()
}

func (b *builder) command(ctx context.Context, c gotool.Command) (path string, err error) {
	err = b.part(ctx, c.Name, c.Name, "building", func() (hit bool, err error) {
		path, hit, err = c.Build(ctx, b.store)
		return hit, err
	})
	return path, err
}

// part builds one part, with a line that names it as shown.
func (b *builder) part(ctx context.Context, name, shown, doing string, build func() (hit bool, err error)) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err := b.report.Do(shown, doing, func(func(string)) (bool, error) { return build() }); err != nil {
		return b.failure(ctx, name, err)
	}
	return nil
}

func (b *builder) debian(ctx context.Context, release debian.Release) error {
	cache, err := os.MkdirTemp("", "slipway-bundle-apt-*")
	if err != nil {
		return fmt.Errorf("make a folder for packages: %w", err)
	}
	defer func() { _ = os.RemoveAll(cache) }()
	layers := &rootfs.Builder{Store: b.store, Release: release, Cache: cache}
	one := func(name string, build func() (*rootfs.Layer, error)) error {
		return b.part(ctx, "debian-"+name, "Debian layer "+name, "installing packages", func() (bool, error) {
			layer, err := build()
			if err != nil {
				return false, err
			}
			b.layers[name] = layer
			return layer.Reused, nil
		})
	}
	if err := one("base", func() (*rootfs.Layer, error) { return layers.Base(ctx, b.recipes.Perl) }); err != nil {
		return err
	}
	for _, a := range b.recipes.additions(b.lock) {
		if err := one(a.Name, func() (*rootfs.Layer, error) { return layers.Add(ctx, b.layers[a.on], a.Addition) }); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) images(ctx context.Context) (map[string]v1.Image, error) {
	images := map[string]v1.Image{}
	for _, i := range b.lock.Images {
		d, err := b.define(ctx, i)
		if err != nil {
			return nil, err
		}
		if images[i.Name], err = b.image(ctx, i.Name, d); err != nil {
			return nil, err
		}
	}
	return images, nil
}

// failure writes the output of a failed build into a log and names it.
func (b *builder) failure(ctx context.Context, part string, err error) error {
	if _, ok := errors.AsType[*fault.Fault](err); ok {
		return err
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	log := filepath.Join(b.store.Path(), "logs", "bundle-"+part+".log")
	if logErr := errors.Join(os.MkdirAll(filepath.Dir(log), 0o755), os.WriteFile(log, []byte(err.Error()+"\n"), 0o644)); logErr != nil {
		return errors.Join(err, logErr)
	}
	return &fault.Fault{
		Class: fault.Preflight, Code: codeBuild, Op: "build the bundle's " + part, Fix: "read " + log + ", then run: make bundle",
		Err: errors.New(build.LastLines(err.Error(), 15)),
	}
}

// prepare checks that this machine can build for arch, asks for the packages that building
// needs, and has the kernel run programs of another architecture.
func prepare(ctx context.Context, l *lock.Lock, arch string, say func(string)) (debian.Release, error) {
	if err := mayBuild(runtime.GOOS, os.Geteuid()); err != nil {
		return debian.Release{}, err
	}
	tools := []debian.Tool{
		{Command: "mmdebstrap", Package: "mmdebstrap"},
		{Command: "gcc", Package: "build-essential"}, // with the headers of libc
		{Command: "unshare", Package: "util-linux"},
	}
	to := targets()[arch]
	if arch != runtime.GOARCH {
		tools = append(tools,
			debian.Tool{Command: to.compiler(), Package: "crossbuild-essential-" + arch}, // likewise
			debian.Tool{Command: to.emulator(), Package: "qemu-user-static"},
		)
	}
	if err := debian.Need(ctx, say, tools...); err != nil {
		return debian.Release{}, err
	}
	release, err := debian.HostRelease("/")
	if err != nil {
		return debian.Release{}, err
	}
	if arch != runtime.GOARCH {
		release.Arch = arch
		if err := to.emulate(ctx, "/", say); err != nil {
			return debian.Release{}, err
		}
	}
	return release, sameSuite(release, l)
}

func mayBuild(system string, user int) error {
	if system == "linux" && user == 0 {
		return nil
	}
	return &fault.Fault{
		Class: fault.Preflight, Code: codeMachine, Op: "build the bundle", Fix: "run as root on Linux: sudo make bundle",
		Err: errors.New("image layers hold files of several users, and an overlay mount catches what packages change: both need root"),
	}
}

func sameSuite(release debian.Release, l *lock.Lock) error {
	if release.Codename == l.Suite {
		return nil
	}
	return &fault.Fault{
		Class: fault.Preflight, Code: codeMachine, Op: "build the bundle", Fix: "build it on Debian " + l.Suite + ", then pass it with --bundle",
		Err: fmt.Errorf("this machine's packages are for %s, the lock says %s", release.Codename, l.Suite),
	}
}

// target is an architecture that bundles are built for, by what GNU and QEMU call it.
type target string

// targets are those that there are bundles for, by GOARCH.
func targets() map[string]target { return map[string]target{"amd64": "x86_64", "arm64": "aarch64"} }

// compiler is Debian's C compiler that builds for it on another architecture.
func (t target) compiler() string { return string(t) + "-linux-gnu-gcc" }

// emulator is the program of Debian's qemu-user-static that runs its programs.
func (t target) emulator() string { return "qemu-" + string(t) + "-static" }

// emulate has the kernel run its programs under QEMU, as Debian's package does where systemd
// starts the machine: packages run scripts of their own when they are installed. The kernel
// opens the emulator now, so that no root needs to have it. It lasts until the machine is
// started again. root is "/". It fails with codeMachine.
func (t target) emulate(ctx context.Context, root string, say func(string)) error {
	name, formats := "qemu-"+string(t), filepath.Join(root, "proc/sys/fs/binfmt_misc")
	refuse := func(err error) error {
		return &fault.Fault{
			Class: fault.Preflight, Code: codeMachine, Op: "run programs of " + string(t) + " on this machine", Err: err,
			Fix: "build the bundle on a machine of that architecture, or on one whose root may mount binfmt_misc",
		}
	}
	if _, err := os.Stat(filepath.Join(formats, name)); err == nil {
		return nil
	}
	if _, err := os.Stat(filepath.Join(formats, "register")); err != nil {
		if output, err := exec.CommandContext(ctx, "mount", "-t", "binfmt_misc", "binfmt_misc", formats).CombinedOutput(); err != nil {
			return refuse(fmt.Errorf("mount binfmt_misc: %w: %s", err, bytes.TrimSpace(output)))
		}
	}
	say("having the kernel run programs of " + string(t) + " under QEMU")
	text, err := os.ReadFile(filepath.Join(root, "usr/lib/binfmt.d", name+".conf"))
	if err == nil {
		err = os.WriteFile(filepath.Join(formats, "register"), bytes.TrimSpace(text), 0o200)
	}
	if err != nil {
		return refuse(fmt.Errorf("register %s: %w", name, err))
	}
	return nil
}
