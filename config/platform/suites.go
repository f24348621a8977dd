package platform

import (
	"slices"
	"time"

	"github.com/slipway-sh/slipway/config"
)

// DefaultSuite is the suite of a test that names none.
const DefaultSuite = "full"

// What can be done with the workloads, where a suite of tests can be named.
const (
	DeployApps  = "apps-deploy"
	CheckApps   = "apps-check"
	DestroyApps = "apps-destroy"
)

// ReservedSuites are names that no suite of a release may have.
func ReservedSuites() []string { return []string{DeployApps, CheckApps, DestroyApps} }

// Test is something that users rely on, tried on an installed platform. It passes when
// its gates have opened and its Jobs have completed.
type Test struct {
	Name      string          `json:"name" is:"name"`                                                       // name of the test, unique: lower-case letters, digits and hyphens
	Suites    []string        `json:"suites,omitempty" is:"suite" least:"at least one suite such as smoke"` // its suites: smoke, full, or your own; default full
	Component string          `json:"component,omitempty" is:"component"`                                   // omit the test without this component
	Path      string          `json:"path,omitempty"`                                                       // file or directory with Jobs and what they need, which the test creates and then removes
	Namespace string          `json:"namespace,omitempty" is:"namespace"`                                   // its namespace: one of namespaces, default or kube-system
	Images    []string        `json:"images,omitempty" is:"image"`                                          // its images: short names of the bundle's images, or references as in a manifest
	Ready     []Await         `json:"ready,omitempty"`                                                      // gates that must open before the Jobs are created
	Deadline  config.Duration `json:"deadline,omitempty" is:"deadline"`                                     // time limit for the test, 1s to 24h; default 5m
}

// SetDefaults sets the defaults of the test.
func (t *Test) SetDefaults() {
	t.Suites, t.Deadline = []string{DefaultSuite}, config.Duration(5*time.Minute)
}

// Files are what the test is made of, as a component.
func (t Test) Files() Component {
	return Component{Name: "test " + t.Name, Kind: Job, Path: t.Path, Namespace: t.Namespace, Images: t.Images}
}

// Workload is what users of the platform run on it. It is no part of the platform: it is
// deployed, looked at and removed when somebody wants that.
type Workload struct {
	Name      string          `json:"name" is:"name"`                     // name of the workload, unique: lower-case letters, digits and hyphens
	Component string          `json:"component,omitempty" is:"component"` // omit the workload without this component
	Path      string          `json:"path"`                               // directory or file with objects, or a kustomization
	Namespace string          `json:"namespace" is:"namespace"`           // namespace of objects that name none: one of namespaces, default or kube-system
	Images    []string        `json:"images,omitempty" is:"image"`        // images of the workload and its check: short names of the bundle's images, or references as in a manifest
	Check     string          `json:"check"`                              // file or directory with Jobs that complete if the workload works
	Deadline  config.Duration `json:"deadline,omitempty" is:"deadline"`   // time limit to deploy, check or remove it, 1s to 24h; default 5m
}

// SetDefaults sets the default of the workload.
func (w *Workload) SetDefaults() { w.Deadline = config.Duration(5 * time.Minute) }

// Files are what the workload is made of, as a component.
func (w Workload) Files() Component {
	return Component{Name: "workload " + w.Name, Kind: Manifests, Path: w.Path, Namespace: w.Namespace, Images: w.Images}
}

// Checks are what looks at the workload, as a component.
func (w Workload) Checks() Component {
	return Component{Name: "check of workload " + w.Name, Kind: Job, Path: w.Check, Namespace: w.Namespace, Images: w.Images}
}

// Suites are the names of the suites that tests are in, in the order of the file.
func (r *Release) Suites() []string {
	var out []string
	for _, t := range r.Tests {
		for _, s := range t.Suites {
			if !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
	}
	return out
}

// TestsOn are the tests of what is installed: off is the complete list of the components
// that are not.
func (r *Release) TestsOn(off []string) []Test {
	return slices.DeleteFunc(slices.Clone(r.Tests), func(t Test) bool { return slices.Contains(off, t.Component) })
}

// WorkloadsOn are the workloads for what is installed; off is as in TestsOn.
func (r *Release) WorkloadsOn(off []string) []Workload {
	return slices.DeleteFunc(slices.Clone(r.Workloads), func(w Workload) bool { return slices.Contains(off, w.Component) })
}

// parts are what the tests and workloads are made of, and the component that each is for.
func (r *Release) parts() (parts []Component, of []string) {
	for _, t := range r.Tests {
		if t.Path != "" {
			parts, of = append(parts, t.Files()), append(of, t.Component)
		}
	}
	for _, w := range r.Workloads {
		parts, of = append(parts, w.Files(), w.Checks()), append(of, w.Component, w.Component)
	}
	return parts, of
}

// Parts are what the tests and workloads are made of, as components: for what is installed,
// and for what is not. off is as in TestsOn.
func (r *Release) Parts(off []string) (on, unused []Component) {
	parts, of := r.parts()
	for i, c := range parts {
		if slices.Contains(off, of[i]) {
			unused = append(unused, c)
		} else {
			on = append(on, c)
		}
	}
	return on, unused
}

// Part is the component of that name, or what a test or a workload is made of, whose name
// has a space in it: "test NAME".
func (r *Release) Part(name string) (Component, bool) {
	if c, ok := r.Component(name); ok {
		return c, true
	}
	parts, _ := r.parts()
	if i := slices.IndexFunc(parts, func(c Component) bool { return c.Name == name }); i >= 0 {
		return parts[i], true
	}
	return Component{}, false
}
