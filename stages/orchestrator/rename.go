package orchestrator

import (
	"context"
	"slices"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/dryrun"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/removal"
	"github.com/slipway-sh/slipway/stages/step"
)

// renameApps removes the Applications of apps that have another name in the release, and
// leaves what they brought: those of the new names take that over. It must be done before Argo
// CD sees the release's tree, which has the old ones no more: it would take along what they
// brought. Until the root Application is applied again, Argo CD syncs nothing of it.
//
// An app that is switched off is not renamed: what it brought goes.
func renameApps(ctx context.Context, env *step.Env, c *kube.Client, r *platform.Release, on func(app string) bool) error {
	known, _, err := removal.Read(ctx, c)
	if err != nil {
		return err
	}
	renames := slices.DeleteFunc(removal.Renames(r, known), func(p removal.Renaming) bool {
		to, _ := r.Component(p.To)
		return to.Kind != platform.App || !on(p.To)
	})
	if len(renames) == 0 {
		return nil
	}
	namespace := r.Engine().Namespace
	held := false
	for _, p := range renames {
		there, err := broughtByRoot(ctx, c, namespace, p.From)
		if err != nil {
			return err
		}
		if !there {
			continue
		}
		if preview, _ := dryrun.Previewing(ctx); preview != nil {
			continue // it has the component's other name
		}
		if err := dryrun.Check(ctx, "rename the Application %s to %s", p.From, p.To); err != nil {
			return err
		}
		if !held {
			env.Progress("holding the apps while their Applications are renamed")
			if err := removal.Hold(ctx, c, namespace, RootApp); err != nil {
				return err
			}
			if err := removal.Settle(ctx, c, namespace, RootApp); err != nil {
				return err
			}
			held = true
		}
		if err := removal.Succeed(ctx, c, namespace, p.From, p.To); err != nil {
			return err
		}
		env.Progress("the Application %s is gone, without what it brought: %s takes that over", p.From, p.To)
	}
	return nil
}

// broughtByRoot reports whether there is an Application of that name, and the root has brought
// it. One of the user's own stays.
func broughtByRoot(ctx context.Context, c *kube.Client, namespace, name string) (bool, error) {
	app, err := c.Live(ctx, argo.Member(namespace, name))
	if err != nil || app == nil {
		return false, err
	}
	if kube.TrackedBy(app) == RootApp {
		return true, nil
	}
	o, err := c.Live(ctx, argo.Member(namespace, RootApp))
	if err != nil || o == nil {
		return false, err
	}
	root, err := argo.Read(o)
	return slices.Contains(root.Children(), name), err
}
