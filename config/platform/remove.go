package platform

import (
	"fmt"
	"slices"
	"time"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/document"
)

// Remove says how the platform is removed from a cluster that stays: by destroy and, what a
// newer release no longer has, by install. What destroy needs of it is kept in the cluster.
type Remove struct {
	Order []string `json:"order,omitempty"` // components to remove first, in this order; the others follow in reverse order of installation
	// Applications of ApplicationSets, removed before all components, one set after the
	// other; unnamed sets come last.
	Applications []SetRemoval `json:"applications,omitempty" unique:"set"`
	Claims       string       `json:"claims,omitempty"`     // delete or keep PersistentVolumeClaims, with their namespace, its Secrets and the volumes; default delete
	CRDs         string       `json:"crds,omitempty"`       // CustomResourceDefinitions: delete, with all their objects; keep; or unused, which deletes those without objects of others; default unused
	Finalizers   Finalizers   `json:"finalizers,omitempty"` // what happens to objects that stay
}

// SetRemoval is the removal of the Applications that an ApplicationSet has made. The set itself
// goes before, and takes nothing along.
type SetRemoval struct {
	Set      string          `json:"set" least:"the name of an ApplicationSet"` // name of the ApplicationSet
	Deadline config.Duration `json:"deadline,omitempty"`                        // how long its Applications and their objects may take to disappear, 1s to 24h; remove.finalizers.after when left out. Then remove.finalizers.then applies
}

// Limit is how long the Applications may take to go.
func (s SetRemoval) Limit(r Remove) time.Duration {
	if s.Deadline > 0 {
		return time.Duration(s.Deadline)
	}
	return time.Duration(r.Finalizers.After)
}

// Finalizers says what happens to objects whose finalizers nobody removes.
type Finalizers struct {
	After config.Duration `json:"after,omitempty" is:"deadline"` // how long objects may take to disappear, 1s to 24h; default 2m
	Then  string          `json:"then,omitempty"`                // what happens then: strip removes their finalizers; report fails the run and names them; default strip
}

// What becomes of claims, definitions and finalizers.
const (
	RemoveDelete    = "delete"
	RemoveKeep      = "keep"
	RemoveUnused    = "unused"
	FinalizerStrip  = "strip"
	FinalizerReport = "report"
)

// SetDefaults sets the defaults of the removal.
func (r *Remove) SetDefaults() {
	r.Claims, r.CRDs = RemoveDelete, RemoveUnused
	r.Finalizers.SetDefaults()
}

// SetDefaults sets the defaults of the finalizers.
func (f *Finalizers) SetDefaults() {
	f.After, f.Then = config.Duration(2*time.Minute), FinalizerStrip
}

// Removal is how the platform is removed, with the defaults of a release that does not say.
func (r *Release) Removal() Remove {
	if r.Remove != nil {
		return *r.Remove
	}
	var out Remove
	out.SetDefaults()
	return out
}

// RemovalOrder returns the components in the order in which they go: those that Remove
// names, and then each before what it comes after. Apps go together, in the place of the
// first of them.
func (r *Release) RemovalOrder() []Component {
	v := validator{r: r}
	var installed []Component // each after what it comes after
	for _, vertex := range v.ordered(func([]string) {}) {
		if i := slices.IndexFunc(r.Components, func(c Component) bool { return v.vertex(c.Name) == vertex }); i >= 0 {
			installed = append(installed, r.Components[i])
		}
	}
	slices.Reverse(installed)
	var out []Component
	for _, name := range r.Removal().Order {
		if c, ok := r.Component(name); ok {
			out = append(out, c)
		}
	}
	for _, c := range installed {
		if !slices.ContainsFunc(out, func(o Component) bool { return o.Name == c.Name }) {
			out = append(out, c)
		}
	}
	return out
}

func (v *validator) remove() {
	r := v.r.Remove
	if r == nil {
		return
	}
	for i, name := range r.Order {
		at := fmt.Sprintf("remove.order[%d]", i)
		switch c := v.r.component(name); {
		case c == nil:
			v.Add(at, document.Shown(name), componentWant)
		case c.Kind == App:
			v.Add(at, document.Quote(name)+", which is an app", "a component that is none; Argo CD removes apps in the reverse order of their waves")
		case slices.Index(r.Order, name) < i:
			v.Add(at, document.Quote(name)+" again", "each component once")
		}
	}
	for i, s := range r.Applications {
		if s.Deadline != 0 {
			deadline(v, fmt.Sprintf("remove.applications[%d].deadline", i), s.Deadline.String())
		}
	}
}
