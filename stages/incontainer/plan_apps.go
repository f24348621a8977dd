package incontainer

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

const atOnce = 8

// pushed stands for a commit that is not made before a run.
const pushed = "the commit that would be pushed"

// apps previews what Argo CD would make of the tree: the Applications, and what is in their
// charts. What is left as it is in Git changes nothing.
func (p *planner) apps(ctx context.Context) error {
	cfg, release := p.req.Config, p.req.Release
	sync := contract.SyncStep().String()
	if _, known := p.outputs[sync]; !known || cfg.Git.URL != "" {
		if cfg.Git.URL != "" {
			p.unknown(sync, "the apps are in a repository of the user's, which Argo CD reads")
		}
		return nil
	}
	var infrastructure contract.Infrastructure
	var git contract.Git
	for id, into := range map[string]any{contract.TerraformStep().String(): &infrastructure, contract.GitStep().String(): &git} {
		if err := json.Unmarshal(p.outputs[id], into); err != nil {
			return fmt.Errorf("read the output of %s: %w", id, err)
		}
	}
	input, err := stages.Rendering(p.req.Inputs, &infrastructure)
	if err != nil {
		return err
	}
	input.Kubernetes = p.req.Tools["kubectl"]
	input.Components = nil // they are steps
	parts, err := p.Render(ctx, release, input)
	if err != nil {
		return fmt.Errorf("render the apps: %w", err)
	}
	c, err := kube.Connect(p.Dirs.Kubeconfig(), nil)
	if err == nil {
		c, err = c.Planned(p.seen.Of(sync))
	}
	if err != nil {
		return err
	}
	a := &appsPreview{planner: p, client: c, engine: release.Engine().Namespace, clone: git.CloneURL(git.Repository), revision: p.revision(), wanted: map[string]bool{}, ofSteps: p.stepped()}
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, part := range parts {
		if part.Kind != string(platform.App) && part.Kind != "gitops" {
			continue
		}
		if part.Err != nil {
			a.unknown(part.Component, part.Err.Error())
			a.incomplete = true
		}
		for _, object := range part.Objects {
			if o := (&unstructured.Unstructured{Object: object}); a.wants(o) {
				group.Go(func() error { return a.apply(ctx, o) })
			}
		}
	}
	if err := group.Wait(); err != nil || a.incomplete {
		return err
	}
	return a.dropped(ctx)
}

// revision is the commit that the apps would be at.
func (p *planner) revision() string {
	at := pushed
	for _, n := range p.seen.Notes() {
		switch v := n.(type) {
		case contract.PlannedChange:
			if v.Of == contract.PlanFiles {
				return pushed
			}
		case contract.PlanBasis:
			if _, revision, is := strings.Cut(v.Git, "@"); is {
				at = revision
			}
		}
	}
	return at
}

type appsPreview struct {
	*planner
	client          *kube.Client
	engine          string // Argo CD's namespace
	clone, revision string
	wanted          map[string]bool // objects, "group/Kind namespace/name"
	ofSteps         map[string]bool // Applications, "namespace/name"
	incomplete      bool
}

func memberKey(group, kind, namespace, name string) string {
	return group + "/" + kind + " " + namespace + "/" + name
}

func (p *planner) unknown(what, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out.Unknown = append(p.out.Unknown, contract.PlannedUnknown{What: what, Why: why})
}

// stepped are the Applications that steps make, "namespace/name".
func (p *planner) stepped() map[string]bool {
	out := map[string]bool{}
	for _, o := range p.seen.Objects() {
		if u := (&unstructured.Unstructured{Object: o.After}); o.After != nil && u.GetKind() == "Application" {
			out[u.GetNamespace()+"/"+u.GetName()] = true
		}
	}
	return out
}

// wants notes that the tree has an object, and reports whether it is to be compared.
func (a *appsPreview) wants(o *unstructured.Unstructured) bool {
	gvk := o.GroupVersionKind()
	isApplication := gvk.Group == argo.Applications().Group && gvk.Kind == "Application"
	switch {
	case gvk.Group == argo.Applications().Group && gvk.Kind == "AppProject", isApplication && a.ofSteps[o.GetNamespace()+"/"+o.GetName()],
		gvk.Kind == "Secret" && o.GetLabels()["argocd.argoproj.io/secret-type"] != "":
		return false // of a step
	case isApplication:
		a.locate(o)
	}
	a.wanted[memberKey(gvk.Group, gvk.Kind, o.GetNamespace(), o.GetName())] = true
	// The values of a Secret are not rendered, and a hook runs at a sync.
	return o.GetKind() != "Secret" && o.GetAnnotations()["argocd.argoproj.io/hook"] == "" && o.GetAnnotations()["helm.sh/hook"] == ""
}

// apply compares an object with the one that is there, as Argo CD would apply it.
func (a *appsPreview) apply(ctx context.Context, o *unstructured.Unstructured) error {
	gvk := o.GroupVersionKind()
	api, err := a.client.Resource(ctx, gvk, o.GetNamespace())
	if meta.IsNoMatchError(err) {
		a.unknown(kube.MemberOf(o).String(), "nothing serves its kind yet")
		return nil
	}
	if err != nil {
		return err
	}
	live, err := a.client.Live(ctx, kube.MemberOf(o))
	if err != nil {
		return err
	}
	if live != nil { // Argo CD marks what is its own
		annotations := o.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		if id, marked := live.GetAnnotations()[kube.TrackingID]; marked {
			annotations[kube.TrackingID] = id
			o.SetAnnotations(annotations)
		}
	}
	_, err = api.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: kube.ArgoManager, Force: true, DryRun: []string{metav1.DryRunAll}})
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsNotFound(err) {
		a.unknown(kube.MemberOf(o).String(), err.Error())
		return nil
	}
	return err
}

// locate puts the place of the tree into an Application: it is rendered without one.
func (a *appsPreview) locate(o *unstructured.Unstructured) {
	place := func(source map[string]any) {
		url, _ := source["repoURL"].(string)
		if !strings.Contains(url, contract.NotKnown) && url != a.clone {
			return
		}
		source["repoURL"] = a.clone
		if source["targetRevision"] == contract.Branch {
			source["targetRevision"] = a.revision
		}
	}
	spec, _ := o.Object["spec"].(map[string]any)
	if one, is := spec["source"].(map[string]any); is {
		place(one)
	}
	several, _ := spec["sources"].([]any)
	for _, v := range several {
		if one, is := v.(map[string]any); is {
			place(one)
		}
	}
}

// dropped has removed what Applications have and the tree has no more. All are in Argo CD's
// namespace: what others, elsewhere, say of themselves is no part of a plan.
func (a *appsPreview) dropped(ctx context.Context) error {
	all, err := a.client.List(ctx, argo.Applications(), a.engine, "")
	if err != nil {
		return err
	}
	for i := range all {
		app := argo.Read(&all[i])
		root := a.ofSteps[app.Namespace+"/"+app.Name]
		gone := !root && !a.wanted[memberKey(argo.Applications().Group, "Application", app.Namespace, app.Name)]
		if gone && !a.fromTree(&all[i]) {
			continue
		}
		for _, r := range app.Resources {
			if a.wanted[memberKey(r.Group, r.Kind, r.Namespace, r.Name)] || root && r.Kind != "Application" {
				continue
			}
			m := kube.Member{Namespace: r.Namespace, Name: r.Name}
			m.Kind.Group, m.Kind.Kind = r.Group, r.Kind
			if err := a.remove(ctx, &all[i], m); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *appsPreview) fromTree(o *unstructured.Unstructured) bool {
	url, _, _ := unstructured.NestedString(o.Object, "spec", "source", "repoURL")
	return url == a.clone
}

// remove notes that an object goes which an Application names, if Argo CD has brought it by that.
func (a *appsPreview) remove(ctx context.Context, by *unstructured.Unstructured, m kube.Member) error {
	live, err := a.client.Live(ctx, m)
	if err != nil || live == nil || !argo.Brought(a.engine, by, live) {
		return err
	}
	a.client.Plan.Put("removed/"+m.Kind.String()+"/"+m.Namespace+"/"+m.Name, live.Object, nil, "")
	return nil
}
