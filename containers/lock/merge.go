package lock

import (
	"fmt"
	"maps"
	"slices"

	"github.com/slipway-sh/slipway/fault"
)

// Merge is l with what another lock has of other platforms: one that says where the bundles of
// the same Slipway are in the same registry. Of a platform that both have, it is l's. It fails
// with CodeFile for a lock of another registry.
func (l *Lock) Merge(other *Lock) (*Lock, error) {
	if other.Location != l.Location {
		return nil, &fault.Fault{Code: CodeFile, Class: fault.Usage, Op: "add to the lock file",
			Err: fmt.Errorf("it is of what is in %q, and this is pushed to %q", other.Location, l.Location),
			Fix: "push all bundles to one place, or write another file: slipway bundle push DIR HOST/PATH --out FILE"}
	}
	out := *l
	out.Lines = merged(other.Lines, l.Lines)
	out.Images = union(l.Images, other.Images, func(i Image) string { return i.Name }, func(own, of Image) Image {
		own.Registry = merged(of.Registry, own.Registry)
		// An image may have been added to one of the bundles in place of this one.
		own.StandsFor = slices.DeleteFunc(slices.Clone(own.StandsFor), func(s string) bool { return !slices.Contains(of.StandsFor, s) })
		return own
	})
	out.Manifests = union(l.Manifests, other.Manifests, func(m Manifest) string { return m.Name }, func(own, of Manifest) Manifest {
		own.Registry = merged(of.Registry, own.Registry)
		return own
	})
	out.Added = union(l.Added, other.Added, func(a Added) string { return a.Name }, func(own, of Added) Added {
		own.Registry = merged(of.Registry, own.Registry)
		return own
	})
	return &out, out.Validate()
}

// union are own elements, each with what others have of it, and the others.
func union[T any](own, others []T, name func(T) string, both func(own, of T) T) []T {
	out := slices.Clone(own)
	for _, o := range others {
		at := slices.IndexFunc(out, func(e T) bool { return name(e) == name(o) })
		if at < 0 {
			out = append(out, o)
		} else {
			out[at] = both(out[at], o)
		}
	}
	return out
}

// merged has what is below and, of what is in both, what is above.
func merged[V any](below, above map[string]V) map[string]V {
	out := maps.Clone(below)
	if out == nil {
		return maps.Clone(above)
	}
	maps.Copy(out, above)
	return out
}
