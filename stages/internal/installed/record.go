package installed

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// The note that says how a deployment is removed, and its key: a destroy has no release at hand.
const (
	recordName = "slipway-removal"
	recordKey  = "removal.json"
)

// Removal is how a deployment is removed.
type Removal struct {
	Remove     platform.Remove `json:"remove"`
	Components []Component     `json:"components"` // in the order of their removal
	// Argo is the namespace of Argo CD, in which whoever may write may do anything; empty: the
	// platform has no Argo CD.
	Argo string `json:"argo,omitempty"`
	// Orphans are Applications, "namespace/name", that the platform's ApplicationSets had made, which
	// a removal has deleted: the name of the set. A removal that is killed then goes on in the same order.
	Orphans map[string]string `json:"orphans,omitempty"`
}

// Component is a component that is, or was, installed.
type Component struct {
	Name string `json:"name"`
	Apps bool   `json:"apps,omitempty"` // all Applications are removed in its place
}

// RemovalOf is the record of a release. Applications go before what Argo CD has adopted: it
// would make again what is missing.
func RemovalOf(r *platform.Release) Removal {
	out := Removal{Remove: r.Removal()}
	if engine := r.Engine(); engine != nil {
		out.Argo = engine.Namespace
	}
	apps := false
	for _, c := range r.RemovalOrder() {
		adopted := c.Kind == platform.Adopted
		if adopted && !apps {
			out.Components = append(out.Components, Component{Apps: true})
		}
		apps = apps || adopted || !c.Installed()
		out.Components = append(out.Components, Component{Name: c.Name, Apps: !c.Installed()})
	}
	return out
}

// Following is rec after an earlier one: a component that only that one has goes first,
// since nothing comes after it any more.
func (rec Removal) Following(earlier Removal) Removal {
	dropped := slices.DeleteFunc(slices.Clone(earlier.Components), func(c Component) bool { return slices.ContainsFunc(rec.Components, c.same) })
	rec.Components = append(dropped, rec.Components...)
	rec.Argo, rec.Orphans = cmp.Or(rec.Argo, earlier.Argo), earlier.Orphans
	return rec
}

// same tells whether two components are one, wherever it is.
func (c Component) same(o Component) bool {
	return c.Apps && o.Apps || c.Apps == o.Apps && c.Name == o.Name
}

// ReadRemoval returns the record of a deployment in a cluster. Without it, found is false and the record is
// a release's without components.
func ReadRemoval(ctx context.Context, c *kube.Client, deployment string) (rec Removal, found bool, err error) {
	if found, err = c.Note(ctx, deployment, recordName, recordKey, &rec); !found {
		rec.Remove.SetDefaults()
	}
	return rec, found, err
}

// Write keeps the record in the cluster.
func (rec Removal) Write(ctx context.Context, c *kube.Client, deployment string) error {
	return c.KeepNote(ctx, deployment, recordName, recordKey, rec)
}

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
