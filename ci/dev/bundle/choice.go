package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/ci/dev/build/gotool"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/imageref"
)

// codePlatform: a platform release that the bundle is for cannot be read, or names
// images that the lock does not have.
const codePlatform = "BUN-014"

// choice says what of the lock is in a bundle.
type choice struct {
	platforms []string // directories of platform releases: what is on demand and they name is in it; none: the reference platform's
	arch      string   // GOARCH that the bundle is for
}

// choose takes the images and manifests out of l that are not in the bundle, and returns what
// is left out: the images' names, and slipway if it is.
func (o choice) choose(l *lock.Lock) (left []string, err error) {
	var errs []error
	platforms := o.platforms
	if len(platforms) == 0 {
		source, err := gotool.Checkout()
		if err != nil {
			return nil, err
		}
		platforms = []string{filepath.Join(source, "examples/platform/1.0.0")}
	}
	var demanded, manifests []string
	for _, dir := range platforms {
		images, directories, err := namedBy(dir, l)
		errs = append(errs, err)
		demanded, manifests = append(demanded, images...), append(manifests, directories...)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	l.Images = slices.DeleteFunc(l.Images, func(i lock.Image) bool {
		if i.OnDemand && !slices.Contains(demanded, i.Name) {
			left = append(left, i.Name)
		}
		return slices.Contains(left, i.Name)
	})
	l.Manifests = slices.DeleteFunc(l.Manifests, func(m lock.Manifest) bool { return m.OnDemand && !slices.Contains(manifests, m.Name) })
	return left, nil
}

// namedBy are the images of the lock that a platform release names for its components,
// tests and workloads, by short names or by references that they stand for, and the
// directories of the bundle's manifests that its components name. Other references are
// slipway bundle add's. What else is wrong with a release, slipway validate says.
func namedBy(dir string, l *lock.Lock) (names, manifests []string, err error) {
	type part struct {
		Images []string `json:"images"`
		Bundle string   `json:"bundle"`
	}
	var release struct {
		Components []part `json:"components"`
		Tests      []part `json:"tests"`
		Workloads  []part `json:"workloads"`
	}
	data, err := os.ReadFile(filepath.Join(dir, "platform.yaml"))
	if err == nil {
		err = yaml.Unmarshal(data, &release)
	}
	if err != nil {
		return nil, nil, &fault.Fault{
			Class: fault.Preflight, Code: codePlatform, Op: "read the platform release " + dir, Err: err,
			Fix: "give the directory of a platform release: make bundle PLATFORM=DIR",
		}
	}
	var unknown []string
	for _, c := range slices.Concat(release.Components, release.Tests, release.Workloads) {
		if c.Bundle != "" {
			manifests = append(manifests, c.Bundle)
		}
		for _, name := range c.Images {
			if ref, err := imageref.Normal(name); err == nil && !imageref.IsShort(name) {
				for _, i := range l.Images {
					if slices.Contains(i.StandsFor, ref) {
						names = append(names, i.Name)
					}
				}
			} else if _, ok := l.Image(name); ok {
				names = append(names, name)
			} else if !slices.Contains(unknown, name) {
				unknown = append(unknown, name)
			}
		}
	}
	if len(unknown) > 0 {
		return nil, nil, &fault.Fault{
			Class: fault.Preflight, Code: codePlatform, Op: "find the images of the platform release " + dir,
			Fix: "enter them into containers/lock/lock.yaml, or name others in platform.yaml",
			Err: fmt.Errorf("the lock does not have: %s", strings.Join(unknown, ", ")),
		}
	}
	return names, manifests, nil
}
