// Package provenance says what a bundle was built from, as SLSA provenance: the predicate of
// an in-toto statement about the bundle's index.
package provenance

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/containers/lock"
)

// PredicateType is the type of provenance in statements.
const PredicateType = "https://slsa.dev/provenance/v1"

const (
	buildType = "https://slipway.sh/bundle/v1"
	builder   = "https://slipway.sh/make-bundle"
)

// Provenance is SLSA provenance, version 1. It names no time and no machine: the same bundle
// comes of the same inputs on any.
type Provenance struct {
	BuildDefinition BuildDefinition `json:"buildDefinition"`
	RunDetails      RunDetails      `json:"runDetails"`
}

// BuildDefinition is what was built from what.
type BuildDefinition struct {
	BuildType            string       `json:"buildType"`
	ExternalParameters   Parameters   `json:"externalParameters"`
	InternalParameters   Toolchains   `json:"internalParameters"`
	ResolvedDependencies []Dependency `json:"resolvedDependencies"` // sorted by URI
}

// Toolchains are what a bundle is built with.
type Toolchains struct {
	Go     []string `json:"go"`     // versions: "go1.26.3"
	Debian string   `json:"debian"` // suite
}

// Parameters are what who builds a bundle chooses.
type Parameters struct {
	Platform  string   `json:"platform"`            // "linux/amd64"
	OnDemand  []string `json:"onDemand,omitempty"`  // images that not every bundle has, sorted
	Manifests []string `json:"manifests,omitempty"` // directories of manifests that not every bundle has, sorted
}

// RunDetails say who built it.
type RunDetails struct {
	Builder struct {
		ID string `json:"id"`
	} `json:"builder"`
}

// Dependency is something that the bundle was built from. Digests are in hex; that of a Go
// module is its directory hash (h1); one that only a package manager knows is missing, and so is
// that of a module of which a copy was built, with other files in it.
type Dependency struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

// Of is what a bundle was built from.
type Of struct {
	Pins     *lock.Lock // with the manifests that the bundle has
	Platform string
	Sources  string                       // digest of those of slipway, "sha256:…"; empty: it is not in the bundle
	Builds   map[string]*debug.BuildInfo  // of the Go programs, by name
	Packages map[string]map[string]string // Debian packages of the images, versions by image and name
	Images   []string                     // short names
}

// New is the provenance of a bundle.
func New(of Of) (*Provenance, error) {
	pins := *of.Pins
	pins.Images = slices.DeleteFunc(slices.Clone(pins.Images), func(i lock.Image) bool { return !slices.Contains(of.Images, i.Name) })
	chosen := Parameters{Platform: of.Platform}
	for _, i := range pins.Images {
		if i.OnDemand {
			chosen.OnDemand = append(chosen.OnDemand, i.Name)
		}
	}
	slices.Sort(chosen.OnDemand)
	for _, m := range pins.Manifests {
		if m.OnDemand {
			chosen.Manifests = append(chosen.Manifests, m.Name)
		}
	}
	slices.Sort(chosen.Manifests)
	all, toolchains := map[string]Dependency{}, map[string]bool{}
	for _, build := range of.Builds {
		toolchains[build.GoVersion] = true
		if err := modules(all, build); err != nil {
			return nil, err
		}
	}
	for _, m := range pins.Modules() { // manifests and files of images, which are in no program
		if err := module(all, m.Path, m.Version, m.Sum); err != nil {
			return nil, err
		}
	}
	of.packages(all)
	sources(all, of.Sources)
	p := &Provenance{BuildDefinition: BuildDefinition{
		BuildType: buildType, ExternalParameters: chosen,
		InternalParameters: Toolchains{Go: slices.Sorted(maps.Keys(toolchains)), Debian: pins.Suite},
	}}
	p.RunDetails.Builder.ID = builder
	p.BuildDefinition.ResolvedDependencies = sorted(all)
	return p, nil
}

// Built is what programs were built from whose sources have this digest ("sha256:<hex>"):
// these, and their Go modules, sorted by URI.
func Built(digest string, builds map[string]*debug.BuildInfo) ([]Dependency, error) {
	all := map[string]Dependency{}
	sources(all, digest)
	for _, build := range builds {
		if err := modules(all, build); err != nil {
			return nil, err
		}
	}
	return sorted(all), nil
}

func sorted(all map[string]Dependency) (dependencies []Dependency) {
	for _, uri := range slices.Sorted(maps.Keys(all)) {
		dependencies = append(dependencies, all[uri])
	}
	return dependencies
}

func sources(all map[string]Dependency, digest string) {
	if sum, ok := strings.CutPrefix(digest, "sha256:"); ok {
		all[""] = Dependency{Name: "sources of slipway", Digest: map[string]string{"sha256": sum}}
	}
}

func modules(all map[string]Dependency, build *debug.BuildInfo) error {
	for _, m := range build.Deps {
		switch replaced := m.Replace; {
		case replaced == nil:
		case replaced.Sum != "":
			m = replaced
		case !strings.HasPrefix(m.Path, own): // a copy, in which files of ours take the place of some
			if uri := uriOf(m.Path, m.Version); all[uri].URI == "" {
				all[uri] = Dependency{URI: uri}
			}
			continue
		}
		if m.Sum == "" { // a folder of this repository
			continue
		}
		if err := module(all, m.Path, m.Version, m.Sum); err != nil {
			return err
		}
	}
	return nil
}

// own is what the modules of this repository begin with.
const own = "github.com/slipway-sh/slipway"

func uriOf(path, version string) string { return "pkg:golang/" + path + "@" + url.PathEscape(version) }

func module(all map[string]Dependency, path, version, h1 string) error {
	sum, ok := strings.CutPrefix(h1, "h1:")
	raw, err := base64.StdEncoding.DecodeString(sum)
	if !ok || err != nil {
		return fmt.Errorf("the module %s@%s has the sum %q", path, version, h1)
	}
	uri := uriOf(path, version)
	all[uri] = Dependency{URI: uri, Digest: map[string]string{"dirHash": hex.EncodeToString(raw)}}
	return nil
}

// packages are those of Debian, by digest where the lock pins the version.
func (of Of) packages(all map[string]Dependency) {
	pinned := map[string]lock.Package{}
	for _, p := range of.Pins.Packages[of.Platform] {
		pinned[p.Name] = p
	}
	for _, versions := range of.Packages {
		for name, version := range versions {
			d := Dependency{URI: "pkg:deb/debian/" + name + "@" + url.QueryEscape(version) + "?distro=" + of.Pins.Suite}
			if p := pinned[name]; p.Version == version && p.SHA256 != "" {
				d.Digest = map[string]string{"sha256": p.SHA256}
			}
			all[d.URI] = d
		}
	}
}

// Marshal is its JSON, the same bytes for the same content.
func (p *Provenance) Marshal() ([]byte, error) {
	text, err := json.MarshalIndent(p, "", "  ")
	return append(text, '\n'), err
}
