package installed

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// origin tells the platform's Applications and ApplicationSets from others' without trusting what these
// say: whoever may write to one can give it any label, annotation, owner and status.
type origin struct {
	deployment string
	argo       string            // Argo CD's namespace: whoever may write there may do anything
	listed     []kube.Member     // what the deployment wrote down before it applied it
	orphans    map[string]string // Applications, "namespace/name", that ApplicationSets had made
	projects   argo.Projects
}

// platforms are those of all, by UID, that Slipway applied or that one of these has brought.
func (p origin) platforms(all []unstructured.Unstructured) map[types.UID]bool {
	return p.descent(slices.DeleteFunc(slices.Clone(all), func(o unstructured.Unstructured) bool { return !p.applied(&o) }), all)
}

// applied reports whether Slipway, or an ApplicationSet that it noted, has made an object of Argo CD's.
func (p origin) applied(o *unstructured.Unstructured) bool {
	if o.GetKind() == "Application" && p.orphans[nameOf(*o)] != "" {
		return true
	}
	known := p.argo != "" && o.GetNamespace() == p.argo || slices.ContainsFunc(p.listed, kube.MemberOf(o).Same)
	return known && !kube.Keeps(o) && kube.DeploymentOf(o.GetLabels()) == p.deployment && kube.WroteTo(o)
}

// descent are those of all, by UID, that are among first, or brought by one that is in descent.
func (p origin) descent(first, all []unstructured.Unstructured) map[types.UID]bool {
	out := map[types.UID]bool{}
	next := slices.Clone(first)
	for len(next) > 0 {
		by := next[0]
		next = next[1:]
		if out[by.GetUID()] {
			continue
		}
		out[by.GetUID()] = true
		names := owned(by)
		for _, o := range all {
			if p.made(by, o) || names[o.GetKind()+" "+nameOf(o)] && p.brought(&by, &o) {
				next = append(next, o)
			}
		}
	}
	return out
}

// made reports whether an ApplicationSet has made an Application: always in its own namespace.
func (p origin) made(by, o unstructured.Unstructured) bool {
	return by.GetNamespace() == o.GetNamespace() &&
		slices.ContainsFunc(o.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == by.GetUID() })
}

// brought reports whether Argo CD has brought an object that an Application names.
func (p origin) brought(by, o *unstructured.Unstructured) bool {
	return p.projects.Permit(by, o) && argo.Brought(p.argo, by, o)
}

// owned are an Application's Applications and ApplicationSets: "Application namespace/name".
func owned(a unstructured.Unstructured) map[string]bool {
	out := map[string]bool{}
	for _, m := range kube.Entries(&a, "status", "resources") {
		if m["group"] == argo.Applications().Group && m["requiresPruning"] != true {
			out[fmt.Sprintf("%v %v/%v", m["kind"], m["namespace"], m["name"])] = true
		}
	}
	return out
}

func (d *deployment) origin() origin {
	return origin{deployment: d.Deployment, argo: d.Argo, listed: d.listed, orphans: d.record.Orphans, projects: d.projects}
}

// findApplications finds the platform's Applications and ApplicationSets. One that was found
// stays the platform's, also when what has brought it is gone, or the project of that.
func (d *deployment) findApplications(ctx context.Context) error {
	all, projects, err := applications(ctx, d.Client, d.Argo)
	if err != nil {
		return err
	}
	d.projects.Add(projects)
	for uid := range d.origin().platforms(all) {
		d.platform[uid] = true
	}
	return nil
}

// Applications are the Applications and ApplicationSets of a deployment that is removed by a record.
func Applications(ctx context.Context, c *kube.Client, deployment string, rec Removal) ([]unstructured.Unstructured, error) {
	all, found, err := applications(ctx, c, rec.Argo)
	if err != nil {
		return nil, err
	}
	p := origin{deployment: deployment, argo: rec.Argo, orphans: rec.Orphans, projects: argo.Projects{}}
	p.projects.Add(found)
	if p.listed, err = Listed(ctx, c, rec.Components); err != nil {
		return nil, err
	}
	own := p.platforms(all)
	return slices.DeleteFunc(all, func(a unstructured.Unstructured) bool { return !own[a.GetUID()] }), nil
}

// applications are all Applications and ApplicationSets of a cluster, and the AppProjects of the
// Argo CD in a namespace: whoever may write to these may do anything.
func applications(ctx context.Context, c *kube.Client, engine string) (all, projects []unstructured.Unstructured, err error) {
	apps, err := c.List(ctx, argo.Applications(), metav1.NamespaceAll, "")
	if err != nil {
		return nil, nil, err
	}
	sets, err := c.List(ctx, argo.ApplicationSets(), metav1.NamespaceAll, "")
	if err == nil && engine != "" {
		projects, err = c.List(ctx, argo.AppProjects(), engine, "")
	}
	return slices.Concat(apps, sets), projects, err
}

// ofApplications hands on the objects that Argo CD has brought by the platform's Applications.
func (d *deployment) ofApplications(ctx context.Context, which func(argo.Resource) bool, each func(unstructured.Unstructured)) error {
	apps, err := d.mine(ctx, argo.Applications())
	if err != nil {
		return err
	}
	for _, a := range apps {
		if !d.platform[a.GetUID()] {
			continue
		}
		objs, err := d.broughtBy(ctx, a, which)
		if err != nil {
			return err
		}
		for _, o := range objs {
			each(o)
		}
	}
	return nil
}

// isApplication reports whether an object is an Application or ApplicationSet.
func isApplication(o *unstructured.Unstructured) bool {
	return o.GroupVersionKind().Group == argo.Applications().Group && slices.Contains([]string{"Application", "ApplicationSet"}, o.GetKind())
}

// broughtBy are the objects that which wants and that Argo CD has brought by an Application.
func (d *deployment) broughtBy(ctx context.Context, a unstructured.Unstructured, which func(argo.Resource) bool) ([]unstructured.Unstructured, error) {
	var out []unstructured.Unstructured
	for _, o := range argo.Read(&a).Resources {
		if !which(o) {
			continue
		}
		m := kube.Member{Kind: schema.GroupVersionKind{Group: o.Group, Kind: o.Kind}, Namespace: o.Namespace, Name: o.Name}
		live, err := d.Client.Live(ctx, m)
		if err != nil {
			return nil, err
		}
		switch {
		case live == nil:
		case o.Health != argo.Missing && d.origin().brought(&a, live):
			out = append(out, *live)
		default:
			d.Log.Warn("an Application names what Argo CD has not brought by it: it stays", "application", nameOf(a), "object", m.String())
		}
	}
	return out, nil
}
