package infrastructure

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/removal"
	"github.com/slipway-sh/slipway/stages/step"
)

const (
	reachLimit   = time.Minute      // for the API to answer
	skipLimit    = 3 * time.Second  // for an API that may be gone
	cascadeLimit = 3 * time.Minute  // for Argo CD to remove what its Applications own
	volumeGone   = 10 * time.Second // for a volume that was deleted here
)

// remover takes a platform out of a cluster that stays. It collects what it did.
type remover struct {
	*removal.Remover
	env    *step.Env
	made   []string                             // namespaces that Slipway made for the deployment, but its own
	used   []string                             // namespaces of others that it uses
	system bool                                 // whether its own is the deployment's
	kept   []string                             // of made: with claims or objects that stay
	found  map[string]unstructured.Unstructured // made and its own, by name: one of another UID is somebody else's
	// recorded says that the cluster still has the record, which is what the release said of the removal.
	recorded bool
	record   removal.Record
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

// platformRemove removes what the deployment has in the cluster, and nothing else: Applications and
// components in the release's order, namespaces, objects in others' namespaces, volumes, cluster-scoped
// objects except CustomResourceDefinitions, and labels of nodes. The platform may be half installed.
func platformRemove(ctx context.Context, env *step.Env, in contract.RemoveInput) (contract.Removed, error) {
	return remove(ctx, env, in, func(r *remover) []part {
		return []part{
			r.findNamespaces, r.known, r.findApplications, r.mark, r.sets, r.components,
			r.namespaces, r.objects, r.volumes, r.clusterScope, r.nodes,
		}
	})
}

// crdsRemove removes the deployment's CustomResourceDefinitions, and then Slipway's own namespace,
// which says how the platform is removed.
func crdsRemove(ctx context.Context, env *step.Env, in contract.RemoveInput) (contract.Removed, error) {
	return remove(ctx, env, in, func(r *remover) []part {
		return []part{r.findNamespaces, r.ownCRDs, r.systemNamespace}
	})
}

type part = func(context.Context) error

// remove carries out parts of a removal, one after the other, by what the cluster says of that.
func remove(ctx context.Context, env *step.Env, in contract.RemoveInput, parts func(*remover) []part) (contract.Removed, error) {
	c, why, err := reach(ctx, env, reachLimit, false)
	if err != nil || c == nil {
		return contract.Removed{Unreachable: why}, err
	}
	r, err := newRemover(ctx, env, c, in.CRDs)
	if err != nil {
		return contract.Removed{}, notRemoved(err)
	}
	for _, do := range parts(r) {
		if err := do(ctx); err != nil {
			return r.result(), notRemoved(err)
		}
	}
	env.Progress("removed %d components, %d applications, %d namespaces, %d volumes, %d other objects",
		len(r.out.Components), len(r.out.Applications), len(r.out.Namespaces), len(r.out.Volumes), len(r.out.Objects)+len(r.out.Cluster))
	for _, kept := range r.out.Kept {
		env.Progress("kept %s", kept)
	}
	return r.result(), nil
}

// newRemover removes by the cluster's record; crds also removes crds that the release keeps.
func newRemover(ctx context.Context, env *step.Env, c *kube.Client, crds bool) (*remover, error) {
	record, recorded, err := removal.Read(ctx, c, env.Deployment)
	if err != nil {
		return nil, err
	}
	if record.Orphans == nil {
		record.Orphans = map[string]string{}
	}
	r := &remover{env: env, recorded: recorded, record: record, projects: argo.Projects{}, platform: map[types.UID]bool{}, Remover: &removal.Remover{
		Client: c, Deployment: env.Deployment, Argo: record.Argo, Rules: record.Remove, Log: env.Logger, Progress: env.Progress,
	}}
	if crds {
		r.Rules.CRDs = platform.RemoveDelete
	}
	r.listed, err = removal.Listed(ctx, c, record.Components)
	return r, err
}

func (r *remover) result() contract.Removed {
	r.out.Stripped = r.Stripped
	return r.out
}

// notRemoved keeps the faults that say what is to be done.
func notRemoved(err error) error {
	if f, ok := errors.AsType[*fault.Fault](err); ok && slices.Contains([]fault.Code{removal.CodeStuck, CodeUnrecorded}, f.Code) {
		return f
	}
	return checkFault(CodeRemove, "remove the platform", "run again: slipway destroy", err)
}

// reach connects to the cluster, which gets limit to answer. Without an access file, or with skip if the
// API does not answer, there is no client, and why says so.
func reach(ctx context.Context, env *step.Env, limit time.Duration, skip bool) (c *kube.Client, why string, err error) {
	if _, err := os.Stat(env.Kubeconfig); errors.Is(err, fs.ErrNotExist) {
		env.Progress("there was no cluster yet")
		return nil, "there was no cluster yet: it has no access file", nil
	}
	c, err = env.Connect()
	switch {
	case err != nil:
	case env.Existing:
		_, err = answers(ctx, env, c, limit)
	default:
		limited, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		err = c.WaitSuccess(limited, "the API at "+c.Endpoint(), func(ctx context.Context) error {
			return c.Kubernetes.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
		})
	}
	if err == nil {
		return c, "", sameCluster(ctx, env, c, false)
	}
	if skip && ctx.Err() == nil {
		env.Logger.Warn("the cluster does not answer", "error", err)
		return nil, err.Error(), nil
	}
	if env.Existing { // nobody here can start it
		return nil, "", err
	}
	return nil, "", checkFault(CodeAPI, "reach the cluster", "start the cluster, then run again: slipway destroy", err)
}

// components removes the record's components in order, and the Applications in their place or first.
func (r *remover) components(ctx context.Context) error {
	all := r.record.Components
	if !slices.ContainsFunc(all, func(c removal.Component) bool { return c.Apps }) {
		all = append([]removal.Component{{Apps: true}}, all...)
	}
	for _, c := range all {
		if c.Apps {
			if err := r.applications(ctx); err != nil {
				return err
			}
			continue
		}
		deleted, err := r.Component(ctx, c, r.isShielded)
		if err != nil {
			return err
		}
		if len(deleted) > 0 {
			r.env.Progress("removed %s: %d objects", c.Name, len(deleted))
			r.out.Components = append(r.out.Components, c.Name)
		}
	}
	return nil
}
