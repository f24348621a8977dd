package removal

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/stages/internal/helm"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

type chart struct {
	config  *action.Configuration
	last    *release.Release
	all     []kube.Member // what it is made of
	members []kube.Member // what of that is removed
	hooks   []kube.Member // what its hooks made, which Helm leaves
}

// release finds the Helm release of a component; nil if there is none, or if it is
// somebody else's. Of its objects it leaves out those with which data goes, those that are kept, those that are
// not the deployment's, and those that keep says stay.
func (r *Remover) release(ctx context.Context, c Component, keep func(kube.Member) bool) (*chart, error) {
	if c.Namespace == "" || c.Apps {
		return nil, nil
	}
	ours, err := OwnsRelease(ctx, r.Client, r.Deployment, c.Namespace, c.Name)
	if err != nil || !ours {
		return nil, err
	}
	out := &chart{}
	if out.config, err = helm.Connect(ctx, r.Client.Plan, r.Kubeconfig, c.Namespace, r.Log); err != nil {
		return nil, fmt.Errorf("connect Helm to the cluster: %w", err)
	}
	history, err := helm.History(ctx, r.Client, out.config, c.Name)
	if err != nil || len(history) == 0 {
		return nil, err
	}
	out.last = slices.MaxFunc(history, func(a, b *release.Release) int { return cmp.Compare(a.Version, b.Version) })
	objs, err := r.parts(ctx, out.last.Manifest, c.Namespace)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	for _, o := range objs {
		m := kube.MemberOf(o)
		out.all = append(out.all, m)
		live, err := r.Client.Live(ctx, m)
		if err != nil {
			return nil, err
		}
		if live == nil || m.HasData() || kube.Keeps(live) || kube.Keeps(o) || kube.DeploymentOf(live.GetLabels()) != r.Deployment || keep != nil && keep(m) {
			continue
		}
		out.members = append(out.members, m)
		doc, err := yaml.Marshal(o.Object)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", m, err)
		}
		fmt.Fprintf(&text, "---\n%s", doc)
	}
	out.last.Manifest = text.String()
	for _, h := range out.last.Hooks {
		made, err := r.parts(ctx, h.Manifest, c.Namespace)
		if err != nil {
			return nil, err
		}
		for _, o := range made {
			if m := kube.MemberOf(o); keep == nil || !keep(m) {
				out.hooks = append(out.hooks, m)
			}
		}
	}
	return out, nil
}

func (r *Remover) parts(ctx context.Context, manifest, namespace string) ([]*unstructured.Unstructured, error) {
	objs, err := kube.DecodeRendered([]byte(manifest))
	if err != nil {
		return nil, err
	}
	return objs, r.Client.Place(ctx, objs, namespace)
}

// uninstall has Helm remove a release, with its hooks. Where these fail, it goes without
// them.
func (r *Remover) uninstall(ctx context.Context, c *chart) error {
	name := c.last.Name
	if r.Client.Plan != nil {
		return r.planUninstall(ctx, c)
	}
	un := action.NewUninstall(c.config)
	un.IgnoreNotFound, un.DeletionPropagation, un.Timeout = true, "foreground", r.Limit()
	err := r.Client.Retry(ctx, "uninstall the Helm release "+name, func(ctx context.Context) error {
		switch err := c.config.Releases.Update(c.last); { // Helm deletes what the record names
		case apierrors.IsNotFound(err), errors.Is(err, driver.ErrReleaseNotFound):
			return nil // an attempt whose answer was lost
		case err != nil:
			return err
		}
		_, err := un.Run(name)
		if err != nil && !kube.Transient(err) && !un.DisableHooks && ctx.Err() == nil {
			r.Log.Warn("a chart's hooks fail; it is removed without them", "release", name, "error", err)
			un.DisableHooks = true
			_, err = un.Run(name)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, m := range c.hooks { // they have no label
		if err := r.deleteHook(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// planUninstall deletes in a plan what Helm would.
func (r *Remover) planUninstall(ctx context.Context, c *chart) error {
	for _, m := range c.members {
		if _, err := r.Client.DeleteOurs(ctx, m, r.Deployment, metav1.DeletePropagationBackground); err != nil {
			return err
		}
	}
	for _, m := range c.hooks {
		if err := r.deleteHook(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// deleteHook deletes what a hook of a chart made, unless it is another deployment's. The record
// of the release alone is not enough: Slipway has written to nodes and accounts, too.
func (r *Remover) deleteHook(ctx context.Context, m kube.Member) error {
	live, err := r.Client.Live(ctx, m)
	if err != nil || live == nil || m.HasData() || kube.Keeps(live) || live.GetAnnotations()[release.HookAnnotation] == "" || !kube.Ours(live, r.Deployment) {
		return err
	}
	return r.Client.DeleteObject(ctx, live, metav1.DeletePropagationBackground)
}

// OwnsRelease reports whether a Helm release of that name is the deployment's, by its label.
func OwnsRelease(ctx context.Context, c *kube.Client, deployment, namespace, name string) (bool, error) {
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	found, err := c.List(ctx, secrets, namespace, "owner=helm,name="+name)
	if err != nil {
		return false, err
	}
	for _, o := range found {
		if owner := kube.DeploymentOf(o.GetLabels()); owner != "" {
			return owner == deployment, nil
		}
	}
	return false, nil
}
