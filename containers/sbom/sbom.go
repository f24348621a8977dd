// Package sbom lists what a bundle holds or a released program is made of, as a CycloneDX document:
// Slipway's program with its Go modules, the tools of the toolchain, and the images by digest with
// what they are made of.
package sbom

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
)

// Of is what a document is about.
type Of struct {
	Version string // of Slipway
	Pins    *lock.Lock
	Bundle  *bundle.Bundle
	// Packages are the Debian packages of images, versions by image and name.
	Packages map[string]map[string]string
	// Builds say what programs were built from, by name of the tool or image. For the others, the
	// document has the lock's modules.
	Builds map[string]*debug.BuildInfo
}

// Document returns the document, JSON: the same bytes for the same content.
func Document(of Of) ([]byte, error) {
	sum := func(tool string) string { f, _ := of.Bundle.Tool(tool); return f.SHA256 }
	all := []cyclonedx.Component{program(of.Version, sum("slipway"), of.Builds["slipway"])}
	for _, t := range of.Pins.Tools {
		c := cyclonedx.Component{
			BOMRef: "tool/" + t.Name, Type: cyclonedx.ComponentTypeApplication, Name: t.Name, Version: t.Version, Hashes: hashes(sum(t.Name)),
		}
		c.Components = list(made(c.BOMRef, of.Builds[t.Name], t.Modules))
		all = append(all, c)
	}
	pinned := map[string]lock.Package{}
	for _, p := range of.Pins.Packages[of.Bundle.Platform] {
		pinned[p.Name] = p
	}
	for name, ref := range of.Bundle.Images() {
		all = append(all, of.image(name, ref, pinned))
	}
	slices.SortStableFunc(all, func(a, b cyclonedx.Component) int { return strings.Compare(a.BOMRef, b.BOMRef) })
	bom := cyclonedx.NewBOM()
	bom.SerialNumber = serial(of.Bundle.ReadDigest(), of.Version)
	bom.Metadata = &cyclonedx.Metadata{Component: &cyclonedx.Component{
		BOMRef: "bundle", Type: cyclonedx.ComponentTypeApplication, Name: "slipway-bundle", Version: of.Bundle.ReadDigest(),
	}}
	bom.Components = &all
	return encode(bom)
}

// Program is the document about the program slipway of one system: its Go modules. sum is its own
// sha256, in hex.
func Program(version, sum string, build *debug.BuildInfo) ([]byte, error) {
	c := program(version, sum, build)
	bom := cyclonedx.NewBOM()
	bom.SerialNumber = serial("sha256:"+sum, version)
	bom.Components, c.Components = c.Components, nil
	bom.Metadata = &cyclonedx.Metadata{Component: &c}
	return encode(bom)
}

func encode(bom *cyclonedx.BOM) ([]byte, error) {
	var out bytes.Buffer
	err := cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).EncodeVersion(bom, cyclonedx.SpecVersion1_6)
	return out.Bytes(), err
}

// serial is a UUID (version 8, of its own kind) made of what the document is about.
func serial(digest, version string) string {
	b := sha256.Sum256([]byte("\n" + digest + "\n" + version))
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// program is Slipway itself, with the modules that it was built from.
func program(version, sum string, build *debug.BuildInfo) cyclonedx.Component {
	return cyclonedx.Component{
		BOMRef: "slipway", Type: cyclonedx.ComponentTypeApplication, Name: "slipway", Version: version,
		Hashes: hashes(sum), Components: list(modules("slipway", build)),
	}
}

// made is what a program was built from, or the lock's modules where that is not known.
func made(of string, build *debug.BuildInfo, pinned []lock.Module) []cyclonedx.Component {
	if build != nil {
		return modules(of, build)
	}
	var all []cyclonedx.Component
	for _, m := range pinned {
		all = append(all, module(of, m.Path, m.Version, m.Sum))
	}
	return all
}

// modules are those that a program was built from, and Go's own.
func modules(of string, build *debug.BuildInfo) []cyclonedx.Component {
	if build == nil {
		return nil
	}
	var all []cyclonedx.Component
	for _, m := range build.Deps {
		if m.Replace != nil && m.Replace.Sum != "" { // else it is a folder
			m = m.Replace
		}
		all = append(all, module(of, m.Path, m.Version, m.Sum))
	}
	return append(all, module(of, "std", build.GoVersion, ""))
}

// module is a Go module that the component called of is made of.
func module(of, path, version, sum string) cyclonedx.Component {
	c := cyclonedx.Component{
		BOMRef: of + "|" + path, Type: cyclonedx.ComponentTypeLibrary, Name: path, Version: version,
		PackageURL: "pkg:golang/" + path + "@" + url.PathEscape(version),
	}
	if path == "std" { // whose versions are go1.26.0 and so on
		c.PackageURL = "pkg:golang/std@" + strings.TrimPrefix(version, "go")
	}
	if sum != "" {
		c.Properties = &[]cyclonedx.Property{{Name: "slipway:go.sum", Value: sum}}
	}
	return c
}

// image is an image by digest, with the modules that it is built from and the Debian packages
// that it has; those that the lock pins so for this platform by digest.
func (of Of) image(name, ref string, pinned map[string]lock.Package) cyclonedx.Component {
	known, _ := of.Pins.Image(name)
	repository, digest, _ := strings.Cut(ref, "@")
	c := cyclonedx.Component{
		BOMRef: "image/" + name, Type: cyclonedx.ComponentTypeContainer, Name: name, Version: known.Version, Hashes: hashes(strings.TrimPrefix(digest, "sha256:")),
		PackageURL: "pkg:oci/" + repository[strings.LastIndexByte(repository, '/')+1:] + "@" + url.QueryEscape(digest) + "?repository_url=" + url.QueryEscape(repository),
	}
	have := of.Packages[name]
	parts := made(c.BOMRef, of.Builds[name], known.Modules)
	for _, p := range slices.Sorted(maps.Keys(have)) {
		part := cyclonedx.Component{
			BOMRef: c.BOMRef + "|deb/" + p, Type: cyclonedx.ComponentTypeLibrary, Name: p, Version: have[p],
			PackageURL: "pkg:deb/debian/" + p + "@" + url.QueryEscape(have[p]) + "?distro=" + of.Pins.Suite,
		}
		if pin := pinned[p]; pin.SHA256 != "" && pin.Version == part.Version {
			part.Hashes = hashes(pin.SHA256)
		}
		parts = append(parts, part)
	}
	c.Components = list(parts)
	return c
}

func hashes(sum string) *[]cyclonedx.Hash {
	if sum == "" {
		return nil
	}
	return &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: sum}}
}

func list(c []cyclonedx.Component) *[]cyclonedx.Component {
	if len(c) == 0 {
		return nil
	}
	return &c
}
