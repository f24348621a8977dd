package argo

import (
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// Projects are the AppProjects of an Argo CD, by name.
type Projects map[string]unstructured.Unstructured

// Add adds AppProjects, as they are now.
func (p Projects) Add(all []unstructured.Unstructured) {
	for _, o := range all {
		p[o.GetName()] = o
	}
}

// Permit reports whether the project of an Application lets it have an object. What it does not,
// Argo CD has not brought by that Application, whatever its status says: whoever may push an
// Application writes that, too.
func (p Projects) Permit(by, o *unstructured.Unstructured) bool {
	name, _, _ := unstructured.NestedString(by.Object, "spec", "project")
	if name == "" {
		name = "default"
	}
	project, known := p[name]
	if !known {
		return false
	}
	namespace := o.GetNamespace()
	if namespace == "" {
		return among(project, "clusterResourceWhitelist", o) && !among(project, "clusterResourceBlacklist", o)
	}
	_, bounded, _ := unstructured.NestedSlice(project.Object, "spec", "namespaceResourceWhitelist")
	if bounded && !among(project, "namespaceResourceWhitelist", o) || among(project, "namespaceResourceBlacklist", o) {
		return false
	}
	permitted := false
	for _, d := range kube.Entries(&project, "spec", "destinations") {
		pattern, _ := d["namespace"].(string)
		if denied, is := strings.CutPrefix(pattern, "!"); is && glob(denied, namespace) {
			return false
		}
		permitted = permitted || glob(pattern, namespace)
	}
	return permitted
}

// among reports whether a list of an AppProject has the kind of an object, or that object alone.
func among(project unstructured.Unstructured, list string, o *unstructured.Unstructured) bool {
	gk := o.GroupVersionKind().GroupKind()
	for _, item := range kube.Entries(&project, "spec", list) {
		group, _ := item["group"].(string)
		kind, _ := item["kind"].(string)
		name, _ := item["name"].(string)
		if glob(group, gk.Group) && glob(kind, gk.Kind) && (name == "" || glob(name, o.GetName())) {
			return true
		}
	}
	return false
}

func glob(pattern, text string) bool {
	is, err := path.Match(pattern, text)
	return err == nil && is
}
