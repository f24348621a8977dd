package kubetest

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
)

type kind struct {
	apiVersion, name string
	namespaced       bool
}

func known() []kind {
	return []kind{
		{"v1", "ConfigMap", true}, {"v1", "Secret", true}, {"v1", "Service", true}, {"v1", "Pod", true}, {"v1", "Event", true}, {"v1", "ServiceAccount", true},
		{"v1", "Namespace", false}, {"v1", "Node", false}, {"v1", "PersistentVolume", false}, {"v1", "PersistentVolumeClaim", true},
		{"apps/v1", "Deployment", true}, {"apps/v1", "StatefulSet", true}, {"apps/v1", "DaemonSet", true},
		{"batch/v1", "Job", true}, {"autoscaling/v2", "HorizontalPodAutoscaler", true}, {"discovery.k8s.io/v1", "EndpointSlice", true},
		{"apiextensions.k8s.io/v1", "CustomResourceDefinition", false},
	}
}

func (k kind) plural() string { return strings.ToLower(k.name) + "s" }

// root is the path that those of the kind's objects begin with.
func (k kind) root() string {
	if strings.Contains(k.apiVersion, "/") {
		return "/apis/" + k.apiVersion
	}
	return "/api/" + k.apiVersion
}

// complete is the object with the kind that a path says it has.
func (k kind) complete(o map[string]any) map[string]any {
	return merge(o, map[string]any{"apiVersion": k.apiVersion, "kind": k.name})
}

// kindAt is the kind of the object at path; all says that it is the path of a list.
func (a *API) kindAt(path string) (found *kind, all bool) {
	for i, k := range a.kinds {
		rest, ok := strings.CutPrefix(path, k.root()+"/")
		if !ok {
			continue
		}
		part := strings.Split(rest, "/")
		if part[0] == "namespaces" && len(part) > 2 {
			part = part[2:]
		}
		if part[0] == k.plural() && len(part) <= 2 {
			return &a.kinds[i], len(part) == 1
		}
	}
	return nil, false
}

// discovery is what the server says of its kinds; nil for other paths.
func (a *API) discovery(path string) any {
	switch path {
	case "/api":
		return metav1.APIVersions{Versions: []string{"v1"}}
	case "/version":
		return version.Info{Major: "1", Minor: "35", GitVersion: "v1.35.4"}
	}
	var groups []metav1.APIGroup
	resources := metav1.APIResourceList{}
	for _, k := range a.kinds {
		if k.root() == path {
			resources.GroupVersion = k.apiVersion
			resources.APIResources = append(resources.APIResources, metav1.APIResource{
				Name: k.plural(), Namespaced: k.namespaced, Kind: k.name, Verbs: metav1.Verbs{"get", "list", "create", "update", "patch", "delete"},
			})
		}
		group, of, _ := strings.Cut(k.apiVersion, "/")
		if of == "" || len(groups) > 0 && groups[len(groups)-1].Name == group {
			continue
		}
		v := metav1.GroupVersionForDiscovery{GroupVersion: k.apiVersion, Version: of}
		groups = append(groups, metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
	}
	switch {
	case path == "/apis":
		return metav1.APIGroupList{Groups: groups}
	case resources.GroupVersion != "":
		return resources
	}
	return nil
}
