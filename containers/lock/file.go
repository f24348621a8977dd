package lock

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/imageref"
)

// CodeFile: the lock file that was given cannot be read or understood;
// all of its problems are listed.
const CodeFile fault.Code = "LCK-003"

// File is a lock file, slipway.lock.json: which bundles `slipway bundle push` put into a registry,
// one for each platform. An image is below Location, at its bundle.Image.Repository.
type File struct {
	Version  int               `json:"version"`  // Format
	Location string            `json:"location"` // host[:port]/path
	Bundles  map[string]Pushed `json:"bundles"`  // by platform
}

// Pushed is a bundle in a registry. Its images have the digests of the index, but for that of the
// toolchain, onto which the push puts the tools; the manifests are in an image of their own.
type Pushed struct {
	Toolchain string       `json:"toolchain"` // digest
	Manifests string       `json:"manifests"` // digest
	Index     bundle.Index `json:"index"`     // of the bundle
}

// The names of images that a push makes.
const (
	Toolchain = "toolchain" // the bundle's image of that name, with the tools
	Manifests = "manifests" // the files of manifests/, without a system
)

// Digest is that of an image of the bundle in the registry.
func (p Pushed) Digest(i bundle.Image) string {
	if i.Name == Toolchain {
		return p.Toolchain
	}
	return i.Digest
}

// Read reads the lock file that `slipway bundle push` wrote, and gives its text, too. It
// fails with CodeFile where there is none or it cannot be understood.
func Read(path string) (*File, []byte, error) {
	data, err := bounded.File(path, 2*maxText) // with the indexes of two bundles
	if err != nil {
		return nil, nil, unusable(err)
	}
	f, err := ParseFile(data)
	if err != nil {
		return nil, nil, unusable(fmt.Errorf("%s: %w", path, err))
	}
	return f, data, nil
}

// ParseFile reads the text of a lock file, and reports every problem at once.
func ParseFile(data []byte) (*File, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var f File
	if err := decoder.Decode(&f); err != nil {
		return nil, bounded.Error(err)
	}
	return &f, f.validate()
}

func unusable(err error) error {
	return &fault.Fault{Code: CodeFile, Class: fault.Usage, Op: "read the lock file", Err: err,
		Fix: "give the path of a lock file, or write one: slipway bundle push DIR HOST/PATH --out slipway.lock.json"}
}

// repository is one part of a path in a registry.
var repository = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*$`)

func (f *File) validate() error {
	if f.Version != Format {
		return fmt.Errorf("its version is %d, this Slipway reads version %d", f.Version, Format)
	}
	var p problems
	if f.Location != "" && !imageref.IsRegistry(f.Location) {
		p.add("location", "%q is no registry, host[:port][/path]", f.Location)
	}
	if len(f.Bundles) == 0 {
		p.add("bundles", "the list is empty")
	}
	for _, platform := range f.Platforms() {
		of := f.Bundles[platform]
		if platform != of.Index.Platform {
			p.add("bundles", "that of %q is for %q", platform, of.Index.Platform)
		}
		if !bundle.IsDigest(of.Toolchain) || !bundle.IsDigest(of.Manifests) {
			p.add(platform, "the digests of toolchain and manifests are required")
		}
		for _, i := range of.Index.Images {
			if is := i.Repository(); !repository.MatchString(is) || is == Manifests {
				p.add(platform, "image %q: %q is no path in a registry", i.Name, is)
			}
		}
		if err := of.Index.Validate(); err != nil {
			p.add(platform, "%w", err)
		}
	}
	return errors.Join(p.Problems...)
}

// Platforms are those that the file has a bundle for, sorted.
func (f *File) Platforms() []string { return slices.Sorted(maps.Keys(f.Bundles)) }

// Marshal is the file as indented JSON, the same bytes for the same content.
func (f *File) Marshal() ([]byte, error) {
	if err := f.validate(); err != nil {
		return nil, fmt.Errorf("write the lock file: %w", err)
	}
	data, err := json.MarshalIndent(f, "", "  ")
	return append(data, '\n'), err
}

// VerifyFile compares the bundles of a lock file with the lock of this program, as Verify does. It
// fails with bundle.CodeLock and names every difference.
func (l *Lock) VerifyFile(f *File) error {
	var problems []error
	for _, platform := range f.Platforms() {
		if err := l.Verify(&bundle.Bundle{Index: f.Bundles[platform].Index}); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", platform, errors.Unwrap(err)))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return &fault.Fault{
		Code: bundle.CodeLock, Class: fault.Preflight, Op: "compare the lock file with that of this program", Err: errors.Join(problems...),
		Fix: "use the Slipway whose bundle was pushed; or push the bundle of this one, and use the lock that this writes: slipway bundle push DIR HOST/PATH",
	}
}

// Override is an image that is used in place of others. slipway-node reads it.
type Override struct {
	Image     string   `json:"image,omitempty"` // its name in the archives of a bundle
	Path      string   `json:"path,omitempty"`  // of its repository, below the registry's
	Digest    string   `json:"digest"`          // of its manifest
	Index     string   `json:"index,omitempty"` // of the index by which its registry knows it
	StandsFor []string `json:"standsFor"`       // the references of the others
}
