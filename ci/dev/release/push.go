package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/slipway-sh/slipway/ci/dev/build/store"
	"github.com/slipway-sh/slipway/containers/bundle"
)

// push pushes the bundles with the program that is released, and puts the lock file, its signature
// if there is a key, and the bundles' SBOM and provenance into the folder dir. It fails unless the
// bundle's program is compiled from the same sources, and the lock file of the Dagger module
// (ci/origin), if the commit has one, is the same.
func (r *release) push(ctx context.Context, program, dir string, stderr io.Writer) error {
	switch {
	case r.registry == "":
		return nil
	case r.dry:
		fmt.Fprintln(stderr, "dry run: nothing is pushed to", r.registry)
		return nil
	}
	lock := filepath.Join(dir, "slipway.lock.json")
	slipway := func(args ...string) error {
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Stdout, cmd.Stderr = stderr, stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("slipway %s: %w", strings.Join(args[:2], " "), err)
		}
		return nil
	}
	pushed := func(folder, arch string, more ...string) error {
		args := []string{"bundle", "push", folder, r.registry, "--out", lock}
		if r.keyFile != "" {
			args = append(args, "--key", r.keyFile)
		}
		if err := slipway(append(args, more...)...); err != nil {
			return err
		}
		to := filepath.Join(dir, "slipway_"+r.number()+"_bundle_"+arch)
		return errors.Join(
			store.CopyFile(to+".cdx.json", filepath.Join(folder, bundle.SBOMFile), 0o644),
			store.CopyFile(to+".provenance.json", filepath.Join(folder, bundle.ProvenanceFile), 0o644))
	}
	if err := slipway("lock", "verify", "--bundle", r.bundle); err != nil {
		return err
	}
	if err := pushed(r.bundle, runtime.GOARCH); err != nil {
		return err
	}
	if folder, digest, ok := strings.Cut(r.other, "@"); ok {
		if err := pushed(folder, otherArch(), "--bundle-digest", digest); err != nil {
			return err
		}
	}
	return r.sameLock(lock, stderr)
}

// otherArch is the architecture that bundles are built for besides this machine's.
func otherArch() string {
	if runtime.GOARCH == "arm64" {
		return "amd64"
	}
	return "arm64"
}

// sameLock compares the lock file of the Dagger module, which may be missing, with the release's.
func (r *release) sameLock(lock string, stderr io.Writer) error {
	const module = "ci/slipway.lock.json"
	has, err := os.ReadFile(filepath.Join(r.root, module))
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(stderr, "warning: the commit has no %s: dagger call -m URL@%s needs --lock\n", module, r.version)
		return nil
	}
	wants, wantsErr := os.ReadFile(lock)
	if err := errors.Join(err, wantsErr); err != nil {
		return err
	}
	if !bytes.Equal(has, wants) {
		return fmt.Errorf("%s differs from the lock file of the pushed bundle: slipway bundle push DIR HOST/PATH --out %s writes it; commit it and tag that commit", module, module)
	}
	return nil
}
