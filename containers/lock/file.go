package lock

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/fault"
)

// CodeFile: the lock file that was given cannot be read or understood;
// all of its problems are listed.
const CodeFile fault.Code = "LCK-003"

// Read reads the lock file that `slipway bundle push` wrote, and gives its text, too. It
// fails with CodeFile where there is none or it cannot be understood.
func Read(path string) (*Lock, []byte, error) {
	data, err := bounded.File(path, maxText)
	if err != nil {
		return nil, nil, unusable(err)
	}
	l, err := Parse(data)
	if err != nil {
		return nil, nil, unusable(fmt.Errorf("%s: %w", path, err))
	}
	return l, data, nil
}

func unusable(err error) error {
	return &fault.Fault{Code: CodeFile, Class: fault.Usage, Op: "read the lock file", Err: err,
		Fix: "give the path of a lock file, or write one: slipway bundle push DIR HOST/PATH --out slipway.lock.json"}
}

// Platforms returns the platforms for which the lock has images in a registry, sorted.
func (l *Lock) Platforms() []string {
	all := map[string]bool{}
	for _, i := range l.Images {
		for platform := range i.Registry {
			all[platform] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// Marshal is the lock as indented JSON, the same bytes for the same lock. It is
// JSON because the Dagger module reads it too and has no other decoder.
func (l *Lock) Marshal() ([]byte, error) {
	if err := l.Validate(); err != nil {
		return nil, fmt.Errorf("write the lock: %w", err)
	}
	data, err := json.MarshalIndent(l, "", "  ")
	return append(data, '\n'), err
}

// At is a copy of the lock in which the images and manifests at the bundle's platform are
// those that were pushed of the bundle x below location: images by short name, all files of
// manifests/ in the image called manifests, and what was added to the bundle. It
// fails when one is missing, and has nothing on demand that was not pushed.
func (l *Lock) At(location string, x bundle.Index, images map[string]Registry, manifests Registry, added []Added) (*Lock, error) {
	out := *l
	out.Location = location
	out.Images, out.Manifests, out.Added = slices.Clone(l.Images), slices.Clone(l.Manifests), added
	out.Images = slices.DeleteFunc(out.Images, func(i Image) bool {
		_, ok := images[i.Name]
		return i.OnDemand && !ok
	})
	out.Manifests = slices.DeleteFunc(out.Manifests, func(m Manifest) bool { return m.OnDemand && !m.In(x) })
	var missing []error
	for n, i := range out.Images {
		pushed, ok := images[i.Name]
		if !ok {
			missing = append(missing, fmt.Errorf("image %s was not pushed", i.Name))
		}
		out.Images[n].Registry = map[string]Registry{x.Platform: pushed}
		// An image may have been added in place of one of the lock's.
		out.Images[n].StandsFor = slices.DeleteFunc(slices.Clone(i.StandsFor), func(s string) bool {
			return slices.ContainsFunc(added, func(a Added) bool { return slices.Contains(a.StandsFor, s) })
		})
	}
	for n := range out.Manifests {
		out.Manifests[n].Registry = map[string]Registry{x.Platform: manifests}
	}
	return &out, errors.Join(missing...)
}
