package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/stages/contract"
)

// releaseObjects is what a platform release renders to.
type releaseObjects struct {
	services map[string]service // by "namespace/name"
	objects  map[string]bool    // as idOf has them
	// open is why the release's namespaces may have more: not everything is rendered, or
	// something is for a controller of somebody's. Empty: they will have nothing else.
	open       string
	namespaces []string // the release's
	unknown    []string // what was looked for there and may be among that
}

type service struct {
	kind, from string
	ports      []string
}

// objectsOf is what the parts of a release make.
func objectsOf(r *platform.Release, parts []contract.Rendered) *releaseObjects {
	out := &releaseObjects{services: map[string]service{}, objects: map[string]bool{}}
	for _, n := range r.Namespaces {
		out.namespaces = append(out.namespaces, n.Name)
	}
	for _, p := range parts {
		from := p.Component
		if _, ok := r.Component(from); ok {
			from = "component " + from
		}
		if p.Err != nil {
			out.open = cmp.Or(out.open, "what "+from+" brings is not known")
		}
		for _, o := range p.Objects {
			version, _ := o["apiVersion"].(string)
			kind, _ := o["kind"].(string)
			meta, _ := o["metadata"].(map[string]any)
			if !kubernetesOwn(version) && !followed(p, version, kind) {
				out.open = cmp.Or(out.open, fmt.Sprintf("%s (%s) has a %s of %s, whose controller may make more", from, r.Path(p.File), kind, version))
			}
			namespace, _ := meta["namespace"].(string)
			name, _ := meta["name"].(string)
			out.objects[idOf(platform.Object{APIVersion: version, Kind: kind, Namespace: namespace, Name: name})] = true
			if version == "v1" && kind == "Service" {
				out.services[namespace+"/"+name] = serviceOf(p, r.Path(p.File), o)
			}
		}
	}
	return out
}

func serviceOf(p contract.Rendered, file string, o map[string]any) service {
	spec, _ := o["spec"].(map[string]any)
	s := service{kind: "ClusterIP", from: "component " + p.Component + ", " + file}
	if kind, ok := spec["type"].(string); ok && kind != "" {
		s.kind = kind
	}
	ports, _ := spec["ports"].([]any)
	for _, entry := range ports {
		if m, ok := entry.(map[string]any); ok {
			s.ports = append(s.ports, fmt.Sprint(m["port"]))
		}
	}
	return s
}

// complete reports whether a namespace will have nothing else than what is made. Those that
// are not the release's have things of others.
func (m *releaseObjects) complete(namespace string) bool {
	return m.open == "" && slices.Contains(m.namespaces, namespace)
}

// addUnknown notes an object that nothing makes, and that may be there nevertheless.
func (m *releaseObjects) addUnknown(namespace, object string) {
	if slices.Contains(m.namespaces, namespace) && !slices.Contains(m.unknown, object) {
		m.unknown = append(m.unknown, object)
	}
}

// printUnknown says what could not be looked for, and why.
func (m *releaseObjects) printUnknown(w io.Writer) {
	if len(m.unknown) > 0 {
		fmt.Fprintf(w, "whether these will be there is not known before the install, for %s: %s\n", redact.OneLine(m.open), redact.OneLine(strings.Join(m.unknown, ", ")))
	}
}

// kindOf is "apps/Deployment", whatever the version; "/Service" without a group.
func kindOf(o platform.Object) string {
	group, _, found := strings.Cut(o.APIVersion, "/")
	if !found {
		group = ""
	}
	return group + "/" + o.Kind
}

// idOf names an object.
func idOf(o platform.Object) string { return kindOf(o) + " " + o.Namespace + "/" + o.Name }

// followed reports whether an object is one of Argo CD's of which nothing comes but what is
// among the parts, too: a project, and an Application of the tree. One that is not of the tree
// brings what nobody has rendered, as an ApplicationSet does.
func followed(p contract.Rendered, version, kind string) bool {
	group, _, _ := strings.Cut(version, "/")
	return group == "argoproj.io" && (kind == "AppProject" || kind == "Application" && (p.Kind == string(platform.App) || p.Kind == "gitops"))
}

// kubernetesOwn reports whether objects of that version are for controllers of Kubernetes'
// own. The definition of a kind is: nothing is made of it before there is an object of that.
func kubernetesOwn(version string) bool {
	group, _, found := strings.Cut(version, "/")
	if !found || !strings.Contains(group, ".") || group == "rbac.authorization.k8s.io" {
		return true
	}
	return strings.HasSuffix(group, ".k8s.io") && strings.Count(group, ".") == 2
}
