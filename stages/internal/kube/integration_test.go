package kube_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
)

// real connects to the cluster of SLIPWAY_TEST_KUBECONFIG and makes a namespace
// that the test's end removes. busybox is the reference of the image. The tests run at
// the same time: a namespace that holds pods takes five seconds to go.
func real(t *testing.T) (c *kube.Client, namespace, busybox string) {
	t.Helper()
	kubeconfig, bundle := os.Getenv("SLIPWAY_TEST_KUBECONFIG"), os.Getenv("SLIPWAY_TEST_BUNDLE")
	if kubeconfig == "" || bundle == "" {
		t.Skip("set SLIPWAY_TEST_KUBECONFIG to the access file of a local node, and SLIPWAY_TEST_BUNDLE to the bundle it was started with")
	}
	raw, err := os.ReadFile(filepath.Join(bundle, "bundle.json"))
	require.NoError(t, err)
	var index struct {
		Images []struct{ Name, Digest string }
	}
	require.NoError(t, json.Unmarshal(raw, &index))
	for _, i := range index.Images {
		if i.Name == "busybox" {
			busybox = "slipway.local/busybox@" + i.Digest
		}
	}
	t.Parallel()
	c, err = kube.Connect(kubeconfig, nil)
	require.NoError(t, err)
	c.Progress = t.Logf
	ns, err := c.Kubernetes.CoreV1().Namespaces().Create(t.Context(), namespaceObject(), metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		err := c.Kubernetes.CoreV1().Namespaces().Delete(ctx, ns.Name, metav1.DeleteOptions{})
		require.True(t, err == nil || apierrors.IsNotFound(err), "%v", err)
	})
	return c, ns.Name, busybox
}

func apply(t *testing.T, c *kube.Client, namespace, manifest string) []kube.Applied {
	t.Helper()
	out, err := applyYAML(t.Context(), c, []byte(manifest), kube.ApplyOptions{Namespace: namespace})
	require.NoError(t, err)
	return out
}

const definition = `
apiVersion: test.slipway.sh/v1
kind: Widget
metadata: {name: first}
spec: {size: 1}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.test.slipway.sh}
spec:
  group: test.slipway.sh
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          x-kubernetes-preserve-unknown-fields: true
---
apiVersion: v1
kind: ConfigMap
metadata: {name: plain}
data: {key: value}
`

func TestRealApplyChangesNothingTheSecondTime(t *testing.T) {
	c, ns, _ := real(t)
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	t.Cleanup(func() {
		require.NoError(t, c.Delete(context.Background(), crds, "", "widgets.test.slipway.sh", metav1.DeletePropagationBackground))
	})
	first := apply(t, c, ns, definition)
	require.Equal(t, []kube.Change{kube.Created, kube.Created, kube.Created}, changes(first))
	second := apply(t, c, ns, definition)
	require.Equal(t, []kube.Change{kube.Unchanged, kube.Unchanged, kube.Unchanged}, changes(second))
	third := apply(t, c, ns, `{apiVersion: test.slipway.sh/v1, kind: Widget, metadata: {name: first}, spec: {size: 2}}`)
	require.Equal(t, kube.Changed, third[0].Change)
}

func changes(applied []kube.Applied) []kube.Change {
	var out []kube.Change
	for _, a := range applied {
		out = append(out, a.Change)
	}
	return out
}

// TestRealDrift: an object that another manager made is no drift; what somebody
// changed in it is.
func TestRealDrift(t *testing.T) {
	c, ns, busybox := real(t)
	manifest := deployment("web", busybox, "exec busybox sleep 1000", `env: [{name: A, value: a}]`)
	objs, err := kube.Decode([]byte(manifest))
	require.NoError(t, err)
	api, err := c.Resource(t.Context(), objs[0].GroupVersionKind(), ns)
	require.NoError(t, err)
	_, err = api.Create(t.Context(), objs[0], metav1.CreateOptions{FieldManager: "helm"})
	require.NoError(t, err)
	drift := func() []kube.Applied {
		found, err := c.Drift(t.Context(), objs, kube.ApplyOptions{Namespace: ns})
		require.NoError(t, err)
		return found
	}
	require.Eventually(t, func() bool { return len(drift()) == 0 }, time.Minute, kube.Poll, "once its controller has written to it")
	for _, edit := range []string{
		`{"spec":{"replicas":0}}`,
		`{"spec":{"replicas":1,"template":{"spec":{"containers":[{"name":"main","env":[{"name":"A","value":"b"}]}]}}}}`,
	} {
		_, err = c.Kubernetes.AppsV1().Deployments(ns).Patch(t.Context(), "web", types.StrategicMergePatchType, []byte(edit), metav1.PatchOptions{FieldManager: "kubectl"})
		require.NoError(t, err)
		require.Len(t, drift(), 1, edit)
	}
}

func TestRealFieldsOfOthersAreTakenOver(t *testing.T) {
	c, ns, _ := real(t)
	manifest := `{apiVersion: v1, kind: ConfigMap, metadata: {name: m}, data: {k: ours}}`
	apply(t, c, ns, manifest)
	maps := c.Kubernetes.CoreV1().ConfigMaps(ns)
	m, err := maps.Get(t.Context(), "m", metav1.GetOptions{})
	require.NoError(t, err)
	m.Data["k"] = "theirs"
	_, err = maps.Update(t.Context(), m, metav1.UpdateOptions{FieldManager: "somebody"})
	require.NoError(t, err)

	_, err = applyYAML(t.Context(), c, []byte(manifest), kube.ApplyOptions{Namespace: ns})
	require.NoError(t, err)
	m, err = maps.Get(t.Context(), "m", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "ours", m.Data["k"])
}

func TestRealRejectedObjectIsNamed(t *testing.T) {
	c, ns, _ := real(t)
	_, err := applyYAML(t.Context(), c, []byte(`{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 70000}]}}`), kube.ApplyOptions{Namespace: ns})
	require.ErrorIs(t, err, &fault.Fault{Code: kube.CodeRejected})
	require.ErrorContains(t, err, "apply Service "+ns+"/s")
	_, err = applyYAML(t.Context(), c, []byte(`{apiVersion: v1, kind: ConfigMap, metadata: {name: s, labels: {a: yes}}}`), kube.ApplyOptions{Namespace: ns})
	require.ErrorIs(t, err, &fault.Fault{Code: kube.CodeRejected})
	require.ErrorContains(t, err, "ObjectMeta.metadata.labels of type string")
	_, err = applyYAML(t.Context(), c, []byte(`{apiVersion: no.such/v1, kind: Thing, metadata: {name: s}}`), kube.ApplyOptions{Namespace: ns})
	require.ErrorIs(t, err, &fault.Fault{Code: kube.CodeRejected})
}

// deployment is a manifest of one with a single container.
func deployment(name, image, command, extra string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: 1
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
        - name: main
          image: %[2]s
          imagePullPolicy: IfNotPresent
          command: [/bin/sh, -c, %[3]q]
          %[4]s
`, name, image, command, extra)
}

func TestRealRollout(t *testing.T) {
	c, ns, busybox := real(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	apply(t, c, ns, deployment("good", busybox, "exec busybox sleep 1000", ""))
	require.NoError(t, readiness.WaitRollout(ctx, c, "Deployment", ns, "good"))
	require.NoError(t, readiness.RolledOut(ctx, c, "Deployment", ns, "good"))
	require.Empty(t, readiness.PodCause(ctx, c, ns, "app=good", "good"))
}

func TestRealCauses(t *testing.T) {
	c, ns, busybox := real(t)
	for name, x := range map[string]struct {
		manifest string
		want     []string
	}{
		"image": {
			deployment("image", "slipway.local/nothing:1", "true", ""),
			[]string{"slipway.local/nothing:1"},
		},
		"crash": {
			// Without a probe it counts as ready for the moment in which it runs.
			deployment("crash", busybox, "echo reading settings; echo no such setting >&2; exit 3", `readinessProbe: {exec: {command: ["/bin/false"]}}`),
			[]string{"container main", "with exit code 3", `it wrote "no such setting"`},
		},
		"room": {
			deployment("room", busybox, "true", "resources: {requests: {memory: 10Ti}}"),
			[]string{"no node takes the pod", "Insufficient memory"},
		},
		"account": {
			deployment("account", busybox, "true", "") + "      serviceAccountName: nobody\n",
			[]string{`serviceaccount "nobody" not found`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			apply(t, c, ns, x.manifest)
			err := waitUntilNamed(t, x.want, func(ctx context.Context) error {
				return readiness.WaitRollout(ctx, c, "Deployment", ns, name)
			})
			require.Equal(t, fault.Timeout, fault.ClassOf(err))
			require.ErrorContains(t, err, "waited ")
			require.ErrorContains(t, err, "for Deployment "+ns+"/"+name+" to be rolled out")
		})
	}
}

// waitUntilNamed repeats a wait that ends at its deadline until the error names all
// of want, and returns that error: how long the cluster takes to report a cause is
// up to how busy the machine is.
func waitUntilNamed(t *testing.T, want []string, wait func(context.Context) error) error {
	t.Helper()
	for range 10 {
		ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
		err := wait(ctx)
		cancel()
		require.Error(t, err)
		t.Log(err)
		if !slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(err.Error(), w) }) {
			return err
		}
	}
	require.Fail(t, "no error named the cause", "%q", want)
	return nil
}

func TestRealMountFailureIsACause(t *testing.T) {
	c, ns, busybox := real(t)
	apply(t, c, ns, fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: %q, command: [busybox, sleep, "1000"], volumeMounts: [{name: v, mountPath: /v}]}]
  volumes: [{name: v, secret: {secretName: missing}}]
`, busybox))
	_ = waitUntilNamed(t, []string{`volume v cannot be mounted: secret "missing" not found, pod p, since `}, func(ctx context.Context) error {
		return readiness.WaitPodDone(ctx, c, ns, "p")
	})
}

func TestRealPodsThatEnd(t *testing.T) {
	c, ns, busybox := real(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for name, command := range map[string]string{"good": "true", "bad": "echo rows are missing; exit 1"} {
		apply(t, c, ns, fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  restartPolicy: Never
  containers: [{name: main, image: %q, command: [/bin/sh, -c, %q]}]
`, name, busybox, command))
	}
	require.NoError(t, readiness.WaitPodDone(ctx, c, ns, "good"))
	err := readiness.WaitPodDone(ctx, c, ns, "bad")
	require.ErrorIs(t, err, &fault.Fault{Code: kube.CodeFailed})
	require.ErrorContains(t, err, `it wrote "rows are missing"`)
}

func TestRealStuckFinalizersAreNamedAndStripped(t *testing.T) {
	c, ns, _ := real(t)
	apply(t, c, ns, `{apiVersion: v1, kind: ConfigMap, metadata: {name: held, finalizers: [slipway.sh/never]}}`)
	require.NoError(t, c.Kubernetes.CoreV1().Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{}))
	gone := func(ctx context.Context) error {
		return c.WaitFor(ctx, "the namespace to be gone", kube.Poll, func(ctx context.Context) (bool, string, error) {
			left, err := c.List(ctx, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "", "kubernetes.io/metadata.name="+ns)
			return err == nil && len(left) == 0, kube.Left(left), err
		})
	}
	err := waitUntilNamed(t, []string{"slipway.sh/never"}, gone)
	require.Equal(t, fault.Timeout, fault.ClassOf(err))

	all, away, err := c.Everything(t.Context(), true, ns, "")
	require.NoError(t, err)
	require.Empty(t, away)
	at := slices.IndexFunc(all, func(o unstructured.Unstructured) bool { return o.GetName() == "held" })
	require.GreaterOrEqual(t, at, 0)
	for range 2 { // an object that is gone is no error
		require.NoError(t, c.PatchObject(t.Context(), "strip it", &all[at], map[string]any{"metadata": map[string]any{"finalizers": nil}}))
	}
	require.NoError(t, gone(t.Context()))
}

func TestRealDeleteAll(t *testing.T) {
	c, ns, _ := real(t)
	maps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	apply(t, c, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {x: z}}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n")
	names, err := c.DeleteAll(t.Context(), maps, ns, "x=z")
	require.NoError(t, err)
	require.Equal(t, []string{ns + "/a"}, names)
	names, err = c.DeleteAll(t.Context(), maps, ns, "x=z")
	require.NoError(t, err)
	require.Empty(t, names)
	left, err := c.List(t.Context(), schema.GroupVersionResource{Group: "no.such", Version: "v1", Resource: "things"}, "", "")
	require.NoError(t, err)
	require.Empty(t, left, "a resource that the cluster does not know has no objects")
}
