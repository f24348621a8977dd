package orchestrator

import (
	"cmp"
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/installed"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

// runPrune removes, as a destroy does, components that were installed and that the release has no
// more, except objects whose deletion takes data along. What was made before components stays until
// a destroy. Argo CD removes what it installs; without any app left, the step makes it do so.
func runPrune(ctx context.Context, env *step.Env, in contract.PruneInput) (contract.Pruned, error) {
	r, c, err := env.Open()
	if err != nil {
		return contract.Pruned{}, err
	}
	record, _, err := installed.ReadRemoval(ctx, c, env.Deployment)
	if err != nil {
		return contract.Pruned{}, err
	}
	remover := &installed.Remover{
		Client: c, Deployment: env.Deployment, Argo: record.Argo, Rules: record.Remove, Log: env.Logger, Progress: env.Progress,
	}
	var out contract.Pruned
	take := func(objects, kept []string, err error) error {
		out.Objects, out.Kept, out.Stripped = append(out.Objects, objects...), append(out.Kept, kept...), remover.Stripped
		return err
	}
	if !in.Apps { // while Argo CD is there
		if err := take(withoutApps(ctx, env, c, record.Argo)); err != nil {
			return out, err
		}
	}
	dropped, objects, err := remover.Dropped(ctx, record.Components, in.Components, installed.Prerequisites(r))
	out.Components = dropped
	if err := take(objects, nil, err); err != nil {
		return out, err
	}
	if len(out.Components) > 0 {
		env.Progress("removed %s", strings.Join(out.Components, ", "))
	}
	if len(out.Objects) > 0 {
		env.Progress("removed %d objects that the release no longer has", len(out.Objects))
	}
	for _, kept := range out.Kept {
		env.Progress("the release no longer has this, but it stays: %s", kept)
	}
	earlier := record.Argo
	record = installed.RemovalOf(r)
	record.Argo = cmp.Or(record.Argo, earlier)
	return out, record.Write(ctx, c, env.Deployment)
}

// withoutApps removes the root Application of a platform that has no app any more: Argo CD
// takes the apps along, with what they brought, in the reverse order of their waves. It
// returns what it deleted, and what stays: without Argo CD nobody would do that. engine is Argo
// CD's namespace; empty where there never was one.
func withoutApps(ctx context.Context, env *step.Env, c *kube.Client, engine string) (deleted, kept []string, err error) {
	if engine == "" {
		return nil, nil, nil
	}
	root, err := c.Live(ctx, argo.Member(engine, RootApp))
	if err != nil || root == nil || kube.DeploymentOf(root.GetLabels()) != env.Deployment || !kube.WroteTo(root) {
		return nil, nil, err
	}
	name := kube.MemberOf(root).String()
	controllers, err := c.Workloads(ctx, engine, argo.Controller)
	if err != nil {
		return nil, nil, err
	}
	if len(controllers) == 0 {
		return nil, []string{name + ": there is no Argo CD that would remove what it brought"}, nil
	}
	return []string{name}, nil, removeRoot(ctx, env, c, root)
}

// removeRoot deletes the root Application with all that it brought, and waits until it is
// gone.
func removeRoot(ctx context.Context, env *step.Env, c *kube.Client, root *unstructured.Unstructured) error {
	namespace := root.GetNamespace()
	if c.Plan == nil {
		env.Progress("removing the apps, none of which is on any more")
		if err := argo.Cascade(ctx, c, root); err != nil {
			return err
		}
	}
	err := c.Delete(ctx, argo.Applications(), namespace, RootApp, metav1.DeletePropagationBackground)
	if err != nil || c.Plan != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, defaultDeadline)
	defer cancel()
	return c.WaitAbsent(limited, "the Application "+namespace+"/"+RootApp+", with the apps that it brought,", func(ctx context.Context) (string, error) {
		app, err := argo.Get(ctx, c, namespace, RootApp)
		return "Argo CD has not removed " + cmp.Or(strings.Join(app.Children(), ", "), "it") + " yet", err
	})
}
