// Package imageref reads references of container images as container runtimes do, so
// that two ways to write the same image are one text.
package imageref

import (
	"fmt"
	"regexp"
	"strings"
)

// Own is the host of the images of a bundle. Nothing answers there.
const Own = "slipway.local"

const (
	hub        = "docker.io" // the registry of a reference without a host
	hubIndex   = "index.docker.io"
	official   = "library/" // the hub's images without an owner
	defaultTag = "latest"
)

var (
	hostRE   = regexp.MustCompile(`^([a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\[[0-9a-fA-F:]+\])(:[0-9]+)?$`)
	pathRE   = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)
	tagRE    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
	digestRE = regexp.MustCompile(`^(sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128})$`)
	placeRE  = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$`)
	hexRE    = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// IsRegistry reports whether place is host[:port][/path], without scheme and tag.
func IsRegistry(place string) bool { return placeRE.MatchString(place) }

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
	var r Reference
	wrong := func(what string) (Reference, error) {
		return Reference{}, fmt.Errorf("%q is no reference of an image: %s", s, what)
	}
	if strings.Contains(s, "://") {
		return wrong("it is a URL: leave out what ends with ://")
	}
	if strings.TrimSpace(s) != s {
		return wrong("it begins or ends with a space")
	}
	name, digest, byDigest := strings.Cut(s, "@")
	if byDigest && !digestRE.MatchString(digest) {
		return wrong("what is after @ is no digest such as sha256: and 64 hexadecimal digits")
	}
	if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, '/') {
		name, r.Tag = name[:colon], name[colon+1:]
		if !tagRE.MatchString(r.Tag) {
			return wrong("its tag is not 1 to 128 letters, digits, dots, hyphens and underscores")
		}
	}
	if hexRE.MatchString(name) {
		return wrong("64 hexadecimal digits are the id of an image")
	}
	r.Host, r.Path, r.Digest = hub, name, digest
	if host, rest, found := strings.Cut(name, "/"); found && isHost(host) {
		r.Host, r.Path = host, rest
	}
	if r.Host == hubIndex {
		r.Host = hub
	}
	if r.Host == hub && !strings.Contains(r.Path, "/") {
		r.Path = official + r.Path
	}
	switch {
	case !hostRE.MatchString(r.Host):
		return wrong("its host is not host[:port]")
	case !pathRE.MatchString(r.Path):
		return wrong("its name is not lower-case letters and digits, separated by dots, hyphens, underscores and slashes")
	}
	if r.Tag == "" && !byDigest {
		r.Tag = defaultTag
	}
	return r, nil
}

// isHost tells whether the first part of a name is a host and not an owner on the hub.
func isHost(s string) bool {
	return strings.ContainsAny(s, ".:") || s == "localhost" || strings.ToLower(s) != s
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
