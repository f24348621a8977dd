package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/ci/dev/build/gotool"
	"github.com/slipway-sh/slipway/ci/dev/build/store"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/inventory"
	"github.com/slipway-sh/slipway/containers/lock"
)

// pin writes the Debian packages of the bundle of this machine into lock.yaml. apt has
// compared their digests with Debian's signed lists when it installed them.
func pin(ctx context.Context, o choice, stdout io.Writer) error {
	st, err := store.Open("")
	if err != nil {
		return err
	}
	dir, _, err := build(ctx, st, o)
	if err != nil {
		return err
	}
	b, err := bundle.Read(dir)
	if err != nil {
		return err
	}
	images, err := inventory.Read(ctx, b)
	if err != nil {
		return err
	}
	versions := map[string]string{}
	var problems []error
	for _, image := range sortedNames(images) {
		for name, version := range images[image] {
			if other, ok := versions[name]; ok && other != version {
				problems = append(problems, fmt.Errorf("the images have %s as %s and as %s: remove the older layer from the store at %s", name, other, version, st.Path()))
			}
			versions[name] = version
		}
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	packages, err := digests(ctx, versions)
	if err != nil {
		return err
	}
	source, err := gotool.Checkout()
	if err != nil {
		return err
	}
	file := filepath.Join(source, "containers/lock/lock.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if text, err = withPackages(text, b.Platform, packages); err != nil {
		return err
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s pins %d Debian packages for %s\n", file, len(packages), b.Platform)
	return nil
}

// digests asks apt's lists for the digests of packages.
func digests(ctx context.Context, versions map[string]string) ([]lock.Package, error) {
	args := []string{"show"}
	for _, name := range sortedNames(versions) {
		args = append(args, name+"="+versions[name])
	}
	cmd := exec.CommandContext(ctx, "apt-cache", args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("ask apt for the digests of packages: %w; run apt-get update, or build the layers anew", err)
	}
	found := map[string]lock.Package{}
	var p lock.Package
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		switch key, value, _ := strings.Cut(lines.Text(), ": "); key {
		case "Package":
			p = lock.Package{Name: value}
		case "Version":
			p.Version = value
		case "SHA256":
			p.SHA256 = value
			found[p.Name+" "+p.Version] = p
		}
	}
	var all []lock.Package
	var problems []error
	for _, name := range sortedNames(versions) {
		if p, ok := found[name+" "+versions[name]]; ok {
			all = append(all, p)
		} else {
			problems = append(problems, fmt.Errorf("apt's lists have no %s %s: run apt-get update, or build the layers anew", name, versions[name]))
		}
	}
	return all, errors.Join(problems...)
}

// withPackages is a lock.yaml with these pins for platform, in its last section.
func withPackages(text []byte, platform string, packages []lock.Package) ([]byte, error) {
	l, err := lock.Parse(text)
	if err != nil {
		return nil, err
	}
	all := map[string][]lock.Package{platform: packages}
	for other, pins := range l.Packages {
		if other != platform {
			all[other] = pins
		}
	}
	const section = "\n# Every Debian package of the images: make pins.\npackages:\n"
	before, _, _ := strings.Cut(string(text), section)
	var out strings.Builder
	out.WriteString(strings.TrimRight(before, "\n") + "\n" + section)
	for _, platform := range sortedNames(all) {
		fmt.Fprintf(&out, "  %s:\n", platform)
		for _, p := range slices.SortedFunc(slices.Values(all[platform]), func(a, b lock.Package) int { return strings.Compare(a.Name, b.Name) }) {
			fmt.Fprintf(&out, "    - {name: %s, version: %q, sha256: %s}\n", p.Name, p.Version, p.SHA256)
		}
	}
	_, err = lock.Parse([]byte(out.String()))
	return []byte(out.String()), err
}
