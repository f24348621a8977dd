package orchestrator

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-sh/slipway/stages/orchestrator/argo"
)

// cause says in one sentence why a is not Synced and Healthy. known tells that
// something failed, not only that something is slow. It looks at pods, which it
// gets a while for even after ctx has ended.
func (w *waiter) cause(ctx context.Context, a argo.Application) (sentence string, known bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), diagnose)
	defer cancel()
	pods := ""
	for _, r := range a.Workloads() {
		selector, err := w.selector(ctx, r)
		if err != nil {
			w.env.Logger.Info("look for the pods", "app", a.Name, "kind", r.Kind, "name", r.Name, "error", err)
			continue
		}
		if pods = w.client.PodCause(ctx, r.Namespace, selector); pods != "" {
			break
		}
	}
	return a.Explain(pods), pods != "" || a.Failed()
}

// selector finds the pods of a workload.
func (w *waiter) selector(ctx context.Context, r argo.Resource) (string, error) {
	api := w.client.Kubernetes
	var s *metav1.LabelSelector
	switch r.Kind {
	case "Deployment":
		o, err := api.AppsV1().Deployments(r.Namespace).Get(ctx, r.Name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		s = o.Spec.Selector
	case "StatefulSet":
		o, err := api.AppsV1().StatefulSets(r.Namespace).Get(ctx, r.Name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		s = o.Spec.Selector
	case "DaemonSet":
		o, err := api.AppsV1().DaemonSets(r.Namespace).Get(ctx, r.Name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		s = o.Spec.Selector
	case "Job":
		o, err := api.BatchV1().Jobs(r.Namespace).Get(ctx, r.Name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		s = o.Spec.Selector
	}
	if s == nil {
		return "", fmt.Errorf("%s %s/%s has no selector", r.Kind, r.Namespace, r.Name)
	}
	return metav1.FormatLabelSelector(s), nil
}
