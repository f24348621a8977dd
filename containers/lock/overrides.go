package lock

import (
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/imageref"
)

// Added is an image that `slipway bundle add` put into the bundle.
type Added struct {
	Name      string              `json:"name"`      // the reference that it was added under
	Path      string              `json:"path"`      // of its repository, below the registry
	StandsFor []string            `json:"standsFor"` // as imageref.Normal writes them
	Registry  map[string]Registry `json:"registry"`  // by platform
}

// AddedPath is the path of an added image's repository below the registry's: the
// repository of its reference in one part, for registries differ in how many they take.
func AddedPath(reference string) (string, error) {
	r, err := imageref.Parse(reference)
	if err != nil {
		return "", err
	}
	flat := strings.NewReplacer("/", "-", ":", "-", "[", "", "]", "").Replace(strings.ToLower(r.Repository()))
	return strings.Trim(flat, "-"), nil
}

// Platform is the one that the lock has the digests of: "linux/amd64". It is empty for a
// lock of no registry. Of several it is the first.
func (l *Lock) Platform() string {
	if all := l.Platforms(); len(all) > 0 {
		return all[0]
	}
	return ""
}

// Override is an image that is used in place of others. slipway-node reads it.
type Override struct {
	Image     string   `json:"image,omitempty"` // its name in the archives of a bundle
	Path      string   `json:"path,omitempty"`  // of its repository, below the registry's
	Digest    string   `json:"digest"`          // of its manifest
	Index     string   `json:"index,omitempty"` // of the index by which its registry knows it
	StandsFor []string `json:"standsFor"`       // the references of the others
}

// Overrides are those for platform, sorted by path and then by digest. An image that is
// not in the registry for platform is left out.
func (l *Lock) Overrides(platform string) []Override {
	var out []Override
	add := func(path string, standsFor []string, by map[string]Registry) {
		if r, ok := by[platform]; ok && len(standsFor) > 0 {
			out = append(out, Override{Path: path, Digest: r.Digest, Index: r.Index, StandsFor: standsFor})
		}
	}
	for _, i := range l.Images {
		add(i.Name, i.StandsFor, i.Registry)
	}
	for _, a := range l.Added {
		add(a.Path, a.StandsFor, a.Registry)
	}
	slices.SortFunc(out, func(a, b Override) int { return strings.Compare(a.Path+a.Digest, b.Path+b.Digest) })
	return out
}

func (p *problems) standsFor(at string, references []string, seen map[string]bool) {
	bundle.CheckStandsFor(references, seen, func(err error) { p.add(at, "%w", err) })
}
