package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// alone is how the root Application is applied: nobody else has anything to add to it.
func alone() kube.ApplyOptions { return kube.ApplyOptions{Added: argo.Added} }

// settled waits for the apps, and makes sure that the root Application is as Slipway applies it
// after that, too: until Argo CD has removed an Application that somebody has pushed, that may
// write to it.
func settled(ctx context.Context, c *kube.Client, root *unstructured.Unstructured, begin func() *waiter) (contract.Apps, error) {
	w := begin()
	out, err := w.wait(ctx)
	if err != nil {
		return out, err
	}
	applied, err := c.Apply(ctx, []*unstructured.Unstructured{root}, alone())
	if err != nil || c.Plan != nil || applied[0].Change == kube.Unchanged {
		return out, err
	}
	w.env.Progress("the Application %s had changed meanwhile: Slipway has applied it again", RootApp)
	return begin().wait(ctx)
}

// noStrangers returns a fault if a push has brought Applications besides the release's apps. They
// keep the rights of the deployment's projects, even when the push is gone.
func noStrangers(ctx context.Context, c *kube.Client, deployment string, r *platform.Release, in contract.AppsInput) error {
	all, err := c.List(ctx, argo.Applications(), in.Namespace, "")
	if err != nil {
		return err
	}
	projects, err := c.List(ctx, argo.AppProjects(), in.Namespace, kube.DeploymentLabel+"="+deployment)
	if err != nil {
		return err
	}
	known := origins(all, func(o *unstructured.Unstructured) bool {
		component, is := r.Component(o.GetName())
		return o.GetName() == RootApp || slices.Contains(in.Apps, o.GetName()) || is && component.Kind == platform.Adopted
	})
	var names []string
	for _, o := range all {
		project, _, _ := unstructured.NestedString(o.Object, "spec", "project")
		ours := strings.HasPrefix(project, "slipway-") || slices.ContainsFunc(projects, func(p unstructured.Unstructured) bool { return p.GetName() == project })
		if ours && !known[o.GetName()] && o.GetDeletionTimestamp() == nil {
			names = append(names, o.GetName())
		}
	}
	if len(names) == 0 {
		return nil
	}
	command := "slipway toolchain -- kubectl delete application -n " + fault.Quote(in.Namespace)
	for _, name := range names {
		command += " " + fault.Quote(name)
	}
	return &fault.Fault{
		Code: CodeSet, Class: fault.Step, Op: "compare the apps with the platform release",
		Err: fmt.Errorf("in namespace %s are Applications in the deployment's projects that are no apps of the release: %s; a push to the GitOps repository has brought them", in.Namespace, strings.Join(names, ", ")),
		Fix: "delete those that nobody needs: " + command + "; then delete what they have brought, unless their finalizer has done so, and run the same command again",
	}
}

// origins are the names of the Applications of Argo CD's namespace that are the release's, or
// that somebody has made there, by a step, by hand or by an ApplicationSet; and of those that
// one of them brings.
func origins(all []unstructured.Unstructured, ofRelease func(*unstructured.Unstructured) bool) map[string]bool {
	out := map[string]bool{}
	var next []*unstructured.Unstructured
	for i := range all {
		owner := metav1.GetControllerOf(&all[i])
		if ofRelease(&all[i]) || !kube.Brought(&all[i]) || owner != nil && owner.Kind == "ApplicationSet" {
			next = append(next, &all[i])
		}
	}
	for len(next) > 0 {
		by := next[0]
		next = next[1:]
		if out[by.GetName()] {
			continue
		}
		out[by.GetName()] = true
		children := argo.Read(by).Children()
		for i := range all {
			if slices.Contains(children, all[i].GetName()) && kube.BroughtBy(&all[i], map[string]bool{by.GetName(): true}) {
				next = append(next, &all[i])
			}
		}
	}
	return out
}
