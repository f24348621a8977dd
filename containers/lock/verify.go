package lock

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/fault"
)

// Verify compares a bundle's index with the lock: every tool, image and manifest
// of the lock is in the bundle, unless it is on demand, with its version,
// its origin and, where the lock has one, its sha256. It fails with bundle.CodeLock and names every difference.
// The files themselves are bundle.Verify's.
func (l *Lock) Verify(b *bundle.Bundle) error {
	var p problems
	for _, t := range l.Tools {
		if f, ok := b.Tool(t.Name); !ok {
			p.add("tool "+t.Name, "is not in the bundle")
		} else {
			p.file("tool "+t.Name, f, t.Version, t.Modules)
		}
	}
	for _, i := range l.Images {
		at := slices.IndexFunc(b.Index.Images, func(have bundle.Image) bool { return have.Name == i.Name })
		if at < 0 {
			if !i.OnDemand {
				p.add("image "+i.Name, "is not in the bundle")
			}
			continue
		}
		want := bundle.Host + "/" + i.Name + ":" + i.Version
		if have := b.Index.Images[at].Ref; have != want {
			p.add("image "+i.Name, "the bundle has %s, the lock says %s", have, want)
		}
	}
	for _, m := range l.Manifests {
		if !m.OnDemand || m.In(b.Index) {
			p.manifest(m, b)
		}
	}
	if len(p.Problems) == 0 {
		return nil
	}
	return &fault.Fault{
		Code: bundle.CodeLock, Class: fault.Preflight, Op: "compare the bundle with the lock",
		Fix: bundle.Fix, Err: errors.Join(p.Problems...),
	}
}

// file compares version and origin of a file; the origin may go on after that of
// the module with "#" and a path.
func (p *problems) file(at string, f bundle.File, version string, modules []Module) {
	if f.Version != version {
		p.add(at, "the bundle has version %s, the lock says %s", f.Version, version)
	}
	if !slices.ContainsFunc(modules, func(m Module) bool {
		return f.Origin == m.Origin() || strings.HasPrefix(f.Origin, m.Origin()+"#")
	}) {
		p.add(at, "the bundle has it from %s, the lock says %s", f.Origin, origins(modules))
	}
}

// In reports whether a bundle has any of the files.
func (m Manifest) In(x bundle.Index) bool {
	return slices.ContainsFunc(x.Files, func(f bundle.File) bool { return f.Kind == bundle.Manifest && f.Name == m.Name })
}

func (p *problems) manifest(m Manifest, b *bundle.Bundle) {
	for _, file := range slices.Sorted(maps.Keys(m.Files)) {
		at := slices.IndexFunc(b.Files, func(f bundle.File) bool { return f.Kind == bundle.Manifest && f.Path == m.Place(file) })
		if at < 0 {
			p.add("manifest "+m.Name, "%s is not in the bundle", file)
			continue
		}
		p.file("manifest "+m.Name, b.Files[at], m.Version, m.Modules)
		if sum := b.Files[at].SHA256; sum != m.Files[file] {
			p.add("manifest "+m.Name, "the sha256 of %s is %s, the lock says %s", file, sum, m.Files[file])
		}
	}
}

func origins(modules []Module) string {
	var all []string
	for _, m := range modules {
		all = append(all, m.Origin())
	}
	return strings.Join(all, " or ")
}
