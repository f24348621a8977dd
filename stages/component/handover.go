package component

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/render"
	"github.com/slipway-sh/slipway/stages/step"
)

const (
	adoptionDeadline = 10 * time.Minute // where the input has none
	refreshEvery     = 10 * time.Second // while Argo CD has not seen the commit
)

// adopt hands a component that Slipway has installed over to Argo CD: an Application has it from
// the same chart, now in the tree, with the same values. Slipway's list of it goes, so that it has
// one owner. Then and in every later run it waits until the Application is Synced and Healthy, and
// the component's gates are open.
func adopt(ctx context.Context, env *step.Env, in contract.HandoverInput) (contract.Component, error) {
	i, err := open(ctx, env, in.ComponentInput)
	if err != nil {
		return contract.Component{}, err
	}
	if _, err := i.owned(ctx); err != nil {
		return contract.Component{}, err
	}
	ch, values, err := i.loadChart(ctx)
	if err != nil {
		return contract.Component{}, err
	}
	app, err := i.application(values, in.Tree)
	if err != nil {
		return contract.Component{}, err
	}
	objs, err := render.InCluster(ctx, i.client, i.component, ch, values)
	if err != nil {
		return contract.Component{}, badChart(i.component.Name, err)
	}
	applied, err := i.client.Apply(ctx, []*unstructured.Unstructured{i.project(objs, in.Tree), app}, kube.ApplyOptions{Added: argo.Added})
	if err != nil {
		return contract.Component{}, err
	}
	out := contract.Component{Objects: len(objs), Changed: kube.Altered(applied)}
	if !i.client.Plan.Waits() { // what comes next is Argo CD's
		return out, nil
	}
	if err := i.synced(ctx, in); err != nil {
		return out, err
	}
	if err := i.letGo(ctx, objs); err != nil {
		return out, err
	}
	out.Gates, err = i.gates(ctx)
	return out, err
}

func projectName(component string) string { return "slipway-adopted-" + component }

// project bounds the Application by what the chart of the release has: its kinds, in its
// namespaces.
func (i *installer) project(objs []*unstructured.Unstructured, tree contract.Tree) *unstructured.Unstructured {
	namespaces := map[string]bool{i.component.Namespace: true}
	kinds := map[bool]map[string]any{false: {}, true: {}} // by whether they are in namespaces
	for _, o := range objs {
		gk := o.GroupVersionKind().GroupKind()
		kinds[o.GetNamespace() != ""][gk.String()] = map[string]any{"group": gk.Group, "kind": gk.Kind}
		if o.GetNamespace() != "" {
			namespaces[o.GetNamespace()] = true
		}
	}
	sorted := func(m map[string]any) []any {
		out := []any{}
		for _, key := range slices.Sorted(maps.Keys(m)) {
			out = append(out, m[key])
		}
		return out
	}
	return argo.Project(tree.Namespace, projectName(i.component.Name), kube.Labels(i.env.Deployment), map[string]any{
		"description":                "What the chart of " + i.component.Name + " has.",
		"sourceRepos":                []any{tree.Repository},
		"destinations":               argo.Destinations(slices.Sorted(maps.Keys(namespaces))),
		"clusterResourceWhitelist":   sorted(kinds[false]),
		"namespaceResourceWhitelist": sorted(kinds[true]),
	})
}

// application has the component as Slipway installed it. By server-side apply it changes
// nothing in objects that are as the chart has them; the mark by which Argo CD knows its
// own is all that it adds.
func (i *installer) application(values map[string]any, tree contract.Tree) (*unstructured.Unstructured, error) {
	c := i.component
	helm := map[string]any{"releaseName": c.Name}
	if len(values) > 0 {
		own, err := copied(values)
		if err != nil {
			return nil, badChart(c.Name, err)
		}
		helm["valuesObject"] = own
	}
	policy := argo.SyncPolicy()
	policy["syncOptions"] = []any{"ServerSideApply=true"}
	labels := kube.Labels(i.env.Deployment)
	metadata := map[string]any{"name": c.Name, "namespace": tree.Namespace}
	labels[kube.AdoptedLabel] = kube.AdoptedEngine
	if i.release.GitOps.Engine != c.Name { // which cannot remove itself
		labels[kube.AdoptedLabel] = kube.AdoptedOther
		metadata["finalizers"] = []any{argo.CascadeFinalizer}
	}
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata,
		"spec": map[string]any{
			"project": projectName(i.component.Name),
			"source": map[string]any{
				"repoURL": tree.Repository, "targetRevision": tree.Target, "helm": helm,
				"path": path.Join(tree.Path, strings.TrimPrefix(c.Path, i.release.GitOps.Tree+"/")),
			},
			"destination":          map[string]any{"server": argo.InCluster, "namespace": c.Namespace},
			"revisionHistoryLimit": int64(5),
			"syncPolicy":           policy,
		},
	}}
	o.SetLabels(labels)
	return o, nil
}

// copied is as JSON has it, whatever the values were read from.
func copied(values map[string]any) (out map[string]any, err error) {
	text, err := json.Marshal(values)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	return out, err
}

// synced waits until the Application is Synced and Healthy at the commit that was pushed or, in a
// repository of the user's, at the commit that Argo CD finds.
func (i *installer) synced(ctx context.Context, in contract.HandoverInput) error {
	deadline := time.Duration(in.Deadline) * time.Second
	if deadline <= 0 {
		deadline = adoptionDeadline
	}
	limited, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	name, namespace := i.component.Name, in.Tree.Namespace
	var asked time.Time
	err := i.client.WaitFor(limited, "the Application "+name, kube.Poll, func(ctx context.Context) (bool, string, error) {
		if time.Since(asked) >= refreshEvery {
			// What was seen before is not trusted: somebody may have changed an object since.
			if err := i.client.Asking().Patch(ctx, "refresh the Application "+name, argo.Applications(), namespace, name, argo.Refresh()); err != nil {
				return false, "", err
			}
			asked = time.Now()
		}
		app, err := argo.Get(ctx, i.client, namespace, name)
		if err != nil {
			return false, "", err
		}
		if app.Refreshing {
			return false, "Argo CD has not compared it yet", nil
		}
		why := app.Waiting(in.Tree.Revision)
		if why != "" {
			why += ": " + app.Explain()
		}
		return why == "", why, nil
	})
	if fault.ClassOf(err) == fault.Timeout {
		err = &fault.Fault{
			Code: argo.CodeLate, Class: fault.Timeout, Op: "bring the Application of " + name + " to the release", Err: err,
			Fix: "correct what was seen last, then run the same command again; to look at it: slipway toolchain -- kubectl get application -n " + fault.Quote(namespace) + " " + fault.Quote(name) + " -o yaml",
		}
	}
	return err
}

// letGo ends Slipway's part in the component, once Argo CD has applied it.
func (i *installer) letGo(ctx context.Context, objs []*unstructured.Unstructured) error {
	listed, err := i.client.Notes(ctx, "", kube.ObjectsOf(i.component.Name))
	if err != nil || listed == nil {
		return err
	}
	if err := i.client.Yield(ctx, objs); err != nil {
		return err
	}
	if err := i.client.Forget(ctx, i.env.Deployment, i.component.Name); err != nil {
		return err
	}
	i.env.Progress("Argo CD owns it now")
	return nil
}

// owned reports whether Argo CD has taken the component over, with an Application of its name.
func (i *installer) owned(ctx context.Context) (bool, error) {
	name, namespace := i.component.Name, i.release.Engine().Namespace
	o, err := i.client.Live(ctx, argo.Member(namespace, name))
	if err != nil || o == nil { // Argo CD may not be there yet
		return false, err
	}
	if kube.DeploymentOf(o.GetLabels()) != i.env.Deployment || o.GetLabels()[kube.AdoptedLabel] == "" {
		return false, &fault.Fault{
			Code: kube.CodeForeign, Class: fault.Step, Op: "install component " + name,
			Fix: "remove the Application " + namespace + "/" + name + ", or give the component another name, then run the same command again",
			Err: fmt.Errorf("the Application %s/%s is not the deployment's own", namespace, name),
		}
	}
	return true, nil
}
