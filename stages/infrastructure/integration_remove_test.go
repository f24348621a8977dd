package infrastructure_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/infrastructure"
	"github.com/slipway-sh/slipway/stages/internal/installed"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
)

// argo applies the Argo CD of the bundle: its crds alone, or everything.
func (d *deployment) argo(c *kube.Client, everything bool) {
	d.t.Helper()
	raw, err := os.ReadFile(filepath.Join(os.Getenv("SLIPWAY_TEST_BUNDLE"), "manifests", "argocd", "core-install.yaml"))
	require.NoError(d.t, err)
	text := regexp.MustCompile(`image: quay.io/argoproj/\S+`).ReplaceAllString(string(raw), "image: "+d.images["argocd"])
	text = regexp.MustCompile(`image: \S+/redis:\S+`).ReplaceAllString(text, "image: "+d.images["redis"])
	text = strings.ReplaceAll(text, "imagePullPolicy: Always", "imagePullPolicy: IfNotPresent")
	objs, err := kube.Decode([]byte(text))
	require.NoError(d.t, err)
	objs = slices.DeleteFunc(objs, func(o *unstructured.Unstructured) bool {
		return !everything && o.GetKind() != "CustomResourceDefinition"
	})
	for _, o := range objs {
		labels := o.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels["slipway.sh/deployment"] = "it"
		o.SetLabels(labels)
	}
	_, err = applyYAML(d.t.Context(), c, []byte(namespaces), kube.ApplyOptions{})
	require.NoError(d.t, err)
	_, err = c.Apply(d.t.Context(), objs, kube.ApplyOptions{Namespace: "argocd"})
	require.NoError(d.t, err)
	if everything {
		require.NoError(d.t, readiness.WaitRollout(d.t.Context(), c, "Deployment", "argocd", "argocd-redis"))
		require.NoError(d.t, readiness.WaitRollout(d.t.Context(), c, "StatefulSet", "argocd", "argocd-application-controller"))
	}
}

const namespaces = `
apiVersion: v1
kind: Namespace
metadata: {name: argocd, labels: {app.kubernetes.io/managed-by: slipway, slipway.sh/deployment: it}}
---
apiVersion: v1
kind: Namespace
metadata: {name: apps, labels: {app.kubernetes.io/managed-by: slipway, slipway.sh/deployment: it}}
---
apiVersion: v1
kind: Namespace
metadata: {name: slipway-system, labels: {app.kubernetes.io/managed-by: slipway, slipway.sh/deployment: it}}
`

// application owns a ConfigMap as if Argo CD had made it.
const application = `
apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: default, namespace: argocd}
spec: {sourceRepos: ["*"], destinations: [{namespace: "*", server: "*"}], clusterResourceWhitelist: [{group: "*", kind: "*"}]}
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web, namespace: argocd, labels: {slipway.sh/deployment: it}%s}
spec:
  project: default
  source: {repoURL: "https://git.invalid/x.git", path: ., targetRevision: main}
  destination: {server: "https://kubernetes.default.svc", namespace: apps}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: owned
  namespace: apps
  annotations: {argocd.argoproj.io/tracking-id: "web:/ConfigMap:apps/owned"}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: rows, namespace: apps}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: writer, namespace: apps}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: %q, command: [busybox, sleep, "10000"], volumeMounts: [{name: v, mountPath: /v}]}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: rows}}]
`

func (d *deployment) platform(finalizers string) *kube.Client {
	d.t.Helper()
	c, err := kube.Connect(filepath.Join(d.state, "secrets", "kubeconfig"), nil)
	require.NoError(d.t, err)
	in := d.addons()
	var addons contract.Addons
	require.Equal(d.t, contract.Succeeded, d.run("infrastructure", "local-addons", "", in, &addons).Status)
	d.argo(c, finalizers == "")
	var rec installed.Removal
	rec.Remove.SetDefaults()
	rec.Argo = "argocd"
	require.NoError(d.t, rec.Write(d.t.Context(), c, "it"))
	_, err = applyYAML(d.t.Context(), c, fmt.Appendf(nil, application, finalizers, d.images["busybox"]), kube.ApplyOptions{})
	require.NoError(d.t, err)
	require.NoError(d.t, c.WaitFor(d.t.Context(), "the pod to run", 250*time.Millisecond, func(ctx context.Context) (bool, string, error) {
		p, err := c.Kubernetes.CoreV1().Pods("apps").Get(ctx, "writer", metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		return p.Status.Phase == corev1.PodRunning, string(p.Status.Phase), nil
	}))
	return c
}

func (d *deployment) emptied() {
	d.t.Helper()
	var left contract.Inventory
	require.Equal(d.t, contract.Succeeded, d.run("infrastructure", "inventory", "", contract.InventoryInput{MustBeEmpty: true}, &left).Status)
}

// removed removes the platform, as a destroy does: in two steps.
func (d *deployment) removed() contract.Removed {
	d.t.Helper()
	var out, then contract.Removed
	require.Equal(d.t, contract.Succeeded, d.run("infrastructure", "platform-remove", "", contract.RemoveInput{}, &out).Status)
	require.Equal(d.t, contract.Succeeded, d.run("infrastructure", "crds-remove", "", contract.RemoveInput{}, &then).Status)
	out.Namespaces, out.Cluster = append(out.Namespaces, then.Namespaces...), append(out.Cluster, then.Cluster...)
	out.Stripped, out.Kept = append(out.Stripped, then.Stripped...), append(out.Kept, then.Kept...)
	return out
}

func TestRealRemovalOfAnInstalledPlatform(t *testing.T) {
	d := real(t)
	d.platform("")
	var left contract.Inventory
	res := d.run("infrastructure", "platform-inventory", "", contract.InventoryInput{MustBeEmpty: true}, &left)
	require.Equal(t, infrastructure.CodeRemove, res.Fault.Code)
	require.ErrorContains(t, res.Fault, "Application argocd/web")
	require.ErrorContains(t, res.Fault, "PersistentVolumeClaim apps/rows")

	out := d.removed()
	require.Equal(t, []string{"argocd/web"}, out.Applications)
	require.Equal(t, []string{"apps", "argocd", "slipway-system"}, out.Namespaces)
	require.Len(t, out.Volumes, 1)
	require.Empty(t, out.Stripped, "Argo CD removed what the Application owned")
	require.Contains(t, out.Cluster, "CustomResourceDefinition/applications.argoproj.io")
	d.emptied()
}

func TestRealRemovalWithoutArgoCDsController(t *testing.T) {
	d := real(t)
	d.platform(", finalizers: [resources-finalizer.argocd.argoproj.io]")
	out := d.removed()
	require.Equal(t, []string{"Application argocd/web: resources-finalizer.argocd.argoproj.io"}, out.Stripped)
	require.Len(t, out.Volumes, 1)
	d.emptied()
}

// theirs is what somebody else has in the cluster, an Application of the Argo CD that is
// ours and a volume whose claim and namespace are gone among it.
const theirs = `
{apiVersion: v1, kind: Namespace, metadata: {name: theirs}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, namespace: theirs}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: theirs}, rules: []}
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: theirs, namespace: theirs}
spec:
  project: default
  source: {repoURL: "https://git.invalid/x.git", path: ., targetRevision: main}
  destination: {server: "https://kubernetes.default.svc", namespace: theirs}
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: forged
  namespace: theirs
  labels: {slipway.sh/deployment: it}
  annotations: {argocd.argoproj.io/tracking-id: "forged:argoproj.io/Application:theirs/forged"}
spec:
  project: default
  source: {repoURL: "https://git.invalid/x.git", path: ., targetRevision: main}
  destination: {server: "https://kubernetes.default.svc", namespace: theirs}
status: {resources: [{group: rbac.authorization.k8s.io, kind: ClusterRole, name: theirs}, {group: argoproj.io, kind: Application, namespace: theirs, name: theirs}]}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: theirs, annotations: {pv.kubernetes.io/provisioned-by: example.com/disk}}
spec:
  capacity: {storage: 1Mi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  hostPath: {path: /var/theirs}
  claimRef: {apiVersion: v1, kind: PersistentVolumeClaim, namespace: apps, name: rows, uid: 00000000-0000-0000-0000-000000000000}
`

// TestRealRemovalLeavesWhatIsSomebodyElses untouched, and uncounted.
func TestRealRemovalLeavesWhatIsSomebodyElses(t *testing.T) {
	d := real(t)
	c, err := kube.Connect(filepath.Join(d.state, "secrets", "kubeconfig"), nil)
	require.NoError(t, err)
	objs, err := kube.Decode([]byte(theirs))
	require.NoError(t, err)
	versions := map[string]string{}
	create := func(o *unstructured.Unstructured) {
		api, err := c.Resource(t.Context(), o.GroupVersionKind(), o.GetNamespace())
		require.NoError(t, err)
		_, err = api.Create(t.Context(), o, metav1.CreateOptions{FieldManager: "somebody"})
		require.NoError(t, err)
		t.Cleanup(func() { _ = api.Delete(context.Background(), o.GetName(), metav1.DeleteOptions{}) })
	}
	for _, o := range objs {
		if o.GetKind() != "Application" {
			create(o)
		}
	}
	require.NoError(t, c.WaitFor(t.Context(), "the volume to be released", 250*time.Millisecond, func(ctx context.Context) (bool, string, error) {
		pv, err := c.Kubernetes.CoreV1().PersistentVolumes().Get(ctx, "theirs", metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		return pv.Status.Phase == corev1.VolumeReleased, string(pv.Status.Phase), nil
	}))
	time.Sleep(time.Second) // what was there before a namespace is told by the second
	d.argo(c, false)
	for _, o := range objs {
		if o.GetKind() == "Application" {
			create(o)
		}
		live, err := c.Live(t.Context(), kube.MemberOf(o))
		require.NoError(t, err)
		versions[kube.MemberOf(o).String()] = live.GetResourceVersion()
	}
	nodes, err := c.Kubernetes.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.NoError(t, c.LabelNode(t.Context(), "it", "cache", nodes.Items[0].Name, "storage", "fast"))
	_, err = c.Kubernetes.CoreV1().Nodes().Patch(t.Context(), nodes.Items[0].Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"theirs":"fast"}}}`), metav1.PatchOptions{FieldManager: kube.FieldManager})
	require.NoError(t, err)
	t.Cleanup(func() {
		_, _ = c.Kubernetes.CoreV1().Nodes().Patch(context.Background(), nodes.Items[0].Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"theirs":null}}}`), metav1.PatchOptions{})
	})

	out := d.removed()
	require.Equal(t, []string{"apps", "argocd", "slipway-system"}, out.Namespaces)
	require.Empty(t, out.Applications)
	require.Empty(t, out.Volumes)
	require.Equal(t, []string{nodes.Items[0].Name}, out.Nodes)
	require.Equal(t, []string{
		"Application theirs/forged (with the deployment's label, though Slipway did not make it)", "CustomResourceDefinition applications.argoproj.io",
	}, out.Kept, "there is an Application of theirs")
	node, err := c.Kubernetes.CoreV1().Nodes().Get(t.Context(), nodes.Items[0].Name, metav1.GetOptions{})
	require.NoError(t, err)
	require.NotContains(t, node.Labels, "storage")
	require.Contains(t, node.Labels, "theirs")
	for _, o := range objs {
		live, err := c.Live(t.Context(), kube.MemberOf(o))
		require.NoError(t, err)
		require.NotNil(t, live, "%s", kube.MemberOf(o))
		require.Equal(t, versions[kube.MemberOf(o).String()], live.GetResourceVersion(), "%s was written to", kube.MemberOf(o))
	}
	d.emptied()

	// Once they are gone, the next removal takes the definition.
	for _, o := range objs {
		api, err := c.Resource(t.Context(), o.GroupVersionKind(), o.GetNamespace())
		require.NoError(t, err)
		require.NoError(t, api.Delete(t.Context(), o.GetName(), metav1.DeleteOptions{}))
	}
	out = d.removed()
	require.Equal(t, []string{"CustomResourceDefinition/applications.argoproj.io"}, out.Cluster)
	d.emptied()
}

// applyYAML applies the documents of manifest.
func applyYAML(ctx context.Context, c *kube.Client, manifest []byte, opts kube.ApplyOptions) ([]kube.Applied, error) {
	objs, err := kube.Decode(manifest)
	if err != nil {
		return nil, err
	}
	return c.Apply(ctx, objs, opts)
}
