package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-sh/slipway/stages/argo"
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
		if pods = w.imageCause(ctx, r.Namespace, selector); pods == "" {
			pods = w.client.PodCause(ctx, r.Namespace, selector)
		}
		if pods != "" {
			break
		}
	}
	return a.Explain(pods), pods != "" || a.Failed()
}

// imageCause says which image of the pods cannot be had: the commonest cause of
// all gets a sentence of its own. Empty when images are not the matter.
func (w *waiter) imageCause(ctx context.Context, namespace, selector string) string {
	pods, err := w.client.Kubernetes.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		w.env.Logger.Info("look for the pods", "namespace", namespace, "selector", selector, "error", err)
		return ""
	}
	for _, p := range pods.Items {
		for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			if c.State.Waiting == nil {
				continue
			}
			if why := whyNoImage(c.Image, c.State.Waiting.Reason, c.State.Waiting.Message); why != "" {
				return fmt.Sprintf("image %s %s (pod %s, %s)", shortImage(c.Image), why, p.Name, c.State.Waiting.Reason)
			}
		}
	}
	return ""
}

// bundled is the host in the references of a bundle's images. There is no such
// registry: an image that has to be pulled from it is not in the bundle.
const bundled = "slipway.local/"

// whyNoImage reads the reason and the message of a container that waits; empty
// when it does not wait for an image.
func whyNoImage(image, reason, message string) string {
	switch reason {
	case "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "RegistryUnavailable":
	case "InvalidImageName":
		return "has no valid name"
	default:
		return ""
	}
	if strings.HasPrefix(image, bundled) {
		return "not found"
	}
	for _, absent := range []string{"not found", "no such host", "NotFound", "name unknown"} {
		if strings.Contains(message, absent) {
			return "not found"
		}
	}
	for _, denied := range []string{"unauthorized", "denied", "401", "403"} {
		if strings.Contains(message, denied) {
			return "refused by its registry"
		}
	}
	parts := strings.Split(message, ": ")
	return strings.TrimSpace("cannot be pulled: " + parts[len(parts)-1])
}

// shortImage leaves twelve digits of a digest.
func shortImage(ref string) string {
	name, digest, ok := strings.Cut(ref, "@sha256:")
	if !ok || len(digest) <= 12 {
		return ref
	}
	return name + "@sha256:" + digest[:12] + "…"
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
