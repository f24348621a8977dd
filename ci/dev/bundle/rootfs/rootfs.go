// Package rootfs builds the Debian layers of the bundle's images: a base, and
// on it layers that each add some packages. A layer is what apt changed, caught
// by an overlay mount that lives in a mount namespace of its own: a build that
// is killed leaves nothing mounted.
package rootfs

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/slipway-sh/slipway/ci/dev/build"
	"github.com/slipway-sh/slipway/ci/dev/build/debian"
	"github.com/slipway-sh/slipway/ci/dev/build/oci"
)

// The content of a layer's folder beside the files of oci.OpenLayer.
const (
	filesDir  = "root"    // the layer's files: a whole root, or an overlay's upper folder
	workDir   = ".work"   // the overlay's own
	mergedDir = ".merged" // where the overlay is mounted during the build
)

// Builder builds layers into a store. It is not safe for concurrent use: the
// layers share apt's lists.
type Builder struct {
	Store   *build.Store
	Release debian.Release
	// Cache is a folder for apt's lists and packages, kept from layer to layer.
	Cache string
}

// Layer is a layer in the store.
type Layer struct {
	v1.Layer
	Key    build.Key // in the store
	Reused bool      // the store had it already

	dir   string
	lower *Layer
}

// Stack is the layer on those below it, lowest first.
func (l *Layer) Stack() []*Layer {
	if l.lower == nil {
		return []*Layer{l}
	}
	return append(l.lower.Stack(), l)
}

// File is where a file lies that this layer, not one below it, has.
func (l *Layer) File(name string) string { return filepath.Join(l.dir, filesDir, name) }

// Base builds Debian's minimum without documentation and without what trim leaves
// out of the layer.
func (b *Builder) Base(ctx context.Context, trim []string) (*Layer, error) {
	root := debian.Root{Name: "bundle-root", Release: b.Release}
	key := build.NewInputs("bundle-base").
		String("root", root.Key().Digest).
		String("layer", fmt.Sprint(oci.Epoch, oci.Level)).
		Strings("trim", trim).Strings("skip", skipped()).
		Key()
	dir, hit, err := b.Store.Do(ctx, key, func(ctx context.Context, dir string) error {
		built, _, err := root.Build(ctx, b.Store)
		if err != nil {
			return err
		}
		files := filepath.Join(dir, filesDir)
		if err := os.Mkdir(files, 0o755); err != nil {
			return err
		}
		unpack := exec.CommandContext(ctx, "tar", "--extract", "--preserve-permissions", "--numeric-owner",
			"--file", filepath.Join(built, debian.TarFile), "--directory", files)
		if output, err := unpack.CombinedOutput(); err != nil {
			return fmt.Errorf("unpack the Debian base: %w\n%s", err, output)
		}
		_, err = oci.WriteLayer(ctx, dir, []oci.Tree{{Root: files, Skip: skip(trim)}}, nil)
		return err
	})
	return open(dir, key, nil, hit, err)
}

// Addition is what a layer adds to the one below it.
type Addition struct {
	Name     string   `json:"name"`     // of the layer
	Packages []string `json:"packages"` // Debian packages
	Before   string   `json:"before"`   // shell script that runs in the new root before apt does
	After    string   `json:"after"`    // shell script that runs in it after apt has
	// Trim leaves files out of the layer that the packages bring: paths and
	// path.Match patterns without leading slash, each with all that is below.
	Trim []string `json:"trim"`
}

// Add builds a layer on lower.
func (b *Builder) Add(ctx context.Context, lower *Layer, a Addition) (*Layer, error) {
	packages := slices.Sorted(slices.Values(a.Packages))
	key := build.NewInputs("bundle-layer-"+a.Name).
		String("lower", lower.Key.Digest).
		Strings("packages", packages).
		String("before", a.Before).String("after", a.After).
		String("script", script).
		Strings("trim", a.Trim).Strings("skip", skipped()).
		String("layer", fmt.Sprint(oci.Epoch, oci.Level)).
		Key()
	dir, hit, err := b.Store.Do(ctx, key, func(ctx context.Context, dir string) error {
		if err := b.install(ctx, dir, lower, a, packages); err != nil {
			return fmt.Errorf("build the layer %s: %w", a.Name, err)
		}
		_, err := oci.WriteLayer(ctx, dir, []oci.Tree{{
			Root: filepath.Join(dir, filesDir), Overlay: true, Skip: skip(a.Trim),
		}}, nil)
		return err
	})
	return open(dir, key, lower, hit, err)
}

func open(dir string, key build.Key, lower *Layer, hit bool, err error) (*Layer, error) {
	if err != nil {
		return nil, err
	}
	layer, err := oci.OpenLayer(dir)
	if err != nil {
		return nil, err
	}
	return &Layer{Layer: layer, Key: key, Reused: hit, dir: dir, lower: lower}, nil
}

// script runs as the first process of its own mount and process namespaces. A change of it builds
// every layer anew, with the packages that the mirror has then.
//
//go:embed script.sh
var script string

func (b *Builder) install(ctx context.Context, dir string, lower *Layer, a Addition, packages []string) error {
	for _, name := range []string{filesDir, workDir, mergedDir} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(b.Cache, "sources.list"), []byte(b.Release.Sources), 0o644); err != nil {
		return err
	}
	var lowers []string
	for _, l := range slices.Backward(lower.Stack()) {
		lowers = append(lowers, filepath.Join(l.dir, filesDir))
	}
	args := []string{
		"--mount", "--propagation", "private", "--pid", "--fork", "--kill-child",
		"sh", "-c", script, "sh",
		filepath.Join(dir, filesDir), strings.Join(lowers, ":"), filepath.Join(dir, workDir), filepath.Join(dir, mergedDir),
		b.Cache, a.Before, a.After,
	}
	cmd := exec.CommandContext(ctx, "unshare", append(args, packages...)...)
	cmd.Env = []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root",
		"LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive", "SOURCE_DATE_EPOCH=" + strconv.FormatInt(oci.Epoch, 10),
	}
	for _, name := range []string{"http_proxy", "https_proxy", "no_proxy"} {
		if value, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err != nil {
		return fmt.Errorf("apt-get install %s: %w\n%s", strings.Join(packages, " "), err, output.String())
	}
	// The overlay no longer needs its own folder, which has mode 0.
	return errors.Join(
		os.RemoveAll(filepath.Join(dir, workDir)),
		os.Remove(filepath.Join(dir, mergedDir)),
	)
}

// skipped is never part of a layer: what differs from one build to the next,
// and what no container needs.
func skipped() []string {
	return []string{
		"dev/*", "proc/*", "sys/*", "run/*", "tmp/*", "var/cache/*", "var/log/*", "var/lib/apt/lists/*",
		"etc/resolv.conf", "etc/hostname", "etc/machine-id", "etc/.pwd.lock", "etc/mtab",
		"etc/passwd-", "etc/group-", "etc/shadow-", "etc/gshadow-", "etc/subuid-", "etc/subgid-",
		"var/lib/dpkg/*-old", "var/lib/dpkg/lock*", "var/lib/dpkg/triggers/Lock", "var/lib/systemd/random-seed",
		"usr/share/man/*", "usr/share/info/*", "usr/share/locale/*", "usr/share/lintian", "usr/share/bug",
		"usr/share/bash-completion", "usr/share/zsh", "usr/share/pixmaps", "usr/share/common-licenses/*.gz",
	}
}

// skip answers for the paths of a layer.
func skip(trim []string) func(string) bool {
	patterns := slices.Concat(skipped(), trim)
	return func(name string) bool {
		return slices.ContainsFunc(patterns, func(pattern string) bool {
			match, err := path.Match(pattern, name)
			return match && err == nil
		})
	}
}

// Lookup is where a file lies that this layer or one below it has, the highest
// first.
func (l *Layer) Lookup(name string) string {
	for layer := l; layer.lower != nil; layer = layer.lower {
		if _, err := os.Lstat(layer.File(name)); err == nil {
			return layer.File(name)
		}
	}
	return l.Stack()[0].File(name)
}
