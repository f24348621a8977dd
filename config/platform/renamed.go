package platform

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/slipway-sh/slipway/config/document"
)

// HelmRelease is the name of the Helm release of a component that has a chart.
func (c Component) HelmRelease() string { return cmp.Or(c.RenamedFrom, c.Name) }

// renamed checks what a component was called before.
func (v *validator) renamed(field string, i int) {
	c := v.r.Components[i]
	at := field + ".renamedFrom"
	switch {
	case c.RenamedFrom == "":
	case c.Kind == Gate || c.Kind == AppSet:
		v.Add(at, "a value", "none for "+string(c.Kind)+": it has nothing that would stay")
	case !nameRE.MatchString(c.RenamedFrom):
		v.Add(at, document.Quote(c.RenamedFrom), nameWant)
	case c.RenamedFrom == c.Name:
		v.Add(at, document.Quote(c.RenamedFrom), "another name than the component has now")
	case v.r.component(c.RenamedFrom) != nil:
		v.Add(at, document.Quote(c.RenamedFrom)+", which is a component of this release", "the name of a component of an earlier release that is gone")
	default:
		first := slices.IndexFunc(v.r.Components, func(o Component) bool { return o.RenamedFrom == c.RenamedFrom })
		if first < i {
			v.Add(at, document.Quote(c.RenamedFrom)+" again", fmt.Sprintf("another name than that of components[%d].renamedFrom", first))
		}
	}
}
