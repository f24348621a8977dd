package lock

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/fault"
)

// Package is a Debian package as the images of a bundle have it.
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version"` // Debian's, such as "1:2.39.5-0+deb12u3"
	SHA256  string `json:"sha256"`  // of the .deb, as Debian's signed lists have it
}

// CodePackages: images of the bundle have other Debian packages than the lock pins.
const CodePackages fault.Code = "LCK-004"

// VerifyPackages compares the packages that images have, by image and name, with those that
// are pinned for platform. It fails with CodePackages and names every difference. A platform
// without pins is not compared. Images that the bundle does not have may need more of them.
func (l *Lock) VerifyPackages(platform string, images map[string]map[string]string) error {
	pins, ok := l.Packages[platform]
	if !ok {
		return nil
	}
	pinned := map[string]string{}
	for _, p := range pins {
		pinned[p.Name] = p.Version
	}
	var p problems
	for _, image := range slices.Sorted(maps.Keys(images)) {
		for _, name := range slices.Sorted(maps.Keys(images[image])) {
			switch have, want := images[image][name], pinned[name]; {
			case want == "":
				p.add("image "+image, "it has the package %s %s, which the lock does not have", name, have)
			case have != want:
				p.add("image "+image, "it has the package %s %s, the lock says %s", name, have, want)
			}
		}
	}
	if len(p.Problems) == 0 {
		return nil
	}
	return &fault.Fault{Code: CodePackages, Class: fault.Preflight, Op: "compare the bundle's Debian packages with the lock", Err: errors.Join(p.Problems...),
		Fix: "use the bundle of the machine to compare with, or push it: slipway bundle push DIR HOST/PATH; if the newer packages are intended, pin them: make pins"}
}

func (p *problems) packages(by map[string][]Package) {
	for platform, pins := range by {
		if !slices.Contains([]string{"linux/amd64", "linux/arm64"}, platform) {
			p.add("packages", "%q is neither linux/amd64 nor linux/arm64", platform)
		}
		for i, pin := range pins {
			if pin.Name == "" || pin.Version == "" || !bundle.IsSHA256(pin.SHA256) {
				p.add("packages of "+platform, "%q: name, version and sha256 are required", pin.Name)
			}
			if i > 0 && pins[i-1].Name >= pin.Name {
				p.add("packages of "+platform, "%s is not sorted, or listed twice", pin.Name)
			}
		}
	}
}

// LineOf is the digest by which machines are compared: equal where the pins of l, the tools,
// the manifests and the images of the lock in a bundle are, whatever images were added to it.
// It is that of these lines, each with a newline:
//
//	slipway lock 1
//	platform PLATFORM
//	pins SHA256                          of lock.yaml as JSON, with the Debian packages
//	tool NAME VERSION ORIGIN SHA256      of each tool, sorted by name; slipway is one
//	manifest NAME VERSION ORIGIN SHA256  of each file of a manifest
//	image NAME DIGEST                    of each image of the lock
func LineOf(l *Lock, x bundle.Index) (string, error) {
	pins, err := l.Digest()
	if err != nil {
		return "", err
	}
	lines := []string{}
	for _, f := range x.Files {
		if f.Kind == bundle.Tool || f.Kind == bundle.Manifest {
			lines = append(lines, fmt.Sprintf("%s %s %s %s %s", f.Kind, f.Name, f.Version, f.Origin, f.SHA256))
		}
	}
	for _, i := range x.Images {
		if _, ok := l.Image(i.Name); ok && !i.Added() {
			lines = append(lines, "image "+i.Name+" "+i.Digest)
		}
	}
	slices.Sort(lines)
	lines = append([]string{"slipway lock 1", "platform " + x.Platform, "pins " + strings.TrimPrefix(pins, "sha256:")}, lines...)
	return bundle.DigestOf([]byte(strings.Join(lines, "\n") + "\n")), nil
}

// Digest is the sha256 ("sha256:<hex>") of the pins as JSON, with the Debian packages.
func (l *Lock) Digest() (string, error) {
	text, err := json.Marshal(l)
	if err != nil {
		return "", fmt.Errorf("encode the lock: %w", err)
	}
	return bundle.DigestOf(text), nil
}
