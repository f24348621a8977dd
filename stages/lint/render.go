package lint

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/render"
)

// theApps stands for what brings all apps about, which is of the kind gitOps.
const (
	theApps = "the apps"
	gitOps  = "gitops"
)

// hidden stands for the value of a key in a Secret that is the release's own.
const hidden = "<not shown>"

// MakeObjects makes what Slipway itself applies for the apps of a release.
type MakeObjects func(*platform.Release, contract.RenderInput) ([]*unstructured.Unstructured, error)

// Apps returns what Argo CD makes of the pushed tree: its Applications, and what these bring.
func Apps(ctx context.Context, r *platform.Release, s contract.RenderInput, build BuildTree) ([]contract.Rendered, error) {
	v := &linter{RenderInput: s, release: r}
	v.completeApps()
	err := v.apps(ctx, build)
	return v.shown, err
}

// forApps finds what Slipway itself applies for the apps.
func (v *linter) forApps(objects MakeObjects) {
	if v.Projects == nil {
		return
	}
	objs, err := objects(v.release, v.RenderInput)
	if err != nil {
		v.wrong(theApps, platform.File, v.release.Line("gitops"), err)
		return
	}
	v.file(theApps, platform.File, v.Projects.Namespace, nil, objs)
}

// place says where in the order of a run something is: what is made for all comes first,
// what brings the apps about before the first of them.
func (v *linter) place(r contract.Rendered) int {
	switch i := slices.Index(v.Order, r.Component); {
	case r.Component == "":
		return -1
	case i >= 0:
		return 2*i + 1
	case r.Component != theApps: // an Application that an app brings
		return 2 * len(v.Order)
	}
	return 2 * max(0, slices.IndexFunc(v.Order, func(name string) bool {
		c, _ := v.release.Component(name)
		return c.Kind == platform.App || c.Kind == platform.AppSet
	}))
}

// kind is a component's; what brings the apps about is gitops, what they bring an app. Of
// what is made before the components, only ConfigMaps can be wrong.
func (v *linter) kind(component string) string {
	c, ok := v.release.Component(component)
	switch {
	case ok:
		return string(c.Kind)
	case component == theApps:
		return gitOps
	case component == "":
		return "configMaps"
	}
	return string(platform.App)
}

// file keeps the objects of a component's file as they are applied, and notes NetworkPolicies.
func (v *linter) file(component, name, namespace string, hosts map[string]string, objs []*unstructured.Unstructured) {
	if slices.ContainsFunc(objs, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "NetworkPolicy" && o.GroupVersionKind().Group == "networking.k8s.io"
	}) {
		v.limited = append(v.limited, component)
	}
	if len(objs) == 0 {
		return
	}
	kind := v.kind(component)
	own := kube.Labels(v.Deployment)
	switch {
	case kind == string(platform.Chart), kind == string(platform.Adopted): // Helm has a label of its own for who manages an object
		delete(own, kube.ManagedBy)
	case kind == string(platform.App), component == theApps && name != platform.File: // Argo CD applies them as they are
		own = nil
	}
	unknown := map[string]string{}
	for host := range hosts {
		unknown[host] = contract.NotKnown
	}
	out := contract.Rendered{Component: component, Kind: kind, File: name, Namespace: namespace}
	for _, o := range objs {
		o = o.DeepCopy()
		if len(own) > 0 {
			o.SetLabels(labels.Merge(o.GetLabels(), own))
		}
		if o.GetNamespace() == "" && inNamespace(o) {
			o.SetNamespace(namespace)
		}
		render.AddHosts([]*unstructured.Unstructured{o}, unknown)
		hide(o)
		out.Objects = append(out.Objects, o.Object)
	}
	v.shown = append(v.shown, out)
}

// inNamespace reports whether an object is of one of Kubernetes' own kinds that have namespaces.
func inNamespace(o *unstructured.Unstructured) bool {
	return scheme.Scheme.Recognizes(o.GroupVersionKind()) && !slices.Contains([]string{
		"Namespace", "Node", "PersistentVolume", "ClusterRole", "ClusterRoleBinding", "StorageClass", "CSIDriver", "CSINode",
		"VolumeAttachment", "VolumeAttributesClass", "PriorityClass", "IngressClass", "RuntimeClass", "FlowSchema", "PriorityLevelConfiguration",
		"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "CertificateSigningRequest", "ClusterTrustBundle", "ServiceCIDR", "IPAddress",
		"DeviceClass", "ResourceSlice", "DeviceTaintRule", "StorageVersion", "StorageVersionMigration", "ComponentStatus",
	}, o.GetKind())
}

func hide(o *unstructured.Unstructured) {
	if o.GetKind() != "Secret" || o.GetAPIVersion() != "v1" {
		return
	}
	keys := map[string]any{}
	for _, field := range []string{"data", "stringData"} {
		m, _ := o.Object[field].(map[string]any)
		for key := range m {
			keys[key] = hidden
		}
		delete(o.Object, field)
	}
	if len(keys) > 0 {
		o.Object["stringData"] = keys
	}
}
