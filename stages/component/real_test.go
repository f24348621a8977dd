package component

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/gate"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/plan"
	"github.com/slipway-sh/slipway/stages/step"
)

// realSite is the cluster of SLIPWAY_TEST_KUBECONFIG, with the namespaces slipway-system and
// "shop" that the test's end removes, and the environment of a step with a platform release of these
// components. busybox is the reference of the image.
func realSite(t *testing.T, components string, files map[string]string) (env *step.Env, shown *bytes.Buffer, c *kube.Client, busybox string) {
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
	shown = &bytes.Buffer{}
	env = step.NewEnv("r1", "orchestrator/test", step.Dirs{State: t.TempDir(), Platform: t.TempDir(), Bundle: t.TempDir()}, t.Output(), shown)
	env.Deployment, env.Kubeconfig = "it", kubeconfig
	files[platform.File] = "apiVersion: slipway/v2\nname: sample\nversion: 1.0.0\nnamespaces: [{name: shop}]\ncomponents:\n" + components
	for name, text := range files {
		file := filepath.Join(env.PlatformDir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	c, err = kube.Connect(kubeconfig, nil)
	require.NoError(t, err)
	for _, name := range []string{kube.SystemNamespace, "shop"} {
		_, err = c.Kubernetes.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		require.NoError(t, err)
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
			defer cancel()
			namespaces := c.Kubernetes.CoreV1().Namespaces()
			require.NoError(t, namespaces.Delete(ctx, name, metav1.DeleteOptions{}))
			for { // the next test makes it again
				_, err := namespaces.Get(ctx, name, metav1.GetOptions{})
				if apierrors.IsNotFound(err) {
					return
				}
				require.NoError(t, err)
				time.Sleep(200 * time.Millisecond)
			}
		})
	}
	return env, shown, c, busybox
}

const onOneDisk = `apiVersion: apps/v1
kind: Deployment
metadata: {name: db}
spec:
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 0
      nodeSelector: {test.slipway.sh/disk: fast}
      containers: [{name: db, image: busybox, imagePullPolicy: IfNotPresent, command: [busybox, sleep, "1000"]}]
`

// TestRealNodeOfAComponent: without a node that has the label, one that is ready gets it
// and the component's pods; it is used again; two are an error that names them.
func TestRealNodeOfAComponent(t *testing.T) {
	const label = "test.slipway.sh/disk"
	env, shown, c, busybox := realSite(t, `  - {name: db, kind: manifests, path: db.yaml, namespace: shop, images: [busybox], node: {label: "`+label+`=fast"}}`+"\n", map[string]string{"db.yaml": onOneDisk})
	nodes := c.Kubernetes.CoreV1().Nodes()
	all, err := nodes.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, all.Items, 1)
	first := all.Items[0].Name
	const spare = "a-spare" // nothing runs there: it is never ready
	_, err = nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: spare}}, metav1.CreateOptions{})
	require.NoError(t, err)
	patch := func(name, patch string) {
		t.Helper()
		_, err := nodes.Patch(context.WithoutCancel(t.Context()), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		patch(first, `{"metadata":{"labels":{"`+label+`":null}}}`)
		require.NoError(t, nodes.Delete(context.Background(), spare, metav1.DeleteOptions{}))
	})
	labelled := func() []string {
		t.Helper()
		all, err := nodes.List(t.Context(), metav1.ListOptions{LabelSelector: label + "=fast"})
		require.NoError(t, err)
		var out []string
		for _, n := range all.Items {
			out = append(out, n.Name)
		}
		slices.Sort(out)
		return out
	}
	in := contract.ComponentInput{Component: "db", Images: map[string]string{"busybox": busybox}}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()

	require.Empty(t, labelled())
	_, err = step.Unchanged(run)(ctx, env, in)
	require.ErrorIs(t, err, plan.ErrChange)
	require.Empty(t, labelled())
	_, err = run(ctx, env, in)
	require.NoError(t, err)
	require.Equal(t, []string{first}, labelled(), "the one that is ready is chosen")
	require.Contains(t, shown.String(), "node "+first+" gets the label "+label+"=fast")
	pods, err := c.Kubernetes.CoreV1().Pods("shop").List(ctx, metav1.ListOptions{LabelSelector: "app=db"})
	require.NoError(t, err)
	require.NotEmpty(t, pods.Items)
	require.Equal(t, first, pods.Items[0].Spec.NodeName)

	out, err := run(ctx, env, in)
	require.NoError(t, err)
	require.Zero(t, out.Changed)
	require.Equal(t, []string{first}, labelled(), "the one that has it is used")
	require.Contains(t, shown.String(), "node "+first+" has the label "+label+"=fast")

	patch(spare, `{"metadata":{"labels":{"`+label+`":"fast"}}}`)
	_, err = run(ctx, env, in)
	require.ErrorIs(t, err, &fault.Fault{Code: CodeNode})
	both := []string{first, spare}
	slices.Sort(both)
	require.ErrorContains(t, err, "2 nodes have the label "+label+"=fast: "+strings.Join(both, ", "))
	require.Equal(t, both, labelled(), "whose they are is not for Slipway to say")
}

const (
	awaited = `  - name: seen
    kind: gate
    ready:
      - condition: {object: apps/v1/Deployment shop/web, type: Available}
      - job: shop/load
  - name: never
    kind: gate
    ready:
      - {condition: {object: apps/v1/Deployment shop/web, type: Progressing, status: "False"}, deadline: 3s}
      - job: shop/broken
`
	awaitedDeployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: web, image: IMAGE, imagePullPolicy: IfNotPresent, command: [busybox, sleep, "1000"]}]
`
	awaitedJob = `apiVersion: batch/v1
kind: Job
metadata: {name: NAME}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 0
      containers: [{name: a, image: IMAGE, imagePullPolicy: IfNotPresent, command: [busybox, sh, -c, "sleep 2; exit STATUS"]}]
`
)

// TestRealGates: the gates of a condition and of a Job open once both hold, and not
// before; one that does not in time, and one that cannot any more, are errors.
func TestRealGates(t *testing.T) {
	env, _, c, busybox := realSite(t, awaited, map[string]string{})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	apply := func(text string, more ...string) {
		t.Helper()
		objs, err := kube.Decode([]byte(strings.NewReplacer(append(more, "IMAGE", busybox)...).Replace(text)))
		require.NoError(t, err)
		_, err = c.Apply(ctx, objs, kube.ApplyOptions{Namespace: "shop"})
		require.NoError(t, err)
	}
	available := func() bool {
		t.Helper()
		o, err := c.Kubernetes.AppsV1().Deployments("shop").Get(ctx, "web", metav1.GetOptions{})
		require.NoError(t, err)
		return slices.ContainsFunc(o.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
			return c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionTrue
		})
	}
	seen := contract.ComponentInput{Component: "seen"}
	_, err := step.Unchanged(run)(ctx, env, seen)
	require.ErrorContains(t, err, "gate Available=True of apps/v1/Deployment shop/web is shut: it is not there")
	require.ErrorContains(t, err, `jobs.batch "load" not found`)

	var out contract.Component
	opened := make(chan error, 1)
	go func() {
		var err error
		out, err = run(ctx, env, seen)
		opened <- err
	}()
	apply(awaitedDeployment)
	require.Eventually(t, available, time.Minute, 100*time.Millisecond)
	apply(awaitedJob, "NAME", "load", "STATUS", "0")
	apply(awaitedJob, "NAME", "broken", "STATUS", "1")
	select {
	case err := <-opened:
		require.Fail(t, "it is open although the Job has just begun", "%v", err)
	default:
	}
	require.NoError(t, <-opened)
	require.Equal(t, []string{"Available=True of apps/v1/Deployment shop/web", "job shop/load"}, out.Gates)
	job, err := c.Kubernetes.BatchV1().Jobs("shop").Get(ctx, "load", metav1.GetOptions{})
	require.NoError(t, err)
	require.NotNil(t, job.Status.CompletionTime)
	require.True(t, available())

	_, err = run(ctx, env, contract.ComponentInput{Component: "never"})
	require.ErrorIs(t, err, &fault.Fault{Code: gate.CodeShut})
	require.ErrorContains(t, err, "last seen: Progressing=True, NewReplicaSetAvailable")
	require.ErrorIs(t, err, &fault.Fault{Code: kube.CodeFailed})
	require.ErrorContains(t, err, "job shop/broken failed: BackoffLimitExceeded")
}

// volatileChart has everything in it that renders differently each time, and Jobs that are gone
// soon after they have completed.
const volatileChart = `apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {password: {{ randAlphaNum 16 | quote }}, at: {{ now | quote }}}
---
{{- if .Release.IsInstall }}
{apiVersion: v1, kind: ConfigMap, metadata: {name: first}}
---
{{- end }}
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {revision: "{{ .Release.Revision }}", size: "{{ .Values.size }}"}
---
apiVersion: batch/v1
kind: Job
metadata: {name: migrate-{{ .Release.Revision }}}
spec:
  backoffLimit: 0
  ttlSecondsAfterFinished: 1
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 0
      containers: [{name: a, image: {{ .Values.image }}, imagePullPolicy: IfNotPresent, command: [busybox, "true"]}]
`

// TestRealChartThatRendersDifferently: an install with the same input changes nothing, and
// restores what somebody edited as it was; with another input it is an upgrade.
func TestRealChartThatRendersDifferently(t *testing.T) {
	env, shown, c, busybox := realSite(t, "  - {name: web, kind: chart, path: chart, namespace: shop}\n", map[string]string{
		"chart/Chart.yaml": "{apiVersion: v2, name: web, version: 1.0.0}", "chart/templates/all.yaml": volatileChart,
	})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	values := func(size string) contract.ComponentInput {
		return contract.ComponentInput{Component: "web", Values: []byte(`{"image": "` + busybox + `", "size": "` + size + `"}`)}
	}
	revision := func() string {
		t.Helper()
		o, err := c.Kubernetes.CoreV1().ConfigMaps("shop").Get(ctx, "web", metav1.GetOptions{})
		require.NoError(t, err)
		return o.Data["revision"]
	}
	password := func() string {
		t.Helper()
		o, err := c.Secret(ctx, "shop", "login")
		require.NoError(t, err)
		return string(o.Data["password"])
	}
	out, err := run(ctx, env, values("1"))
	require.NoError(t, err)
	require.Equal(t, 4, out.Changed)
	first := password()
	jobs := c.Kubernetes.BatchV1().Jobs("shop")
	require.Eventually(t, func() bool {
		all, err := jobs.List(ctx, metav1.ListOptions{})
		return err == nil && len(all.Items) == 0
	}, time.Minute, 200*time.Millisecond, "the Job is done and gone")

	_, err = step.Unchanged(run)(ctx, env, values("1"))
	require.NoError(t, err, "an earlier result holds")
	out, err = run(ctx, env, values("1"))
	require.NoError(t, err)
	require.Zero(t, out.Changed, shown)

	require.NoError(t, c.Kubernetes.CoreV1().Secrets("shop").Delete(ctx, "login", metav1.DeleteOptions{}))
	_, err = c.Kubernetes.CoreV1().ConfigMaps("shop").Patch(ctx, "web", types.MergePatchType, []byte(`{"data":{"size":"9","more":"x"}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	require.NoError(t, err)
	_, err = step.Unchanged(run)(ctx, env, values("1"))
	require.ErrorIs(t, err, plan.ErrChange)
	_, err = run(ctx, env, values("1"))
	require.NoError(t, err)
	require.Equal(t, first, password())
	require.Equal(t, "1", revision())
	_, err = step.Unchanged(run)(ctx, env, values("1"))
	require.NoError(t, err, "nothing differs after it")
	o, err := c.Kubernetes.CoreV1().ConfigMaps("shop").Get(ctx, "web", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"revision": "1", "size": "1"}, o.Data)
	_, err = c.Kubernetes.CoreV1().ConfigMaps("shop").Get(ctx, "first", metav1.GetOptions{})
	require.NoError(t, err)
	all, err := jobs.List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, all.Items, "the Job has not run again")

	_, err = run(ctx, env, values("2"))
	require.NoError(t, err)
	require.Equal(t, "2", revision(), "another value is an upgrade")
	require.NotEqual(t, first, password())
}
