// Package imageref reads references of container images as container runtimes do, so
// that two ways to write the same image are one text; and why a registry refuses an image.
package imageref

import (
	"fmt"
	"net"
	"regexp"
	"strings"

	"github.com/distribution/reference"
)

// Own is the host of the images of a bundle. Nothing answers there.
const Own = "slipway.local"

var place = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$`)

// IsRegistry reports whether s is host[:port][/path], without scheme and tag.
func IsRegistry(s string) bool { return place.MatchString(s) }

// IsLoopback reports whether a registry's host, without its port, is this machine.
func IsLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// Reference is a reference in its parts. A parsed one has a tag or a digest, or both.
type Reference struct {
	Host   string // "docker.io"
	Path   string // "library/redis"
	Tag    string // "8.2.3-alpine"
	Digest string // "sha256:…"
}

// Parse reads a reference. What is left out is what runtimes take for it: the host
// docker.io, there the owner library, and the tag latest where there is no digest.
func Parse(s string) (Reference, error) {
	named, err := reference.ParseNormalizedNamed(s)
	if err != nil {
		return Reference{}, fmt.Errorf("%q is no reference of an image such as quay.io/team/app:1.0: %w", s, err)
	}
	named = reference.TagNameOnly(named)
	r := Reference{Host: reference.Domain(named), Path: reference.Path(named)}
	if tagged, ok := named.(reference.Tagged); ok {
		r.Tag = tagged.Tag()
	}
	if digested, ok := named.(reference.Digested); ok {
		r.Digest = digested.Digest().String()
	}
	return r, nil
}

// Repository is host and path: "docker.io/library/redis".
func (r Reference) Repository() string { return r.Host + "/" + r.Path }

// At is the reference of the repository's image with that digest.
func (r Reference) At(digest string) string { return r.Repository() + "@" + digest }

// String is the one way to write the image: by its digest if there is one, whatever the
// tag, and by its tag otherwise.
func (r Reference) String() string {
	if r.Digest != "" {
		return r.At(r.Digest)
	}
	return r.Repository() + ":" + r.Tag
}

// Tagged is the reference by its tag; empty if it has none.
func (r Reference) Tagged() string {
	if r.Tag == "" {
		return ""
	}
	return r.Repository() + ":" + r.Tag
}

// Normal is the one way to write the image that s names.
func Normal(s string) (string, error) {
	r, err := Parse(s)
	if err != nil {
		return "", err
	}
	return r.String(), nil
}

// IsShort reports whether s is a name without host, owner, tag and digest.
func IsShort(s string) bool { return s != "" && !strings.ContainsAny(s, "/:@") }
