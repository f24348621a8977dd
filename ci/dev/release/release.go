package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/sbom"
)

// number is the version without its v.
func (o *options) number() string { return strings.TrimPrefix(o.version, "v") }

func (o *options) baseURL() string {
	return strings.TrimSuffix(cmp.Or(o.url, homepage+"/releases/download/"+o.version), "/")
}

// named is the name of a file for a system, and the folder in its archive.
func (o *options) named(system string) string {
	return "slipway_" + o.number() + "_" + strings.ReplaceAll(system, "/", "_")
}

func (o *options) archiveName(system string) string {
	if strings.HasPrefix(system, "windows/") {
		return o.named(system) + ".zip"
	}
	return o.named(system) + ".tar.gz"
}

// release makes a release of the checkout at root. OUT is there with all of it, or as it was.
func release(ctx context.Context, root string, o options, stdout, stderr io.Writer) error {
	s, key, err := o.check(ctx, root)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "slipway-release-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	of, err := o.compile(ctx, s, work)
	if err != nil {
		return err
	}
	if err := o.assemble(ctx, s, of, key, stderr); err != nil {
		return err
	}
	entries, err := os.ReadDir(o.out)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s %s: %d files, compare them with: sha256sum -c %s\n", o.out, o.version, len(entries), checksumsFile)
	return nil
}

// assemble makes all files out of the programs, and moves them to OUT.
func (o *options) assemble(ctx context.Context, s *source, of *programs, key crypto.Signer, stderr io.Writer) error {
	if err := os.MkdirAll(filepath.Dir(o.out), 0o755); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(o.out), filepath.Base(o.out)+".new-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	if err := o.files(ctx, s, of, dir); err != nil {
		return err
	}
	if err := o.push(ctx, s.root, of.host, dir, stderr); err != nil {
		return err
	}
	subjects, err := checksums(ctx, dir)
	if err != nil {
		return err
	}
	if key == nil {
		fmt.Fprintln(stderr, "warning: nothing is signed, and there is no provenance: there is no KEY")
	} else if err := o.writeProvenance(filepath.Join(dir, "slipway_"+o.number()+".provenance.sigstore.json"), s, of, subjects, key); err != nil {
		return err
	}
	if err := os.Remove(o.out); err != nil && !errors.Is(err, os.ErrNotExist) { // it is empty
		return err
	}
	return os.Rename(dir, o.out)
}

// files writes what is made of the programs into the folder dir.
func (o *options) files(ctx context.Context, s *source, of *programs, dir string) error {
	work, err := os.MkdirTemp("", "slipway-release-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	texts, err := o.texts(ctx, s, of.host, work)
	if err != nil {
		return err
	}
	sums := map[string]string{}
	for _, p := range of.targets {
		name := filepath.Join(dir, o.archiveName(p.system))
		if err := archive(name, o.named(p.system), append([]file{{p.file(), p.path, 0o755}}, texts...), s.at); err != nil {
			return err
		}
		if sums[p.system], err = bundle.Sum(ctx, name); err != nil {
			return err
		}
		list, err := sbom.Program(o.version, p.digest, p.build)
		if err != nil {
			return fmt.Errorf("list what the program for %s is made of: %w", p.system, err)
		}
		if err := os.WriteFile(filepath.Join(dir, o.named(p.system)+".cdx.json"), list, 0o644); err != nil {
			return err
		}
		if arch, ok := strings.CutPrefix(p.system, "linux/"); ok {
			if err := o.debianPackage(filepath.Join(dir, "slipway_"+o.number()+"_"+arch+".deb"), s, p, texts, work); err != nil {
				return err
			}
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "notes.md"), []byte(s.notes+"\n"), 0o644); err != nil {
		return err
	}
	return o.writeFormula(filepath.Join(dir, "slipway.rb"), sums)
}

// push pushes the bundles, with the program that is released, and puts the lock file into the
// folder dir, with its signature if there is a key, and their SBOM and provenance. The program of
// the first must be compiled from the same sources, and the lock file of the Dagger module, if the
// commit has one, be the same.
func (o *options) push(ctx context.Context, root string, p program, dir string, stderr io.Writer) error {
	switch {
	case o.registry == "":
		return nil
	case o.dry:
		fmt.Fprintf(stderr, "dry run: nothing is pushed to %s\n", o.registry)
		return nil
	}
	push := []string{"bundle", "push", o.bundle, "--to", o.registry, "--lock-out", filepath.Join(dir, lockFile)}
	if o.key != "" {
		push = append(push, "--key", o.key)
	}
	calls := [][]string{{"lock", "verify", "--bundle", o.bundle}, push}
	bundles := map[string]string{runtime.GOARCH: o.bundle}
	if folder, digest, ok := strings.Cut(o.other, "@"); ok {
		calls = append(calls, append(slices.Replace(slices.Clone(push), 2, 3, folder), "--merge", "--bundle-digest", digest))
		bundles[otherArch()] = folder
	}
	for _, args := range calls {
		cmd := exec.CommandContext(ctx, p.path, args...)
		cmd.Stdout, cmd.Stderr = stderr, stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("slipway %s: %w", strings.Join(args[:2], " "), err)
		}
	}
	for arch, folder := range bundles {
		if err := copyTexts(folder, filepath.Join(dir, "slipway_"+o.number()+"_bundle_"+arch)); err != nil {
			return err
		}
	}
	return sameLock(filepath.Join(root, moduleLock), filepath.Join(dir, lockFile), o.version, stderr)
}

// otherArch is the architecture that bundles are built for besides this machine's.
func otherArch() string {
	if runtime.GOARCH == "arm64" {
		return "amd64"
	}
	return "arm64"
}

// copyTexts copies what the bundle in a folder says it consists of, and is made from, to files
// whose names begin with to.
func copyTexts(folder, to string) error {
	for from, suffix := range map[string]string{bundle.SBOMFile: ".cdx.json", bundle.ProvenanceFile: ".provenance.json"} {
		text, err := os.ReadFile(filepath.Join(folder, from))
		if err != nil {
			return fmt.Errorf("read what the bundle says of itself: %w", err)
		}
		if err := os.WriteFile(to+suffix, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// The lock file of a release, and that with which its Dagger module finds images (ci/origin).
const (
	lockFile   = "slipway.lock.json"
	moduleLock = "ci/" + lockFile
)

// sameLock compares the module's lock file, which may be missing, with the release's.
func sameLock(module, release, version string, stderr io.Writer) error {
	has, err := os.ReadFile(module)
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(stderr, "warning: the commit has no %s: dagger call -m URL@%s needs --lock\n", moduleLock, version)
		return nil
	}
	if err != nil {
		return err
	}
	wants, err := os.ReadFile(release)
	if err != nil {
		return err
	}
	if !bytes.Equal(has, wants) {
		return refused(fmt.Errorf("%s is not that of the bundle that was pushed: slipway bundle push DIR --to HOST/PATH --lock-out %s writes it; commit it and tag that commit", moduleLock, moduleLock))
	}
	return nil
}
