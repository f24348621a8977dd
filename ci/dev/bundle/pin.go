package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/ci/dev/build"
	"github.com/slipway-sh/slipway/ci/dev/build/debian"
	"github.com/slipway-sh/slipway/ci/dev/build/gotool"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/containers/ociarchive"
)

// pin builds a bundle and writes the Debian packages of its images into lock.yaml, with the digests
// in Debian's signed lists.
func pin(ctx context.Context, o choice, stdout io.Writer) error {
	packages, err := installed(ctx, o)
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
	platform := "linux/" + o.arch
	if text, err = withPackages(text, platform, packages); err != nil {
		return err
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s pins %d Debian packages for %s\n", file, len(packages), platform)
	return nil
}

// installed are the packages of the images of a bundle, which it builds.
func installed(ctx context.Context, o choice) ([]lock.Package, error) {
	made, err := buildBundle(ctx, o)
	if err != nil {
		return nil, err
	}
	b, err := bundle.Read(made.dir)
	if err != nil {
		return nil, err
	}
	images, err := ociarchive.Packages(ctx, b)
	if err != nil {
		return nil, err
	}
	versions, err := merge(images)
	if err != nil {
		return nil, fmt.Errorf("%w: remove the older layer below %s", err, filepath.Join(made.dir, "../../objects"))
	}
	lists, err := fetchLists(ctx, o)
	if err != nil {
		return nil, err
	}
	defer lists.Close()
	return digests(ctx, lists, versions)
}

// fetchLists fetches the package lists of Debian's release in lock.yaml for an architecture: this
// machine's own may be older, or of other sources.
func fetchLists(ctx context.Context, o choice) (lists debian.Lists, err error) {
	l, err := lock.Load()
	if err != nil {
		return lists, err
	}
	release, err := debian.HostRelease("/")
	if err == nil {
		err = sameSuite(release, l)
	}
	if err != nil {
		return lists, err
	}
	release.Arch = o.arch
	return debian.FetchLists(ctx, release)
}

func merge(images map[string]map[string]string) (map[string]string, error) {
	versions := map[string]string{}
	var problems []error
	for _, image := range sortedNames(images) {
		for name, version := range images[image] {
			if other, ok := versions[name]; ok && other != version {
				problems = append(problems, fmt.Errorf("the images have %s as %s and as %s", name, other, version))
			}
			versions[name] = version
		}
	}
	return versions, errors.Join(problems...)
}

// digests asks apt's lists for the digests of packages.
func digests(ctx context.Context, lists debian.Lists, versions map[string]string) ([]lock.Package, error) {
	var args []string
	for _, name := range sortedNames(versions) {
		args = append(args, name+"="+versions[name])
	}
	out, err := lists.Show(ctx, args)
	if err != nil {
		return nil, fmt.Errorf("ask apt for the digests of packages: %w; build the layers anew", err)
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
			problems = append(problems, fmt.Errorf("apt's lists have no %s %s: build the layers anew", name, versions[name]))
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

// outdated fails if Debian has a security update for a package that the lock pins.
func outdated(ctx context.Context, o choice) error {
	l, err := lock.Load()
	if err != nil {
		return err
	}
	lists, err := fetchLists(ctx, o)
	if err != nil {
		return err
	}
	defer lists.Close()
	versions := map[string]string{}
	for _, p := range l.Packages["linux/"+o.arch] {
		versions[p.Name] = p.Version
	}
	root, err := build.StoreRoot()
	if err != nil {
		return err
	}
	return lists.RequireUpdated(ctx, versions, "remove bundle-base, bundle-root and bundle-layer-* below "+filepath.Join(root, "objects")+", which are built again; then run: make pins")
}
