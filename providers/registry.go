package providers

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
)

// CodeUnknown: the provider does not exist, or can only be configured and validated yet.
const CodeUnknown fault.Code = "PRV-001"

// Registry holds the providers of a program. It is immutable and safe for concurrent use.
type Registry struct {
	byName map[string]Section
	order  []string // names in the order of registration
}

// NewRegistry returns a registry of the given providers, of which the first is the
// default. It panics if two have the same name or one has none.
func NewRegistry(list ...Section) *Registry {
	r := &Registry{byName: make(map[string]Section, len(list))}
	for _, p := range list {
		name := p.Name()
		if name == "" {
			panic("a provider has no name")
		}
		if _, taken := r.byName[name]; taken {
			panic("provider " + name + " is registered twice")
		}
		r.byName[name] = p
		r.order = append(r.order, name)
	}
	return r
}

// Get returns the provider with that name. An unknown provider, or one that does not
// support installs yet, is a fault of class Usage that lists those that do.
func (r *Registry) Get(name string) (Provider, error) {
	section, known := r.byName[name]
	if p, ok := section.(Provider); ok {
		return p, nil
	}
	var can []string
	for _, n := range r.Names() {
		if _, ok := r.byName[n].(Provider); ok {
			can = append(can, n)
		}
	}
	op, fix := fmt.Sprintf("choose provider %q", name), "set provider in the config to one of: "+strings.Join(can, ", ")
	if known {
		return nil, &fault.Fault{Code: CodeUnknown, Class: fault.Usage, Op: op, Fix: fix,
			Err: errors.New("installing there is not supported yet; supported: " + strings.Join(can, ", "))}
	}
	return nil, &fault.Fault{Code: CodeUnknown, Class: fault.Usage, Op: op, Fix: fix,
		Err: errors.New("no provider has that name; known are: " + strings.Join(r.Names(), ", "))}
}

// Names returns the names of the providers that can be configured, sorted.
func (r *Registry) Names() []string { return slices.Sorted(maps.Keys(r.byName)) }

// Options returns the options of config.Load that depend on the providers. The first
// provider of the registry is the default.
func (r *Registry) Options() config.Options {
	return config.Options{Providers: r.Names(), DefaultProvider: r.order[0], Section: r.validate}
}

// Sections describe the providers for config.Schema, the default one first.
func (r *Registry) Sections() []config.Section {
	out := make([]config.Section, len(r.order))
	for i, name := range r.order {
		out[i] = config.Section{Name: name, Settings: r.byName[name].Settings()}
		if d, ok := r.byName[name].(Describer); ok {
			d.Describe(&out[i])
		}
	}
	return out
}

// validate lets the named provider check its section. It returns no problems for an
// unknown provider, which the config's own validation reports.
func (r *Registry) validate(provider string, section json.RawMessage) []config.Problem {
	p, ok := r.byName[provider]
	if !ok {
		return nil
	}
	return p.Validate(section)
}
