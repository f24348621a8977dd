package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/dryrun"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

// withoutApps removes the root Application of a platform that has no app any more: Argo CD
// takes the apps along, with what they brought, in the reverse order of their waves. It
// returns what it deleted, and what stays: without Argo CD nobody would do that. engine is Argo
// CD's namespace; empty where there never was one.
func withoutApps(ctx context.Context, env *step.Env, c *kube.Client, engine string) (deleted, kept []string, err error) {
	if engine == "" {
		return nil, nil, nil
	}
	roots, err := c.List(ctx, argo.Applications(), engine, kube.DeploymentLabel+"="+env.Deployment)
	if err != nil {
		return nil, nil, err
	}
	for _, o := range roots {
		if o.GetName() != RootApp || !kube.WroteTo(&o) {
			continue
		}
		name := kube.MemberOf(&o).String()
		controllers, err := c.Workloads(ctx, o.GetNamespace(), argo.Controller)
		if err != nil {
			return deleted, kept, err
		}
		if len(controllers) == 0 {
			kept = append(kept, name+": there is no Argo CD that would remove what it brought")
			continue
		}
		if err := removeRoot(ctx, env, c, o); err != nil {
			return deleted, kept, err
		}
		deleted = append(deleted, name)
	}
	return deleted, kept, nil
}

// removeRoot deletes the root Application with all that it brought, and waits until it is
// gone.
func removeRoot(ctx context.Context, env *step.Env, c *kube.Client, root unstructured.Unstructured) error {
	namespace, name := root.GetNamespace(), root.GetName()
	if p, _ := dryrun.Previewing(ctx); p != nil {
		return c.Delete(ctx, argo.Applications(), namespace, name, metav1.DeletePropagationBackground)
	}
	if err := dryrun.Check(ctx, "remove the Application %s/%s", namespace, name); err != nil {
		return err
	}
	env.Progress("removing the apps, none of which is on any more")
	cascades := func(f string) bool { return strings.HasPrefix(f, argo.CascadeFinalizer) }
	if root.GetDeletionTimestamp() == nil && !slices.ContainsFunc(root.GetFinalizers(), cascades) {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": append(root.GetFinalizers(), argo.CascadeFinalizer)}})
		if err != nil {
			return err
		}
		if err := c.Patch(ctx, "prepare the deletion of the Application "+name, argo.Applications(), namespace, name, patch); err != nil {
			return err
		}
	}
	if err := c.Delete(ctx, argo.Applications(), namespace, name, metav1.DeletePropagationBackground); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, defaultDeadline)
	defer cancel()
	return c.WaitAbsent(limited, "the Application "+namespace+"/"+name+", with the apps that it brought,", func(ctx context.Context) (string, error) {
		o, err := c.Dynamic.Resource(argo.Applications()).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		app, err := argo.Read(o)
		return "Argo CD has not removed " + cmp.Or(strings.Join(app.Children(), ", "), "it") + " yet", err
	})
}
