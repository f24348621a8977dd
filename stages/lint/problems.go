package lint

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/render"
)

// wrong notes what is wrong with a file of the release, which no cluster would mend.
func (v *linter) wrong(component, file string, line int, err error) {
	u := contract.Unread{Component: component, File: file, Line: line, Err: err}
	if !note(&v.unread, u) {
		return
	}
	v.shown = append(v.shown, contract.Rendered{Component: component, Kind: v.kind(component), Err: fmt.Errorf("%s: %w", u.Position(), err), Wrong: true})
}

// note adds u to a list, unless it is there.
func note(all *[]contract.Unread, u contract.Unread) bool {
	if slices.ContainsFunc(*all, func(o contract.Unread) bool {
		return o.Position() == u.Position() && o.Component == u.Component && o.Err.Error() == u.Err.Error()
	}) {
		return false
	}
	*all = append(*all, u)
	return true
}

// field is the line of a component's field in platform.yaml.
func (v *linter) field(component, name string) int {
	i := slices.IndexFunc(v.release.Components, func(c platform.Component) bool { return c.Name == component })
	return v.release.Line(fmt.Sprintf("components[%d].%s", i, name))
}

// problems notes problems of files, whose paths in the release in returns, and reports whether there are any.
func (v *linter) problems(component string, all []contract.Unread, in func(string) string) bool {
	for _, p := range all {
		v.wrong(component, in(p.File), p.Line, p.Err)
	}
	return len(all) > 0
}

func asIs(file string) string { return file }

// unreadable notes why objects cannot be made of a component's files. err is what the first
// of them, or all together, failed with.
func (v *linter) unreadable(c platform.Component, err error) {
	if c.Path != "" && v.problems(c.Name, problemsOf(v.release.Files(), c.Path), asIs) {
		return
	}
	text, own := strings.CutPrefix(err.Error(), "the platform release: ")
	switch {
	case own || c.Bundle == "":
		v.wrong(c.Name, cmp.Or(render.Kustomization(v.release.Files(), c.Path), c.Path), 0, errors.New(text))
	default: // the bundle has no such directory, or what is in path does not fit it
		v.wrong(c.Name, platform.File, v.field(c.Name, "bundle"), err)
	}
}

// incomplete notes that a component's files do not have what one of its kind is made of.
func (v *linter) incomplete(c platform.Component, objs []*unstructured.Unstructured) {
	kind := map[platform.Kind]string{platform.Job: "Job", platform.AppSet: "ApplicationSet"}[c.Kind]
	switch {
	case len(objs) == 0:
		v.wrong(c.Name, c.Path, 0, errors.New("no object is in it"))
	case kind != "" && !slices.ContainsFunc(objs, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind }):
		err := fmt.Errorf("no %s is in it, which a component of kind %s consists of", kind, c.Kind)
		if _, ok := v.release.Component(c.Name); !ok {
			err = fmt.Errorf("no %s is in it, and nothing is tried", kind)
		}
		v.wrong(c.Name, c.Path, 0, err)
	case c.Kind == platform.AppSet && len(v.release.Destinations()) == 0:
		for _, o := range objs {
			project, _, _ := unstructured.NestedString(o.Object, "spec", "template", "spec", "project")
			if o.GetKind() == "ApplicationSet" && project == v.release.GitOps.Project.Name {
				v.wrong(c.Name, c.Path, 0, fmt.Errorf("the Applications of ApplicationSet %s may be in no namespace: the project %s has those of apps, of which there are none, and those of gitops.project.namespaces", o.GetName(), project))
			}
		}
	}
}

// badValues notes why a component's chart gets no values, and reports whether the release is
// wrong: users who switch a component on may have to give what others need not.
func (v *linter) badValues(c platform.Component, in contract.ComponentInput, err error) (bad bool) {
	for _, name := range c.ValuesFiles {
		name = platform.Fill(name, map[string]string{platform.FillScale: fmt.Sprint(in.Fill[platform.FillScale])})
		bad = v.problems(c.Name, noValues(v.release.Files(), name), asIs) || bad
	}
	if !bad && !v.off {
		v.wrong(c.Name, platform.File, v.field(c.Name, "values"), err)
		bad = true
	}
	return bad
}

var (
	// chartFile is how Helm names a file of a chart that it cannot read.
	chartFile = regexp.MustCompile(`cannot load (\S+): `)
	// fileLine is how the parser of YAML names a line.
	fileLine = regexp.MustCompile(`yaml: line (\d+): `)
)

func (v *linter) badChart(c chart, err error) {
	file, line := c.path, 0
	if m := chartFile.FindStringSubmatch(err.Error()); m != nil {
		file = path.Join(c.path, m[1])
		if m = fileLine.FindStringSubmatch(err.Error()); m != nil {
			line, _ = strconv.Atoi(m[1])
		}
	}
	v.wrong(c.component, file, line, err)
}

// unrendered notes why a chart cannot be rendered: that the release is wrong only where no
// cluster, and nothing else that a run finds out, would change it.
func (v *linter) unrendered(c chart, err error) {
	if !c.certain && !strings.HasPrefix(err.Error(), "parse error at (") {
		v.skip(c.component, err)
		return
	}
	file, line := c.path, 0
	if m := regexp.MustCompile(`(?:^|[\s(])` + regexp.QuoteMeta(c.name) + `/([^\s:()"]+)(?::(\d+))?`).FindStringSubmatch(err.Error()); m != nil {
		file = path.Join(c.path, m[1])
		line, _ = strconv.Atoi(m[2]) // 0 if there is none
	}
	v.wrong(c.component, file, line, err)
}

// fields notes the fields of a component's files that Kubernetes refuses. patches says that
// they are patches of objects that are not at hand.
func (v *linter) fields(c platform.Component, s render.Source, patches bool) {
	root, file, line := s.Name, cmp.Or(render.Kustomization(v.release.Files(), s.Name), s.Name), 0
	if c.Bundle != "" {
		root, file, line = c.Path, platform.File, v.field(c.Name, "bundle")
	}
	for _, m := range mistakesOf(v.release.Files(), root, s.Objects) {
		if patches && m.Unknown && strings.HasPrefix(m.field(), "$") { // what is to be done, such as $patch
			continue
		}
		if m.File == "" {
			m.File, m.Line = file, line
		}
		v.mistake(c.Name, m.File, m, !m.Unknown || !v.Guessed) // the cluster may be newer
	}
}

// chartFields notes the fields of objects of a chart that Kubernetes refuses, or leaves out.
func (v *linter) chartFields(c chart, p rendered) {
	for _, m := range mistakesOf(nil, "", p.objs) {
		if m.Unknown {
			m.Line = lineWith(c.files, path.Join(c.dir, strings.TrimPrefix(p.file, c.path+"/")), m.field())
		}
		v.mistake(c.component, p.file, m, c.certain && (c.strict || !m.Unknown && !m.Lenient))
	}
}

// lineWith is the line of a file that has a word; 0 if none or several have.
func lineWith(files fs.FS, name, word string) int {
	text, err := bounded.FS(files, name, bounded.Generated)
	if err != nil || bytes.Count(text, []byte(word)) != 1 {
		return 0
	}
	return 1 + bytes.Count(text[:bytes.Index(text, []byte(word))], []byte("\n"))
}

// mistake notes a field that Kubernetes certainly rejects, or may reject or leave out.
func (v *linter) mistake(component, file string, m foundMistake, certain bool) {
	if certain {
		v.wrong(component, file, m.Line, m.Err)
		return
	}
	note(&v.doubts, contract.Unread{Component: component, File: file, Line: m.Line, Err: m.Err})
}

// origin is where the release has an object.
type origin struct{ component, file string }

// conflicts notes the objects that an earlier file, or the same one, has as well: each install
// would change them to and fro. Namespaces may be in several files, as they are all alike.
func (v *linter) conflicts(component, file string, line int, namespace string, objs []*unstructured.Unstructured) {
	if _, ok := v.release.Component(component); !ok { // tests and workloads are not installed
		return
	}
	if v.origins == nil {
		v.origins = map[kube.Member]origin{}
	}
	here := origin{component, contract.Position(file, line)}
	for _, o := range objs {
		m := kube.MemberOf(o)
		m.Kind.Version = ""
		if m.Kind.Group == "" && m.Kind.Kind == "Namespace" {
			continue
		}
		if !clusterScoped(o) {
			m.Namespace = cmp.Or(m.Namespace, namespace)
		}
		other, is := v.origins[m]
		switch {
		case !is:
			v.origins[m] = here
		case other == here:
			v.wrong(component, file, line, fmt.Errorf("the file has the %s twice; remove one, or give it another name", m))
		case other.component == component:
			v.wrong(component, file, line, fmt.Errorf("%s has the %s, too; remove one, or give it another name", other.file, m))
		default:
			v.wrong(component, file, line, fmt.Errorf("the component %s has the %s, too (%s); remove one, or give it another name", other.component, m, other.file))
		}
	}
}

// clusterScoped reports whether an object is of a known kind without namespaces.
func clusterScoped(o *unstructured.Unstructured) bool {
	kind := o.GroupVersionKind()
	return kind.Kind == "CustomResourceDefinition" || scheme.Scheme.Recognizes(kind) && !inNamespace(o)
}

// homeless notes the files with objects in namespaces that will not be there: the first
// object of each namespace. There are none where others may make namespaces: in an existing
// cluster, or where not all objects are known or some are for controllers of others.
func (v *linter) homeless() {
	if v.Guessed || len(v.unread) > 0 || v.Projects != nil || !closed(v.shown) {
		return
	}
	there := []string{"default"}
	for _, n := range v.release.Namespaces {
		there = append(there, n.Name)
	}
	for _, p := range v.shown {
		for _, object := range p.Objects {
			if o := (&unstructured.Unstructured{Object: object}); o.GetAPIVersion() == "v1" && o.GetKind() == "Namespace" {
				there = append(there, o.GetName())
			}
		}
	}
	for _, p := range v.shown {
		seen := append([]string{p.Namespace}, there...) // that of the component is not the object's own
		for _, object := range p.Objects {
			o := &unstructured.Unstructured{Object: object}
			namespace := o.GetNamespace()
			if !inNamespace(o) || slices.Contains(seen, namespace) || strings.HasPrefix(namespace, "kube-") || strings.HasPrefix(namespace, kube.FieldManager+"-") {
				continue
			}
			seen = append(seen, namespace)
			v.wrong(p.Component, p.File, 0, fmt.Errorf("the %s %s is in the namespace %s, which neither the release nor an object of a component makes; list it under namespaces in platform.yaml, or have the object in another one", o.GetKind(), o.GetName(), namespace))
		}
	}
}
