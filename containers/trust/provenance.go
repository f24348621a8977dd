package trust

import (
	"encoding/json"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/containers/lock"
)

// ProvenanceType is the type of provenance in statements.
const ProvenanceType = "https://slsa.dev/provenance/v1"

const (
	buildType = "https://slipway.sh/bundle/v1"
	builder   = "https://slipway.sh/make-bundle"
)

// Provenance says what a bundle was built from, as SLSA provenance, version 1: the predicate of an
// in-toto statement about the bundle's index. It names no time and no machine: the same bundle
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
	ResolvedDependencies []Dependency `json:"resolvedDependencies"`
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

// Dependency is something that the bundle was built from. Digests are in hex.
type Dependency struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

// Build is what a bundle was built from. Digests are "sha256:<hex>".
type Build struct {
	Pins     *lock.Lock // with the images and manifests that the bundle has
	Platform string
	Sources  string                      // digest of those of slipway; empty: it is not in the bundle
	Contents string                      // digest of the bundle's SBOM, which lists every Go module and Debian package
	Builds   map[string]*debug.BuildInfo // of the Go programs, by name
}

// NewProvenance is the provenance of a bundle.
func NewProvenance(of Build) *Provenance {
	chosen, tools := Parameters{Platform: of.Platform}, Toolchains{Debian: of.Pins.Suite}
	for _, i := range of.Pins.Images {
		if i.OnDemand {
			chosen.OnDemand = append(chosen.OnDemand, i.Name)
		}
	}
	for _, m := range of.Pins.Manifests {
		if m.OnDemand {
			chosen.Manifests = append(chosen.Manifests, m.Name)
		}
	}
	for _, build := range of.Builds {
		tools.Go = append(tools.Go, build.GoVersion)
	}
	for _, list := range []*[]string{&chosen.OnDemand, &chosen.Manifests, &tools.Go} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	p := &Provenance{BuildDefinition: BuildDefinition{
		BuildType: buildType, ExternalParameters: chosen, InternalParameters: tools,
		ResolvedDependencies: []Dependency{named("contents of the bundle", of.Contents)},
	}}
	if of.Sources != "" {
		p.BuildDefinition.ResolvedDependencies = append(p.BuildDefinition.ResolvedDependencies, Sources(of.Sources))
	}
	p.RunDetails.Builder.ID = builder
	return p
}

// Sources are those of slipway, with this digest ("sha256:<hex>").
func Sources(digest string) Dependency { return named("sources of slipway", digest) }

func named(name, digest string) Dependency {
	return Dependency{Name: name, Digest: map[string]string{"sha256": strings.TrimPrefix(digest, "sha256:")}}
}

// Marshal is its JSON, the same bytes for the same content.
func (p *Provenance) Marshal() ([]byte, error) {
	text, err := json.MarshalIndent(p, "", "  ")
	return append(text, '\n'), err
}
