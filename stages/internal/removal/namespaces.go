package removal

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-sh/slipway/stages/internal/kube"
)

func core(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: resource}
}

// namespace is the member that a namespace is.
func namespace(name string) kube.Member {
	return kube.Member{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Name: name}
}

// Namespace is a namespace as it is now; nil if it is gone, also where another one, of
// another UID, has its name.
func (r *Remover) Namespace(ctx context.Context, name string, uid types.UID) (*unstructured.Unstructured, error) {
	ns, err := r.Client.Live(ctx, namespace(name))
	if err != nil || ns == nil || ns.GetUID() != uid {
		return nil, err
	}
	return ns, nil
}

// Namespaces deletes namespaces with whatever is in them, all at a time, and waits until
// they are gone. uids has the UID of each by its name: one with another UID was made since,
// and stays.
func (r *Remover) Namespaces(ctx context.Context, uids map[string]types.UID) error {
	names := slices.Sorted(maps.Keys(uids))
	if len(names) == 0 {
		return nil
	}
	r.Progress("deleting namespaces %s", strings.Join(names, ", "))
	stuck := r.awaitNamespaces(ctx, uids, r.Limit())
	if len(stuck) == 0 || ctx.Err() != nil {
		return errors.Join(stuck...)
	}
	for _, err := range stuck {
		r.Log.Warn("a namespace does not go by itself", "error", err)
	}
	for _, name := range names {
		if live, err := r.Namespace(ctx, name, uids[name]); err != nil {
			return err
		} else if live == nil {
			continue
		}
		left, err := r.Client.StuckIn(ctx, name)
		if err != nil {
			return err
		}
		if err := r.Strip(ctx, left); err != nil {
			return err
		}
	}
	return errors.Join(r.awaitNamespaces(ctx, uids, afterStrip)...)
}

func (r *Remover) awaitNamespaces(ctx context.Context, uids map[string]types.UID, limit time.Duration) []error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	names := slices.Sorted(maps.Keys(uids))
	errs := make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() { errs[i] = r.Client.DeleteNamespace(ctx, name, uids[name]) })
	}
	wg.Wait()
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
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
	return r.Label(ctx, core("namespaces"), *bare, map[string]any{kube.DeploymentLabel: nil})
}

// Label sets labels of an object; nil removes one.
func (r *Remover) Label(ctx context.Context, gvr schema.GroupVersionResource, o unstructured.Unstructured, labels map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
	if err != nil {
		return err
	}
	return r.Client.Patch(ctx, "label "+kube.MemberOf(&o).String(), gvr, o.GetNamespace(), o.GetName(), patch)
}

// OfEveryNamespace reports whether Kubernetes itself makes an object in every namespace.
func OfEveryNamespace(o *unstructured.Unstructured) bool {
	switch o.GetKind() {
	case "ServiceAccount":
		return o.GetName() == metav1.NamespaceDefault
	case "ConfigMap":
		return o.GetName() == "kube-root-ca.crt"
	}
	return o.GetKind() == "Event"
}
