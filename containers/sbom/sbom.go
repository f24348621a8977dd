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

	"github.com/slipway-sh/slipway/containers/lock"
)

// Of is what a document is about.
type Of struct {
	Version string // of Slipway
	Pins    *lock.Lock
	Images  Images
	// Packages are the Debian packages of images, versions by image and name.
	Packages map[string]map[string]string
	// Platform is that of the images, "linux/amd64".
	Platform string
	// Builds say what programs were built from, by name of the tool or image; of one that is not
	// in it the lock's modules are listed.
	Builds map[string]*debug.BuildInfo
}

// Images are the digests of tools and images.
type Images struct {
	All    string            // of everything below
	Tools  map[string]string // by name
	Images map[string]string // references by digest, by short name
}

// Document returns the document, JSON: the same bytes for the same content.
func Document(of Of) ([]byte, error) {
	all := []cyclonedx.Component{program(of)}
	for _, t := range of.Pins.Tools {
		all = append(all, tool(t, of))
	}
	all = append(all, images(of)...)
	slices.SortStableFunc(all, func(a, b cyclonedx.Component) int { return strings.Compare(a.BOMRef, b.BOMRef) })
	bom := cyclonedx.NewBOM()
	bom.SerialNumber = serial(of)
	bom.Metadata = &cyclonedx.Metadata{Component: &cyclonedx.Component{
		BOMRef: "bundle", Type: cyclonedx.ComponentTypeApplication, Name: "slipway-bundle", Version: of.Images.All,
	}}
	bom.Components = &all
	return encode(bom)
}

// Program is the document about the program slipway of one system: its Go modules. digest is
// its own ("sha256:<hex>").
func Program(version, digest string, build *debug.BuildInfo) ([]byte, error) {
	of := Of{Version: version, Images: Images{All: digest, Tools: map[string]string{"slipway": digest}}, Builds: map[string]*debug.BuildInfo{"slipway": build}}
	c := program(of)
	bom := cyclonedx.NewBOM()
	bom.SerialNumber = serial(of)
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
func serial(of Of) string {
	b := sha256.Sum256([]byte("\n" + of.Images.All + "\n" + of.Version))
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// program is Slipway itself, with the modules that it was built from.
func program(of Of) cyclonedx.Component {
	c := cyclonedx.Component{
		BOMRef: "slipway", Type: cyclonedx.ComponentTypeApplication, Name: "slipway", Version: of.Version,
		Hashes: hashes(of.Images.Tools["slipway"]),
	}
	c.Components = list(modules(c.BOMRef, of.Builds[c.Name]))
	return c
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

func tool(t lock.Tool, of Of) cyclonedx.Component {
	c := cyclonedx.Component{
		BOMRef: "tool/" + t.Name, Type: cyclonedx.ComponentTypeApplication, Name: t.Name, Version: t.Version, Hashes: hashes(of.Images.Tools[t.Name]),
	}
	c.Components = list(made(c.BOMRef, of.Builds[t.Name], t.Modules))
	return c
}

// images are those of the lock that the bundle has.
func images(of Of) (out []cyclonedx.Component) {
	pinned := map[string]lock.Package{}
	for _, p := range of.Pins.Packages[of.Platform] {
		pinned[p.Name] = p
	}
	for _, name := range slices.Sorted(maps.Keys(of.Images.Images)) {
		known, _ := of.Pins.Image(name)
		out = append(out, image(name, of.Images.Images[name], known, of.Pins.Suite, pinned, of.Packages[name], of.Builds[name]))
	}
	return out
}

// image is an image by digest, with the modules that it is built from and the Debian packages
// that it has, versions by name; those that the lock pins so for this platform by digest.
func image(name, ref string, i lock.Image, suite string, pinned map[string]lock.Package, have map[string]string, build *debug.BuildInfo) cyclonedx.Component {
	repository, digest, _ := strings.Cut(ref, "@")
	c := cyclonedx.Component{
		BOMRef: "image/" + name, Type: cyclonedx.ComponentTypeContainer, Name: name, Version: i.Version, Hashes: hashes(digest),
		PackageURL: "pkg:oci/" + repository[strings.LastIndexByte(repository, '/')+1:] + "@" + url.QueryEscape(digest) + "?repository_url=" + url.QueryEscape(repository),
	}
	parts := made(c.BOMRef, build, i.Modules)
	for _, p := range slices.Sorted(maps.Keys(have)) {
		part := cyclonedx.Component{
			BOMRef: c.BOMRef + "|deb/" + p, Type: cyclonedx.ComponentTypeLibrary, Name: p, Version: have[p],
			PackageURL: "pkg:deb/debian/" + p + "@" + url.QueryEscape(have[p]) + "?distro=" + suite,
		}
		if pin := pinned[p]; pin.SHA256 != "" && pin.Version == part.Version {
			part.Hashes = hashes("sha256:" + pin.SHA256)
		}
		parts = append(parts, part)
	}
	c.Components = list(parts)
	return c
}

// hashes are those of "sha256:…"; nil for none.
func hashes(digest string) *[]cyclonedx.Hash {
	sum, ok := strings.CutPrefix(digest, "sha256:")
	if !ok {
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
