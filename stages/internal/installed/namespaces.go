package installed

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/stages/internal/kube"
)

func core(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: resource}
}

// Same looks for objects that are still the same: others may have their names by now.
func (r *Remover) Same(objs []unstructured.Unstructured) Look {
	return func(ctx context.Context) ([]unstructured.Unstructured, error) {
		var left []unstructured.Unstructured
		for i := range objs {
			live, err := r.Client.Live(ctx, kube.MemberOf(&objs[i]))
			if err != nil {
				return nil, err
			}
			if live != nil && live.GetUID() == objs[i].GetUID() {
				left = append(left, *live)
			}
		}
		return left, nil
	}
}

// Namespaces deletes namespaces with whatever is in them, all at a time, and waits until
// they are gone. What holds them up loses its finalizers: see Gone. One of another UID was made
// since, and stays.
func (r *Remover) Namespaces(ctx context.Context, all []unstructured.Unstructured) error {
	if len(all) == 0 {
		return nil
	}
	var names []string
	for _, ns := range all {
		names = append(names, ns.GetName())
	}
	r.Progress("deleting namespaces %s", strings.Join(names, ", "))
	if err := r.Delete(ctx, all); err != nil {
		return err
	}
	return r.gone(ctx, r.Limit(), "the namespaces", r.Same(all), func(ctx context.Context, left []unstructured.Unstructured) (held []unstructured.Unstructured, err error) {
		for _, ns := range left {
			objs, _, err := r.Client.Everything(ctx, true, ns.GetName(), "")
			if err != nil {
				return nil, err
			}
			held = append(held, objs...)
		}
		return held, nil
	})
}

// Release takes the deployment's labels off a namespace that it used and did not make, and
// takes back that pods there pull with the registry's account.
func (r *Remover) Release(ctx context.Context, name string) error {
	if err := r.Client.UnsetPullSecret(ctx, r.Deployment, name); err != nil {
		return err
	}
	bare := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
	}}
	err := r.Client.Retry(ctx, "release namespace "+name, func(ctx context.Context) error {
		_, err := r.Client.Dynamic.Resource(core("namespaces")).Apply(ctx, name, bare, metav1.ApplyOptions{FieldManager: kube.FieldManager, Force: true})
		return err
	})
	if err != nil {
		return err
	}
	return r.Client.Label(ctx, bare, map[string]any{kube.DeploymentLabel: nil})
}

// OfEveryNamespace reports whether Kubernetes itself makes an object in every namespace.
func OfEveryNamespace(m kube.Member) bool {
	switch m.Kind.Kind {
	case "ServiceAccount":
		return m.Name == metav1.NamespaceDefault
	case "ConfigMap":
		return m.Name == "kube-root-ca.crt"
	}
	return m.Kind.Kind == "Event"
}
