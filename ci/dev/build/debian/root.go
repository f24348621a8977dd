// Package debian builds root file systems out of the Debian packages of the
// mirror that this machine is configured with, and asks for the host packages
// that building needs.
package debian

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/slipway-sh/slipway/ci/dev/build"
)

// TarFile is the file of a built root in its folder: the file system, entries as "./etc/…".
const TarFile = "root.tar"

// Epoch is the time of every file of a root, in seconds since 1970.
const Epoch = 1767225600 // 2026-01-01

// Root is a Debian root file system: minbase and Packages. Built twice from
// the same state of the mirror, its tar has the same bytes; it holds no host
// name, no machine id, no logs, no package lists and no apt sources.
type Root struct {
	Name     string   // of the store's entry
	Packages []string // beyond minbase
	Release  Release  // from HostRelease
}

// Build gives the folder with the root's file, and whether the store had it.
// A root is kept for as long as the wanted packages and the release stay the
// same: newer versions on the mirror do not rebuild it.
func (r Root) Build(ctx context.Context, st *build.Store) (dir string, hit bool, err error) {
	return st.Do(ctx, r.Key(), func(ctx context.Context, dir string) error { return r.Make(ctx, dir) })
}

// Key is the digest of what is asked for, not of what the mirror answers.
func (r Root) Key() build.Key {
	return build.NewInputs(r.Name).
		String("recipe", strings.Join(r.arguments("", "", "script"), "\n")).
		String("tidy", tidy).
		String("codename", r.Release.Codename).
		String("architecture", r.Release.arch()).
		Key()
}

// tidy runs with the new root as $1, after the packages are in. What is made
// at installation and differs from one time or machine to the next goes.
// It leaves tmp to mmdebstrap: the configuration that keeps its apt to the new
// root is there, and without that file apt works on this machine's own lists.
//
//go:embed tidy.sh
var tidy string

// arguments is mmdebstrap's command line for the tar file out; script is the
// file that tidy was written to.
func (r Root) arguments(out, list, script string) []string {
	packages := slices.Sorted(slices.Values(r.Packages))
	args := []string{
		"--variant=minbase",
		"--format=tar",
		"--aptopt=Acquire::Languages \"none\"",
		"--aptopt=APT::Install-Recommends \"false\"",
		"--aptopt=Acquire::Retries \"5\"",
		"--dpkgopt=path-exclude=/usr/share/man/*",
		"--dpkgopt=path-exclude=/usr/share/info/*",
		"--dpkgopt=path-exclude=/usr/share/locale/*",
		"--dpkgopt=path-exclude=/usr/share/doc/*",
		"--dpkgopt=path-include=/usr/share/doc/*/copyright",
		"--customize-hook=sh " + script + " \"$1\"",
		"--skip=cleanup/apt", // tidy has removed lists and cache: apt need not run once more
	}
	if len(packages) > 0 {
		args = append(args, "--include="+strings.Join(packages, ","))
	}
	if arch := r.Release.arch(); arch != runtime.GOARCH {
		// Its own check needs arch-test; the bundle's build has checked emulation.
		args = append(args, "--architectures="+arch, "--skip=check/qemu")
	}
	return append(args, r.Release.Codename, out, list)
}

// Make builds the root into dir, without the store.
func (r Root) Make(ctx context.Context, dir string) error {
	script, err := os.CreateTemp("", "slipway-root-*.sh")
	if err != nil {
		return fmt.Errorf("build the Debian root %s: %w", r.Name, err)
	}
	defer func() { _ = os.Remove(script.Name()) }()
	_, err = script.WriteString(tidy)
	if err := errors.Join(err, script.Close()); err != nil {
		return fmt.Errorf("build the Debian root %s: %w", r.Name, err)
	}
	out := filepath.Join(dir, TarFile)
	cmd := exec.CommandContext(ctx, "mmdebstrap", r.arguments(out, "-", script.Name())...)
	cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH="+strconv.Itoa(Epoch), "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive")
	cmd.Stdin = strings.NewReader(r.Release.Sources)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	// A cancelled mmdebstrap clears its folder and its mounts by itself, once the
	// programs that it runs have ended: so they are told as well.
	cmd.SysProcAttr = isolated()
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	if err := cmd.Run(); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return fmt.Errorf("build the Debian root %s: %w", r.Name, cause)
		}
		return fmt.Errorf("build the Debian root %s: mmdebstrap: %w\n%s", r.Name, err, build.LastLines(output.String(), 30))
	}
	return nil
}
