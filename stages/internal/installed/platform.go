package installed

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

const (
	cascadeLimit = 3 * time.Minute  // for Argo CD to remove what its Applications own
	volumeGone   = 10 * time.Second // for a volume that was deleted here
)

// deployment is what a deployment has in a cluster that stays, as far as a removal has found it, and
// what was removed.
type deployment struct {
	*Remover
	made   []string                             // namespaces that Slipway made for the deployment, but its own
	used   []string                             // namespaces of others that it uses
	system bool                                 // whether its own is the deployment's
	kept   []string                             // of made: with claims or objects that stay
	found  map[string]unstructured.Unstructured // made and its own, by name: one of another UID is somebody else's
	// recorded says that the cluster still has the record, which is what the release said of the removal.
	recorded bool
	record   Removal
	shielded map[string]bool // namespaces with claims that the release keeps
	listed   []kube.Member   // what the deployment wrote down before it applied it
	// projects are those that were found in Argo CD's namespace, the present ones and earlier ones.
	projects argo.Projects
	// platform are the platform's Applications and ApplicationSets, by UID: see findApplications.
	platform map[types.UID]bool
	// noController says that Argo CD's controller did not start in time.
	noController bool
	since        time.Time // when the deployment's own namespace was created
	out          contract.Removed
}

type part = func(context.Context) error

// Platform removes what the deployment has in the cluster, and nothing else: Applications and
// components in the release's order, namespaces, objects in others' namespaces, volumes, cluster-scoped
// objects except CustomResourceDefinitions, and labels of nodes. The platform may be half installed.
// crds also removes CustomResourceDefinitions that the release keeps.
func (r *Remover) Platform(ctx context.Context, crds bool) (contract.Removed, error) {
	return r.remove(ctx, crds, func(d *deployment) []part {
		return []part{
			d.findNamespaces, d.known, d.findApplications, d.mark, d.sets, d.components,
			d.namespaces, d.objects, d.volumes, d.clusterScope, d.nodes,
		}
	})
}

// CRDs removes the deployment's CustomResourceDefinitions, and then Slipway's own namespace, which says
// how the platform is removed. crds is that of Platform.
func (r *Remover) CRDs(ctx context.Context, crds bool) (contract.Removed, error) {
	return r.remove(ctx, crds, func(d *deployment) []part {
		return []part{d.findNamespaces, d.ownCRDs, d.systemNamespace}
	})
}

// remove carries out parts of a removal, one after the other, by what the cluster says of that.
func (r *Remover) remove(ctx context.Context, crds bool, parts func(*deployment) []part) (contract.Removed, error) {
	d, err := r.deployment(ctx, crds)
	if err != nil {
		return contract.Removed{}, err
	}
	for _, do := range parts(d) {
		if err = do(ctx); err != nil {
			break
		}
	}
	out := d.out
	out.Stripped = r.Stripped
	if err != nil {
		return out, err
	}
	r.Progress("removed %d components, %d applications, %d namespaces, %d volumes, %d other objects",
		len(out.Components), len(out.Applications), len(out.Namespaces), len(out.Volumes), len(out.Objects)+len(out.Cluster))
	for _, kept := range out.Kept {
		r.Progress("kept %s", kept)
	}
	return out, nil
}

// deployment makes r remove by the cluster's record.
func (r *Remover) deployment(ctx context.Context, crds bool) (*deployment, error) {
	record, recorded, err := ReadRemoval(ctx, r.Client, r.Deployment)
	if err != nil {
		return nil, err
	}
	if record.Orphans == nil {
		record.Orphans = map[string]string{}
	}
	r.Argo, r.Rules = record.Argo, record.Remove
	if crds {
		r.Rules.CRDs = platform.RemoveDelete
	}
	d := &deployment{Remover: r, recorded: recorded, record: record, projects: argo.Projects{}, platform: map[types.UID]bool{}}
	d.listed, err = Listed(ctx, r.Client, record.Components)
	return d, err
}

// components removes the record's components in order, and the Applications in their place or first.
func (d *deployment) components(ctx context.Context) error {
	all := d.record.Components
	if !slices.ContainsFunc(all, func(c Component) bool { return c.Apps }) {
		all = append([]Component{{Apps: true}}, all...)
	}
	for _, c := range all {
		if c.Apps {
			if err := d.applications(ctx); err != nil {
				return err
			}
			continue
		}
		deleted, err := d.Component(ctx, c, d.isShielded)
		if err != nil {
			return err
		}
		if len(deleted) > 0 {
			d.Progress("removed %s: %d objects", c.Name, len(deleted))
			d.out.Components = append(d.out.Components, c.Name)
		}
	}
	return nil
}
