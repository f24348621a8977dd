package preorchestrator

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/gitserver"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

const (
	probeApp       = "slipway-probe" // the Application, its project and what it brings
	reconcileSoon  = 3 * time.Minute
	removeSoon     = 30 * time.Second // after a failure
	probeRetention = "the check of step preorchestrator/reconcile"
)

// probeTree is what the probe repository holds: one object that Argo CD can bring about
// anywhere. No controller runs a PodTemplate, and Slipway reads none: whoever else uses the
// probe's project gains nothing.
func probeTree() gitserver.Tree {
	return gitserver.Tree{"probe.yaml": []byte(`apiVersion: v1
kind: PodTemplate
metadata:
  name: ` + probeApp + `
template:
  metadata:
    annotations:
      purpose: ` + probeRetention + `
  spec:
    containers:
      - name: none
        image: none
`)}
}

func runReconcile(ctx context.Context, env *step.Env, in contract.ReconcileInput) (contract.Reconcile, error) {
	c, err := kube.Connect(env.Kubeconfig, env.Progress)
	if err != nil {
		return contract.Reconcile{}, err
	}
	if err := removeProbe(ctx, c, in.Namespace); err != nil { // of a run that was killed
		return contract.Reconcile{}, badReconcile(in.Namespace, err)
	}
	app, err := reconcile(ctx, c, env.Deployment, in)
	if err != nil {
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeSoon)
		defer cancel()
		if left := removeProbe(within, c, in.Namespace); left != nil { // the next run does
			env.Logger.Warn("remove the probe", "error", left)
		}
		return contract.Reconcile{}, err
	}
	env.Progress("%s/%s was %s and %s at %s", app.Namespace, app.Name, app.Sync, app.Health, argo.Short(app.Revision))
	if err := removeProbe(ctx, c, in.Namespace); err != nil {
		return contract.Reconcile{}, badReconcile(in.Namespace, err)
	}
	return contract.Reconcile{Application: app.Namespace + "/" + app.Name, Revision: app.Revision}, nil
}

// verifyReconcile is cheap: what was seen stays true while Argo CD's controller
// and repository server run.
func verifyReconcile(ctx context.Context, env *step.Env, in contract.ReconcileInput, _ contract.Reconcile) error {
	c, err := kube.Connect(env.Kubeconfig, env.Progress)
	if err != nil {
		return err
	}
	for _, selector := range []string{argo.Controller, argo.RepoServer} {
		found, err := c.Workloads(ctx, in.Namespace, selector)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return fmt.Errorf("namespace %s has no StatefulSet or Deployment with the label %s", in.Namespace, selector)
		}
		for _, o := range found {
			if err := c.RolledOut(ctx, o.GetKind(), in.Namespace, o.GetName()); err != nil {
				return err
			}
		}
	}
	return nil
}

// reconcile applies the probe Application and waits until it is Synced and
// Healthy at the commit that was pushed.
func reconcile(ctx context.Context, c *kube.Client, deployment string, in contract.ReconcileInput) (argo.Application, error) {
	for _, o := range probeObjects(deployment, in) { // the project before the Application that names it
		if _, err := c.Apply(ctx, []*unstructured.Unstructured{o}, kube.ApplyOptions{Force: true}); err != nil {
			return argo.Application{}, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, reconcileSoon)
	defer cancel()
	var app argo.Application
	what := fmt.Sprintf("the Application %s/%s to be Synced and Healthy", kube.SystemNamespace, probeApp)
	err := c.WaitFor(ctx, what, kube.Poll, func(ctx context.Context) (bool, string, error) {
		o, err := c.Dynamic.Resource(argo.Applications()).Namespace(kube.SystemNamespace).Get(ctx, probeApp, metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		app = argo.Read(o)
		why := app.Waiting(in.Revision)
		if why != "" {
			why += ": " + app.Explain()
		}
		return why == "", why, nil
	})
	if err != nil {
		return app, badReconcile(in.Namespace, err)
	}
	return app, nil
}

func badReconcile(engine string, err error) error {
	fix := "look at its log: slipway toolchain -- kubectl logs -n " + fault.Quote(engine) + " -l " + argo.Controller
	return &fault.Fault{Code: argo.CodeStale, Class: step.ClassOf(err), Op: "let Argo CD reconcile an Application outside its namespace", Fix: fix, Err: err}
}

// probeObjects are the probe and its project, which allows nothing but what the probe brings:
// any Application in Argo CD's namespace may use it, whatever its sourceNamespaces are. The
// probe has no finalizer: see removeProbe.
func probeObjects(deployment string, in contract.ReconcileInput) []*unstructured.Unstructured {
	target := map[string]any{"server": argo.InCluster, "namespace": kube.SystemNamespace}
	project := argo.Project(in.Namespace, probeApp, kube.Labels(deployment), map[string]any{
		"description":                probeRetention,
		"sourceRepos":                []any{in.Repository},
		"sourceNamespaces":           []any{kube.SystemNamespace},
		"destinations":               []any{target},
		"clusterResourceWhitelist":   []any{},
		"namespaceResourceWhitelist": []any{map[string]any{"group": "", "kind": "PodTemplate"}},
	})
	app := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
		"metadata": map[string]any{"name": probeApp, "namespace": kube.SystemNamespace},
		"spec": map[string]any{
			"project":     probeApp,
			"source":      map[string]any{"repoURL": in.Repository, "targetRevision": contract.Branch, "path": "."},
			"destination": target,
			"syncPolicy":  map[string]any{"automated": map[string]any{"prune": true}},
		},
	}}
	app.SetLabels(kube.Labels(deployment))
	return []*unstructured.Unstructured{project, app}
}

// removeProbe deletes the probe, what it brought, and its project, and waits for
// nothing: an Application without finalizers is gone at once. It goes first, so that
// nobody brings its object again.
func removeProbe(ctx context.Context, c *kube.Client, engine string) error {
	for _, o := range []struct {
		resource  schema.GroupVersionResource
		namespace string
	}{
		{argo.Applications(), kube.SystemNamespace},
		{schema.GroupVersionResource{Version: "v1", Resource: "podtemplates"}, kube.SystemNamespace},
		{argo.AppProjects(), engine},
	} {
		if err := c.Delete(ctx, o.resource, o.namespace, probeApp, metav1.DeletePropagationBackground); err != nil {
			return err
		}
	}
	return nil
}
