package diagnosis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
	"github.com/slipway-sh/slipway/stages/step"
)

// cluster returns a client of a fake API that holds the objects of a case.
func cluster(t *testing.T, name string) (*kube.Client, *fake.Clientset, *dynamicfake.FakeDynamicClient) {
	t.Helper()
	f := load(t, name)
	var objs, apps []runtime.Object
	for i := range f.Pods {
		objs = append(objs, &f.Pods[i])
	}
	for i := range f.Nodes {
		objs = append(objs, &f.Nodes[i])
	}
	for i := range f.Claims {
		objs = append(objs, &f.Claims[i])
	}
	for i := range f.Classes {
		objs = append(objs, &f.Classes[i])
	}
	for i := range f.Jobs {
		objs = append(objs, &f.Jobs[i])
	}
	for i := range f.Events {
		objs = append(objs, &f.Events[i])
	}
	for _, a := range f.Apps {
		resources := []any{}
		for _, r := range a.Resources {
			resources = append(resources, map[string]any{"group": r.Group, "kind": r.Kind, "namespace": r.Namespace, "name": r.Name, "health": map[string]any{"status": r.Health}})
		}
		apps = append(apps, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
			"metadata": map[string]any{"name": a.Name, "namespace": a.Namespace},
			"spec":     map[string]any{"destination": map[string]any{"namespace": a.Destination}},
			"status":   map[string]any{"sync": map[string]any{"status": a.Sync}, "health": map[string]any{"status": a.Health}, "resources": resources},
		}})
	}
	typed := fake.NewClientset(objs...)
	dynamic := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{argo.Applications(): "ApplicationList"}, apps...)
	return &kube.Client{Kubernetes: typed, Dynamic: dynamic}, typed, dynamic
}

// refuse makes the API answer err to every list of a resource ("*": any).
func refuse(f *clienttesting.Fake, resource string, err error) {
	f.PrependReactor("list", resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
}

func refused() error {
	return &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
}

func TestCollectReadsTheCluster(t *testing.T) {
	client, typed, _ := cluster(t, "crash-loop")
	d := Collect(t.Context(), client, Scope{})
	require.Empty(t, d.Gaps)
	require.True(t, d.Known)
	require.Contains(t, d.Cause, `app web: container web keeps ending with exit code 1, it wrote "fake logs", pod web-7c8b-q9q9q, since 2026-01-02 14:02 UTC`)
	require.Equal(t, []string{"fake logs"}, d.Findings[0].Log)
	require.Equal(t, "web", d.Apps[0].Name)
	for _, a := range typed.Actions() {
		require.NotEqual(t, "secrets", a.GetResource().Resource)
		require.Contains(t, []string{"get", "list"}, a.GetVerb(), "a diagnosis changes nothing")
	}
}

// TestAppsOutsideOfArgoCDsNamespaceAreNotThePlatforms, whatever they say of themselves.
func TestAppsOutsideOfArgoCDsNamespaceAreNotThePlatforms(t *testing.T) {
	client, _, dynamic := cluster(t, "crash-loop")
	forged := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": map[string]any{"name": "web", "namespace": "a-team"},
		"status": map[string]any{"sync": map[string]any{"status": "OutOfSync"}, "conditions": []any{map[string]any{"type": "ComparisonError", "message": "of somebody else"}}},
	}}
	_, err := dynamic.Resource(argo.Applications()).Namespace("a-team").Create(t.Context(), forged, metav1.CreateOptions{})
	require.NoError(t, err)
	d := Collect(t.Context(), client, Scope{Argo: "argocd"})
	require.Contains(t, d.Cause, "app web: container web keeps ending")
	for _, a := range d.Apps {
		require.Equal(t, "argocd", a.Namespace)
		require.NotContains(t, a.Cause, "somebody else")
	}
	for _, x := range d.Findings {
		require.NotContains(t, x.Sentence, "somebody else")
	}
}

func TestCollectLooksForWhatIsOnlySlow(t *testing.T) {
	client, _, _ := cluster(t, "slow")
	d := Collect(t.Context(), client, Scope{})
	require.False(t, d.Known)
	require.Contains(t, d.Cause, "app web: image docker.io/x:1 is still being pulled")
	require.Empty(t, d.Events, "that is no warning")
}

func TestAPartThatFailsIsAGapAndNoMore(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "", errors.New("no role"))
	for resource, want := range map[string]string{
		"pods": "Deployment web is Degraded", "nodes": "container web keeps ending", "persistentvolumeclaims": "container web keeps ending",
		"storageclasses": "container web keeps ending", "jobs": "container web keeps ending", "events": "container web keeps ending",
	} {
		client, typed, _ := cluster(t, "crash-loop")
		refuse(&typed.Fake, resource, forbidden)
		d := Collect(t.Context(), client, Scope{})
		require.Len(t, d.Gaps, 1, resource)
		require.Contains(t, d.Gaps[0], "no role")
		require.Contains(t, d.Cause, want, resource)
	}
	client, _, dynamic := cluster(t, "crash-loop")
	refuse(&dynamic.Fake, "applications", forbidden)
	d := Collect(t.Context(), client, Scope{})
	require.Contains(t, d.Gaps[0], "applications: ")
	require.Contains(t, d.Cause, "container web keeps ending", "without the app's name")

	client, _, dynamic = cluster(t, "crash-loop")
	refuse(&dynamic.Fake, "applications", apierrors.NewNotFound(schema.GroupResource{}, ""))
	require.Empty(t, Collect(t.Context(), client, Scope{}).Gaps, "a cluster may have no Argo CD yet")
}

func TestNothingWrongSaysWhatWasNotLookedAt(t *testing.T) {
	client, typed, _ := cluster(t, "fine")
	refuse(&typed.Fake, "events", apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", errors.New("no role")))
	d := Collect(t.Context(), client, Scope{Failed: []contract.FailedStep{{Stage: "orchestrator", Step: "publish", Error: "x"}}})
	require.False(t, d.Known)
	require.Empty(t, d.Findings)
	require.Equal(t, `no cause was found in the cluster; `+
		`not looked at: events: events is forbidden: no role; see the error of orchestrator/publish`, d.Cause)
}

func TestAnAPIThatRefusesEverythingIsThere(t *testing.T) {
	client, typed, dynamic := cluster(t, "crash-loop")
	refuse(&typed.Fake, "*", apierrors.NewUnauthorized("who are you"))
	refuse(&dynamic.Fake, "*", apierrors.NewUnauthorized("who are you"))
	d := Collect(t.Context(), client, Scope{})
	require.Len(t, d.Gaps, 7)
	require.Contains(t, d.Cause, "no cause was found in the cluster; not looked at: pods: who are you; ")
}

func TestAnAPIThatDoesNotAnswerIsTheCause(t *testing.T) {
	down := func(scope Scope) *contract.Diagnosis {
		client, typed, dynamic := cluster(t, "crash-loop")
		client.Config = &rest.Config{Host: "https://cluster:6443"}
		refuse(&typed.Fake, "*", refused())
		refuse(&dynamic.Fake, "*", refused())
		return Collect(t.Context(), client, scope)
	}
	d := down(Scope{})
	require.Equal(t, "the API server at https://cluster:6443 does not answer: dial: connect: connection refused", d.Cause)
	require.True(t, d.Known)
	require.Equal(t, "api", d.Findings[0].Kind)

	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"ready":false,"parts":{"api":{"state":"waiting","detail":"connection refused"},"images":{"state":"ready"}},
			"components":{"etcd":{"state":"waiting to restart","restarts":3,"detail":"mvcc: database space exceeded"},"kubelet":{"state":"running"}}}`)
	}))
	defer s.Close()
	require.Contains(t, down(Scope{Health: s.URL + "/readyz"}).Cause, "does not answer: dial: connect: connection refused; its node says: "+
		"etcd is waiting to restart, restarted 3 times (mvcc: database space exceeded); api is waiting (connection refused)")

	s.Close()
	require.Contains(t, down(Scope{Health: s.URL + "/readyz"}).Cause, "; its node does not answer at "+s.URL+"/readyz either: dial tcp")
}

func TestAnAPIThatHangsTakesNoLongerThanTheContext(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-release:
		}
	}))
	defer s.Close()
	defer close(release)
	client, err := kube.New(&rest.Config{Host: s.URL})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	d := Collect(ctx, client, Scope{})
	require.Equal(t, "the API server at "+s.URL+" does not answer: no answer in time", d.Cause)
}

func TestAVeryLongListIsReadInPart(t *testing.T) {
	client, typed, _ := cluster(t, "fine")
	typed.PrependReactor("list", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		require.Equal(t, int64(maxItems), a.(clienttesting.ListActionImpl).GetListOptions().Limit)
		list := &corev1.PodList{Items: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "x"}, Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}}}
		list.Continue = "more"
		return true, list, nil
	})
	f := Gather(t.Context(), client, Scope{})
	require.Len(t, f.Pods, 1)
	require.Equal(t, []string{"pods: there are more than 5000"}, f.Gaps)
}

// TestNoSecretIsTold: neither what the step knows to be secret, nor what looks
// like it, wherever it stands.
func TestNoSecretIsTold(t *testing.T) {
	const known, looks = "canary-of-the-step", "canary-in-a-log"
	text := "connect with " + known + " and password=" + looks
	client, typed, dynamic := cluster(t, "crash-loop")
	pods, err := typed.CoreV1().Pods("apps").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, p := range pods.Items {
		p.Status.Message = text
		for i := range p.Status.ContainerStatuses {
			if last := p.Status.ContainerStatuses[i].LastTerminationState.Terminated; last != nil {
				last.Message = text
			}
		}
		_, err := typed.CoreV1().Pods("apps").Update(t.Context(), &p, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	_, err = typed.CoreV1().Events("apps").Create(t.Context(), &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: "apps"}, Type: "Warning", Reason: "Odd", Message: text,
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "apps", Name: "web-7c8b-q9q9q"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	app, err := dynamic.Resource(argo.Applications()).Namespace("argocd").Get(t.Context(), "database", metav1.GetOptions{})
	require.NoError(t, err)
	app.Object["status"] = map[string]any{"health": map[string]any{"status": "Degraded", "message": text}, "conditions": []any{map[string]any{"type": "ComparisonError", "message": text}}}
	_, err = dynamic.Resource(argo.Applications()).Namespace("argocd").Update(t.Context(), app, metav1.UpdateOptions{})
	require.NoError(t, err)
	refuse(&typed.Fake, "jobs", errors.New(text))

	env := step.NewEnv("r", "diagnosis/collect", step.Dirs{}, &strings.Builder{}, &strings.Builder{})
	env.Redact(known)
	f := Gather(t.Context(), client, Scope{Clean: env.Clean})
	for pod := range f.Logs {
		f.Logs[pod] = []string{text}
	}
	f.sorted = nil
	d := f.Diagnose()
	b, err := json.Marshal(d)
	require.NoError(t, err)
	require.Contains(t, string(b), "connect with *** and password=***")
	require.NotContains(t, string(b), known)
	require.NotContains(t, string(b), looks)
}

func TestTheStepNeverFails(t *testing.T) {
	dir := t.TempDir()
	var log, screen strings.Builder
	env := step.NewEnv("r", "diagnosis/collect", step.Dirs{State: dir}, &log, &screen)
	d, err := run(t.Context(), env, contract.DiagnosisInput{})
	require.NoError(t, err)
	require.False(t, d.Known)
	require.Contains(t, d.Cause, "no cause was found in the cluster; not looked at: the cluster: read the kubeconfig: ")
	b, err := json.Marshal(d)
	require.NoError(t, err)
	require.NotContains(t, string(b), "null")

	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "secrets"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "secrets/kubeconfig"), []byte(`{apiVersion: v1, kind: Config, current-context: a,
		clusters: [{name: a, cluster: {server: "`+s.URL+`"}}], contexts: [{name: a, context: {cluster: a}}]}`), 0o600))
	d, err = run(t.Context(), env, contract.DiagnosisInput{})
	require.NoError(t, err)
	require.True(t, d.Known)
	require.Contains(t, d.Cause, "the API server at "+s.URL+" does not answer: dial tcp")
	require.Contains(t, screen.String(), "slipway: diagnosis/collect: the API server at ")
	text, err := os.ReadFile(filepath.Join(dir, "runs/r/steps/diagnosis.collect", textFile))
	require.NoError(t, err)
	require.Contains(t, string(text), "cause: the API server at "+s.URL)
	b, err = json.Marshal(d)
	require.NoError(t, err)
	require.NotContains(t, string(b), "null")
}

// TestTheClusterIsToldOfAFailure, but not of a run that was refused.
func TestTheClusterIsToldOfAFailure(t *testing.T) {
	const at = "/api/v1/namespaces/slipway-system/configmaps/slipway-status"
	api := kubetest.Serve(t)
	env := step.NewEnv("r", "diagnosis/collect", step.Dirs{State: t.TempDir()}, io.Discard, io.Discard)
	env.Deployment = "blue"
	require.NoError(t, os.MkdirAll(filepath.Dir(env.Kubeconfig), 0o700))
	require.NoError(t, os.WriteFile(env.Kubeconfig, fmt.Appendf(nil, `{"clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`, api.URL), 0o600))
	in := contract.DiagnosisInput{Failed: []contract.FailedStep{{Stage: "infrastructure", Step: "ownership", Error: "it is older"}}, Refused: true}
	report(t.Context(), env, in, &contract.Diagnosis{})
	require.Nil(t, api.Get(at))
	in.Refused = false
	report(t.Context(), env, in, &contract.Diagnosis{})
	require.Equal(t, "infrastructure/ownership: it is older", api.Get(at)["data"].(map[string]any)["message"])
}

// TestASecretOfThePlatformIsInNoDiagnosis, though a program prints it; words that somebody puts into
// a Secret of their own stay, whatever its label.
func TestASecretOfThePlatformIsInNoDiagnosis(t *testing.T) {
	const secret = "c2hpcHdyZWNrLWNhbmFyeQ==" // shipwreck-canary
	api := kubetest.Serve(t)
	label := "labels: {" + kube.DeploymentLabel + ": blue}"
	api.Set(t, "/api/v1/nodes/n", "{metadata: {name: n}, status: {conditions: [{type: Ready, status: 'True'}]}}")
	api.Set(t, "/api/v1/namespaces/shop", "metadata: {name: shop, "+label+"}")
	api.Set(t, "/api/v1/namespaces/shop/secrets/db", "{metadata: {name: db, namespace: shop, "+label+"}, data: {password: "+secret+", username: Y29udGFpbmVy}}")
	api.Set(t, "/api/v1/namespaces/team", "metadata: {name: team}")
	api.Set(t, "/api/v1/namespaces/team/secrets/words", "{metadata: {name: words, namespace: team, "+label+"}, data: {word: ZXhpdCBjb2RlIDM=}}")
	api.Set(t, "/api/v1/namespaces/shop/pods/web", "{metadata: {name: web, namespace: shop}, status: {phase: Running, containerStatuses: [{name: c, restartCount: 9, "+
		"state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 3, reason: Error, message: login with shipwreck-canary}}}]}}")
	env := step.NewEnv("r", "diagnosis/collect", step.Dirs{State: t.TempDir()}, io.Discard, io.Discard)
	env.Deployment = "blue"
	require.NoError(t, os.MkdirAll(filepath.Dir(env.Kubeconfig), 0o700))
	require.NoError(t, os.WriteFile(env.Kubeconfig, fmt.Appendf(nil, `{"clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`, api.URL), 0o600))
	d := collect(t.Context(), env, contract.DiagnosisInput{})
	require.Contains(t, d.Cause, "exit code 3: login with ***")
	text, err := json.Marshal(d)
	require.NoError(t, err)
	require.NotContains(t, string(text), "shipwreck")
	require.Contains(t, string(text), "container c")
}

func TestRegister(t *testing.T) {
	var reg step.Registry
	Register(&reg)
	require.Equal(t, []string{"diagnosis/collect"}, reg.Names())
}
