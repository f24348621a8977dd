// Package lock holds lock.yaml, the one list of the tools, images and manifests
// that a run uses: versions and the origins each may come from. It is not the lock of a
// deployment, which is pipeline/lock.
package lock

import (
	_ "embed"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/fault"
)

// Format is the version of lock.yaml that this package reads.
const Format = 1

// maxText is how much a lock may have: the program's own has 60 kB. An empty image takes two bytes of
// it, and hundreds of memory.
const maxText = 4 << 20

//go:embed lock.yaml
var embedded []byte

// Lock is the content of lock.yaml.
type Lock struct {
	Version   int        `json:"version"` // Format
	Suite     string     `json:"suite"`   // Debian release that the packages come from
	Tools     []Tool     `json:"tools"`
	Images    []Image    `json:"images"`
	Manifests []Manifest `json:"manifests"`
	// Packages are the Debian packages of all images, by platform, sorted by name.
	Packages map[string][]Package `json:"packages,omitempty"`
}

// Tool is a program of the toolchain.
type Tool struct {
	Name    string   `json:"name"`
	Version string   `json:"version"` // without leading v
	Modules []Module `json:"modules"`
}

// Image is a container image.
type Image struct {
	Name     string   `json:"name"` // short name
	Version  string   `json:"version"`
	Workload bool     `json:"workload,omitempty"` // runs in the cluster
	OnDemand bool     `json:"onDemand,omitempty"` // only in the bundle of a platform that names it
	Modules  []Module `json:"modules,omitempty"`
	Debian   []string `json:"debian,omitempty"` // packages beyond Debian's minimum
	Source   string   `json:"source,omitempty"` // folder of this repository
	// StandsFor are upstream references that the image is used in place of, as
	// imageref.Normal writes them.
	StandsFor []string `json:"standsFor,omitempty"`
}

// Manifest is a directory of the bundle's manifests: files with Kubernetes objects out of a
// module.
type Manifest struct {
	Name     string            `json:"name"`
	Version  string            `json:"version"`
	OnDemand bool              `json:"onDemand,omitempty"` // only in the bundle of a platform that names it
	Modules  []Module          `json:"modules"`
	Files    map[string]string `json:"files"` // sha256 by path in the module; the last parts of the paths differ
}

// Place is where a bundle has the file that has that path in the module.
func (m Manifest) Place(file string) string { return "manifests/" + m.Name + "/" + path.Base(file) }

// Module is a Go module as an origin.
type Module struct {
	Path    string `json:"path"`
	Version string `json:"version"`
	Sum     string `json:"sum"`               // "h1:…", as in go.sum
	Package string `json:"package,omitempty"` // of the command, relative to the module
}

// Origin is how a bundle's index writes the module: "go:<path>@<version>" and
// "#<package>" where the command is not at its root.
func (m Module) Origin() string {
	origin := "go:" + m.Path + "@" + m.Version
	if m.Package != "" {
		origin += "#" + m.Package
	}
	return origin
}

// Load reads the lock that this program was built with. One that cannot be read is a bug.
func Load() (*Lock, error) { return own(embedded) }

func own(data []byte) (*Lock, error) {
	l, err := Parse(data)
	if err != nil {
		return nil, &fault.Fault{
			Code: fault.CodeBug, Class: fault.Bug, Op: "read lock.yaml",
			Fix: "restore it: git checkout containers/lock/lock.yaml", Err: err,
		}
	}
	return l, nil
}

// Parse reads a lock, YAML or JSON, and reports every problem at once. Its error
// has no code: that depends on whose lock it is.
func Parse(data []byte) (*Lock, error) {
	if len(data) > maxText {
		return nil, bounded.TooLarge("", maxText)
	}
	var l Lock
	if err := yaml.UnmarshalStrict(data, &l); err != nil {
		return nil, bounded.Error(err)
	}
	if err := l.Validate(); err != nil {
		return nil, err
	}
	return &l, nil
}

// Versions are those of the tools, by name.
func (l *Lock) Versions() map[string]string {
	versions := map[string]string{}
	for _, t := range l.Tools {
		versions[t.Name] = t.Version
	}
	return versions
}

// Image is the image of that short name.
func (l *Lock) Image(name string) (Image, bool) {
	at := slices.IndexFunc(l.Images, func(i Image) bool { return i.Name == name })
	if at < 0 {
		return Image{}, false
	}
	return l.Images[at], true
}

var name = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// Validate reports every problem at once: what is malformed or listed twice. What a lock of this
// program has besides, such as versions and sums, package tests hold, and VerifyFile compares.
func (l *Lock) Validate() error {
	if l.Version != Format {
		return fmt.Errorf("its version is %d, this Slipway reads version %d", l.Version, Format)
	}
	var p problems
	seen, overrides := map[string]bool{}, map[string]bool{}
	for _, t := range l.Tools {
		p.name("tool "+t.Name, t.Name, seen)
	}
	for _, i := range l.Images {
		at := "image " + i.Name
		p.name(at, i.Name, seen)
		bundle.CheckStandsFor(i.StandsFor, overrides, func(err error) { p.add(at, "%w", err) })
	}
	p.packages(l.Packages)
	for _, m := range l.Manifests {
		p.name("manifest "+m.Name, m.Name, seen)
	}
	return errors.Join(p.Problems...)
}

// problems are those of a lock, each with what it is of.
type problems struct{ bounded.Problems }

// add notes a problem. What it is of is named by others, so that at is no part of a format.
func (p *problems) add(at, format string, args ...any) {
	p.Add("%.200s: "+format, append([]any{at}, args...)...)
}

func (p *problems) name(at, n string, seen map[string]bool) {
	if !name.MatchString(n) {
		p.add(at, "%q is no name", n)
	}
	if seen[at] {
		p.add(at, "is listed twice")
	}
	seen[at] = true
}
