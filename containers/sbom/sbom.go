// Package sbom lists what a run executes, as a CycloneDX document: Slipway's program with its
// Go modules, the tools of the toolchain, and the images by digest with what they are made of.
package sbom

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"

	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/containers/lock"
)

// Of is what a document is about.
type Of struct {
	Run     string    // id
	At      time.Time // when the run began
	Version string    // of Slipway
	Pins    *lock.Lock
	Images  *containers.Images
	// Packages are the Debian packages of images, versions by image and name. Of an image that
	// is not in it, those are listed that the lock has it built from.
	Packages map[string]map[string]string
	// Platform is that of the images, "linux/amd64".
	Platform string
	Build    *debug.BuildInfo // of the program; nil: not known
	// Incomplete says that the run had more than is known.
	Incomplete bool
}

// Document returns the document, JSON: the same bytes for the same content.
func Document(of Of) ([]byte, error) {
	all := []cyclonedx.Component{program(of)}
	for _, t := range of.Pins.Tools {
		all = append(all, tool(t, of.Images.Tools[t.Name]))
	}
	all = append(all, images(of)...)
	slices.SortStableFunc(all, func(a, b cyclonedx.Component) int { return strings.Compare(a.BOMRef, b.BOMRef) })
	bom := cyclonedx.NewBOM()
	bom.SerialNumber = serial(of)
	bom.Metadata = &cyclonedx.Metadata{
		Timestamp: of.At.UTC().Format(time.RFC3339),
		Component: &cyclonedx.Component{BOMRef: "run", Type: cyclonedx.ComponentTypeApplication, Name: "slipway-run", Version: of.Run},
	}
	bom.Components = &all
	if of.Incomplete {
		bom.Compositions = &[]cyclonedx.Composition{{
			Aggregate: cyclonedx.CompositionAggregateIncomplete, Assemblies: &[]cyclonedx.BOMReference{cyclonedx.BOMReference(bom.Metadata.Component.BOMRef)},
		}}
	}
	var out bytes.Buffer
	err := cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).EncodeVersion(bom, cyclonedx.SpecVersion1_6)
	return out.Bytes(), err
}

// serial is a UUID (version 8, of its own kind) made of what the document is about.
func serial(of Of) string {
	b := sha256.Sum256([]byte(of.Run + "\n" + of.Images.Digest + "\n" + of.Version))
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// program is Slipway itself, with the modules that it was built from.
func program(of Of) cyclonedx.Component {
	c := cyclonedx.Component{
		BOMRef: "slipway", Type: cyclonedx.ComponentTypeApplication, Name: "slipway", Version: of.Version,
		Hashes: hashes(of.Images.Tools["slipway"]),
	}
	if of.Build == nil {
		return c
	}
	var modules []cyclonedx.Component
	for _, m := range of.Build.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		modules = append(modules, module(c.BOMRef, m.Path, m.Version, m.Sum))
	}
	c.Components = list(append(modules, module(c.BOMRef, "std", of.Build.GoVersion, "")))
	return c
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

func tool(t lock.Tool, digest string) cyclonedx.Component {
	c := cyclonedx.Component{
		BOMRef: "tool/" + t.Name, Type: cyclonedx.ComponentTypeApplication, Name: t.Name, Version: t.Version, Hashes: hashes(digest),
	}
	var modules []cyclonedx.Component
	for _, m := range t.Modules {
		modules = append(modules, module(c.BOMRef, m.Path, m.Version, m.Sum))
	}
	c.Components = list(modules)
	return c
}

// images are those of the lock that the run has, and those that were added.
func images(of Of) []cyclonedx.Component {
	known := map[string]lock.Image{}
	for _, i := range of.Pins.Images {
		known[i.Name] = i
	}
	refs := maps.Clone(of.Images.Refs)
	maps.Copy(refs, of.Images.Registry)
	pinned := map[string]lock.Package{}
	for _, p := range of.Pins.Packages[of.Platform] {
		pinned[p.Name] = p
	}
	var out []cyclonedx.Component
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		seen[refs[name]] = true
		have, ok := of.Packages[name]
		if !ok {
			have = map[string]string{}
			for _, p := range known[name].Debian {
				have[p] = pinned[p].Version
			}
		}
		out = append(out, image(name, refs[name], known[name], of.Pins.Suite, pinned, have))
	}
	for _, upstream := range slices.Sorted(maps.Keys(of.Images.StandsFor)) {
		if ref := of.Images.StandsFor[upstream]; !seen[ref] {
			seen[ref] = true
			out = append(out, image(upstream, ref, lock.Image{}, "", nil, nil))
		}
	}
	return out
}

// image is an image by digest, with the modules that it is built from and the Debian packages
// that it has, versions by name; those that the lock pins so for this platform by digest.
func image(name, ref string, i lock.Image, suite string, pinned map[string]lock.Package, have map[string]string) cyclonedx.Component {
	repository, digest, _ := strings.Cut(ref, "@")
	c := cyclonedx.Component{
		BOMRef: "image/" + name, Type: cyclonedx.ComponentTypeContainer, Name: name, Version: cmp.Or(i.Version, digest), Hashes: hashes(digest),
		PackageURL: "pkg:oci/" + repository[strings.LastIndexByte(repository, '/')+1:] + "@" + url.QueryEscape(digest) + "?repository_url=" + url.QueryEscape(repository),
	}
	var parts []cyclonedx.Component
	for _, m := range i.Modules {
		parts = append(parts, module(c.BOMRef, m.Path, m.Version, m.Sum))
	}
	for _, p := range slices.Sorted(maps.Keys(have)) {
		part := cyclonedx.Component{BOMRef: c.BOMRef + "|deb/" + p, Type: cyclonedx.ComponentTypeLibrary, Name: p, PackageURL: "pkg:deb/debian/" + p}
		if part.Version = have[p]; part.Version != "" {
			part.PackageURL += "@" + url.QueryEscape(part.Version)
		}
		if pin := pinned[p]; pin.SHA256 != "" && pin.Version == part.Version {
			part.Hashes = hashes("sha256:" + pin.SHA256)
		}
		part.PackageURL += "?distro=" + suite
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
