package removal

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/render"
)

// prerequisitesName is the ConfigMap, in kube.SystemNamespace, that lists what was made for the
// releases of a deployment before their components.
const prerequisitesName = "slipway-prerequisites"

// Prerequisites lists what is made for a release before any component is: namespaces, Secrets,
// ConfigMaps and certificates.
func Prerequisites(r *platform.Release) []kube.Member {
	var out []kube.Member
	add := func(kind, namespace, name string) {
		out = append(out, kube.Member{Kind: schema.GroupVersionKind{Version: "v1", Kind: kind}, Namespace: namespace, Name: name})
	}
	for _, n := range r.Namespaces {
		add("Namespace", "", n.Name)
		if len(r.Certificates) > 0 {
			add("ConfigMap", n.Name, platform.AuthorityConfigMap)
		}
	}
	for _, s := range r.Secrets {
		add("Secret", s.Namespace, s.Name)
	}
	for _, m := range r.ConfigMaps {
		add("ConfigMap", m.Namespace, m.Name)
	}
	for _, c := range r.Certificates {
		namespace, name, _ := strings.Cut(c.Secret, "/")
		add("Secret", namespace, name)
	}
	return out
}

// RecordPrerequisites adds what is made for a release to the list, which is read by PrunePrerequisites.
func RecordPrerequisites(ctx context.Context, c *kube.Client, deployment string, r *platform.Release) error {
	all, err := c.Members(ctx, prerequisitesName)
	if err != nil {
		return err
	}
	return c.KeepMembers(ctx, deployment, prerequisitesName, append(dropped(all, r), Prerequisites(r)...))
}

// PrerequisiteNamespaces are the names of the namespaces in that list; nil: there is no list.
func PrerequisiteNamespaces(ctx context.Context, c *kube.Client) ([]string, error) {
	all, err := c.Members(ctx, prerequisitesName)
	if err != nil || all == nil {
		return nil, err
	}
	out := []string{}
	for _, m := range all {
		if m.Kind.Kind == "Namespace" {
			out = append(out, m.Name)
		}
	}
	return out, nil
}

// dropped are those of all that are not made for a release.
func dropped(all []kube.Member, r *platform.Release) []kube.Member {
	now := Prerequisites(r)
	return slices.DeleteFunc(all, func(m kube.Member) bool { return slices.ContainsFunc(now, m.Same) })
}

// PrunePrerequisites removes what was made for earlier releases before their components, and what
// this one has no more: Secrets, ConfigMaps and certificates, then namespaces. What somebody
// needs stays and is tried again by the next install: what a pod reads, a Secret beside a
// claim that no pod has, and a namespace with anything that is not the deployment's. So does
// everything while components of the release are leftOut. What is somebody else's by now, or
// a component's or an Application's, is left alone for good.
//
// It returns what it deleted, and what stays: "Kind namespace/name: why".
func (r *Remover) PrunePrerequisites(ctx context.Context, release *platform.Release, leftOut []string) (deleted, kept []string, err error) {
	all, err := r.Client.Members(ctx, prerequisitesName)
	if err != nil {
		return nil, nil, err
	}
	gone := dropped(all, release)
	stay := Prerequisites(release)
	u := &prerequisitePruning{Remover: r, uses: map[string]use{}}
	if len(gone) > 0 && len(leftOut) == 0 {
		if u.others, err = r.Has(ctx, RecordOf(release).Components, gone); err != nil {
			return nil, nil, err
		}
		if u.apps, err = r.applications(ctx); err != nil {
			return nil, nil, err
		}
	}
	var going []unstructured.Unstructured // namespaces
	for _, namespaces := range []bool{false, true} {
		for _, m := range gone {
			if namespaces != (m.Kind.Kind == "Namespace") {
				continue
			}
			live, why, err := u.look(ctx, m, leftOut)
			switch {
			case err != nil:
				return deleted, nil, err
			case why != "":
				stay, kept = append(stay, m), append(kept, m.String()+": "+why)
			case live == nil:
			case namespaces:
				going, deleted = append(going, *live), append(deleted, m.String())
			default:
				if _, err := r.Client.DeleteOurs(ctx, m, r.Deployment, metav1.DeletePropagationBackground); err != nil {
					return deleted, nil, err
				}
				deleted = append(deleted, m.String())
			}
		}
	}
	if err := r.Namespaces(ctx, going); err != nil {
		return deleted, nil, err
	}
	return deleted, kept, r.Client.KeepMembers(ctx, r.Deployment, prerequisitesName, stay)
}

// prerequisitePruning is a removal of what was prepared.
type prerequisitePruning struct {
	*Remover
	others []kube.Member // what components and Applications have
	apps   applications
	uses   map[string]use // by namespace
}

// look returns an object of the list that goes, or why it stays; neither for one that is not
// there, or that the list has no business with any more.
func (u *prerequisitePruning) look(ctx context.Context, m kube.Member, leftOut []string) (live *unstructured.Unstructured, why string, err error) {
	if live, err = u.Client.Live(ctx, m); err != nil || live == nil || !u.mine(live) || slices.ContainsFunc(u.others, m.Same) {
		return nil, "", err
	}
	if len(leftOut) > 0 {
		return nil, "this run has left out " + strings.Join(leftOut, ", "), nil
	}
	if m.Kind.Kind != "Namespace" {
		why, err = u.needed(ctx, m)
		return live, why, err
	}
	if !kube.MadeNamespace(live.GetLabels(), u.Deployment) { // it was there before
		return nil, "", u.Release(ctx, m.Name)
	}
	why, err = u.occupied(ctx, m.Name)
	return live, why, err
}

// mine reports whether an object is the deployment's, and no copy of one that is.
func (r *Remover) mine(o *unstructured.Unstructured) bool {
	return kube.DeploymentOf(o.GetLabels()) == r.Deployment && kube.WroteTo(o)
}

// needed is why a Secret or ConfigMap stays; empty if nobody needs it.
func (u *prerequisitePruning) needed(ctx context.Context, m kube.Member) (string, error) {
	in, known := u.uses[m.Namespace]
	if !known {
		var err error
		if in, err = u.used(ctx, m.Namespace); err != nil {
			return "", err
		}
		u.uses[m.Namespace] = in
	}
	switch reader := in.readers[m.Kind.Kind+"/"+m.Name]; {
	case reader != "":
		return reader + " reads it", nil
	case m.Kind.Kind == "Secret" && len(in.idle) > 0:
		return fmt.Sprintf("what is in the claim %s, which no pod has, may be worth nothing without it", in.idle[0]), nil
	}
	return "", nil
}

// use is what the pods of a namespace need.
type use struct {
	readers map[string]string // "Secret/name": "Deployment web"
	idle    []string          // claims that no pod has
}

func (r *Remover) used(ctx context.Context, namespace string) (use, error) {
	out := use{readers: map[string]string{}}
	apps, batch := schema.GroupVersion{Group: "apps", Version: "v1"}, schema.GroupVersion{Group: "batch", Version: "v1"}
	mounted := map[string]bool{}
	for _, gvr := range []schema.GroupVersionResource{ // the pods of Jobs are there while they run
		core("pods"), apps.WithResource("deployments"), apps.WithResource("statefulsets"), apps.WithResource("daemonsets"), batch.WithResource("cronjobs"),
	} {
		objs, err := r.Client.List(ctx, gvr, namespace, "")
		if err != nil {
			return out, err
		}
		for i := range objs {
			o := &objs[i]
			phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
			if o.GetDeletionTimestamp() != nil || phase == "Succeeded" || phase == "Failed" {
				continue
			}
			for _, name := range render.Uses(o) {
				out.readers[name] = o.GetKind() + " " + o.GetName()
			}
			for _, v := range kube.Entries(o, "spec", "imagePullSecrets") { // of a pod, as the next one
				name, _ := v["name"].(string)
				out.readers["Secret/"+name] = o.GetKind() + " " + o.GetName()
			}
			for _, v := range kube.Entries(o, "spec", "volumes") {
				claim, _, _ := unstructured.NestedString(v, "persistentVolumeClaim", "claimName")
				mounted[claim] = true
			}
		}
	}
	claims, err := r.Client.List(ctx, core("persistentvolumeclaims"), namespace, "")
	for _, c := range claims {
		ofPod := slices.ContainsFunc(c.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.Kind == "Pod" }) // and goes with it
		if !mounted[c.GetName()] && !ofPod {
			out.idle = append(out.idle, namespace+"/"+c.GetName())
		}
	}
	return out, err
}

// occupied is why a namespace stays: what is in it besides what Kubernetes makes everywhere
// and what is the deployment's. It is empty if the namespace can go.
func (u *prerequisitePruning) occupied(ctx context.Context, name string) (string, error) {
	at := slices.IndexFunc(u.others, func(m kube.Member) bool { return m.Namespace == name })
	if at >= 0 {
		return "it has " + u.others[at].String(), nil
	}
	objs, away, err := u.Client.Everything(ctx, true, name, "")
	if err != nil {
		return "", err
	}
	if len(away) > 0 { // nobody knows what there is of these
		return "the API does not answer for " + strings.Join(away, ", "), nil
	}
	there := map[types.UID]bool{}
	for _, o := range objs {
		there[o.GetUID()] = true
	}
	objs = slices.DeleteFunc(objs, func(o unstructured.Unstructured) bool {
		if !withData(o) && (u.mine(&o) && !u.apps.brought(&o) || OfEveryNamespace(kube.MemberOf(&o)) || derived(o)) {
			return true
		}
		for _, owner := range o.GetOwnerReferences() {
			if there[owner.UID] && !withData(o) { // it goes with that one, or stays with it
				return true
			}
		}
		return false
	})
	if len(objs) == 0 {
		return "", nil
	}
	if at := slices.IndexFunc(objs, withData); at > 0 { // which is what tells most
		objs[0], objs[at] = objs[at], objs[0]
	}
	why := "it has " + kube.MemberOf(&objs[0]).String()
	if more := len(objs) - 1; more > 0 {
		why += fmt.Sprintf(" and %d more", more)
	}
	return why, nil
}

// withData reports whether data, or what runs elsewhere, goes with an object in a namespace.
func withData(o unstructured.Unstructured) bool {
	return kube.MemberOf(&o).HasData() || o.GroupVersionKind().Group == argo.Applications().Group && o.GetKind() != "AppProject"
}

// derived reports whether an object only says what Kubernetes knows of others.
func derived(o unstructured.Unstructured) bool {
	return slices.Contains([]string{"Endpoints", "EndpointSlice", "Lease"}, o.GetKind())
}
