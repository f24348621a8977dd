package removal

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// prerequisitesName is the note that lists what was made for the releases of a deployment before
// their components.
const prerequisitesName = "slipway-prerequisites"

// Prerequisites lists what is made for a release before any component is: namespaces, Secrets,
// ConfigMaps and certificates.
func Prerequisites(r *platform.Release) []kube.Member {
	var out []kube.Member
	add := func(kind, namespace, name string) {
		out = append(out, kube.Member{Kind: schema.GroupVersionKind{Version: "v1", Kind: kind}, Namespace: namespace, Name: name})
	}
	for _, n := range r.Namespaces {
		add("Namespace", "", n.Name)
		if len(r.Certificates) > 0 {
			add("ConfigMap", n.Name, platform.AuthorityConfigMap)
		}
	}
	for _, s := range r.Secrets {
		add("Secret", s.Namespace, s.Name)
	}
	for _, m := range r.ConfigMaps {
		add("ConfigMap", m.Namespace, m.Name)
	}
	for _, c := range r.Certificates {
		namespace, name, _ := strings.Cut(c.Secret, "/")
		add("Secret", namespace, name)
	}
	return out
}

// RecordPrerequisites adds what is made for a release to the list. What only earlier releases had
// stays in it, and in the cluster, until a destroy.
func RecordPrerequisites(ctx context.Context, c *kube.Client, deployment string, r *platform.Release) error {
	all, err := c.Members(ctx, prerequisitesName)
	if err != nil {
		return err
	}
	now := Prerequisites(r)
	all = slices.DeleteFunc(all, func(m kube.Member) bool { return slices.ContainsFunc(now, m.Same) })
	return c.KeepMembers(ctx, deployment, prerequisitesName, append(all, now...))
}

// PrerequisiteNamespaces are the names of the namespaces in that list; nil: there is no list.
func PrerequisiteNamespaces(ctx context.Context, c *kube.Client) ([]string, error) {
	all, err := c.Members(ctx, prerequisitesName)
	if err != nil || all == nil {
		return nil, err
	}
	out := []string{}
	for _, m := range all {
		if m.Kind.Kind == "Namespace" {
			out = append(out, m.Name)
		}
	}
	return out, nil
}
