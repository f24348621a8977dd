package orchestrator

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

// listed are the kinds of which the waits list objects.
func listed() map[schema.GroupVersionResource]string {
	return map[schema.GroupVersionResource]string{
		argo.Applications(): "ApplicationList",
		appsv1.SchemeGroupVersion.WithResource("statefulsets"): "StatefulSetList", appsv1.SchemeGroupVersion.WithResource("deployments"): "DeploymentList",
	}
}

func newWaiter(objs ...runtime.Object) *waiter {
	return &waiter{
		client:  &kube.Client{Dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), listed()), Kubernetes: fake.NewClientset(append(objs, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})...)},
		env:     step.NewEnv("r", "orchestrator/sync", step.Dirs{}, io.Discard, io.Discard),
		tracker: &argo.Tracker{Namespace: "argocd", Root: RootApp, Revision: "aaaaaaaaaaaa", Expected: []string{"web"}, Deadline: time.Minute},
	}
}

// broken is the pod of a Deployment that waits for something.
func broken(image, reason, message string) *corev1.Pod {
	controller := true
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-5f6d-x2x4z", Namespace: "apps", Labels: map[string]string{"pod-template-hash": "5f6d"},
			CreationTimestamp: metav1.NewTime(time.Now().UTC().Truncate(24 * time.Hour)),
			OwnerReferences:   []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-5f6d", Controller: &controller}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "web", Image: image + "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		}}},
	}
}

func webApp() argo.Application {
	return argo.Application{
		Name: "web", Namespace: "argocd", Sync: "Synced", Health: "Progressing", Destination: "apps",
		Resources: []argo.Resource{{Group: "apps", Kind: "Deployment", Namespace: "apps", Name: "web", Health: "Progressing", Message: "0 of 1"}},
	}
}

// lateWeb is the fault of an app that was not done in time.
func lateWeb(t *testing.T, v argo.Verdict, a argo.Application, objs ...runtime.Object) *fault.Fault {
	t.Helper()
	v.Late = &a
	err := newWaiter(objs...).late(t.Context(), v, []argo.Application{a})
	f := new(fault.Fault)
	require.ErrorAs(t, err, &f)
	return f
}

func TestABrokenImageIsTheCause(t *testing.T) {
	f := lateWeb(t, argo.Verdict{}, webApp(), broken("slipway.local/nope", "ErrImagePull", "lookup slipway.local: Temporary failure in name resolution"))
	require.EqualError(t, f, "bring the app web to aaaaaaaaaa within 1m0s: app web: image slipway.local/nope@sha256:0123456789ab… not found"+
		", pod web-5f6d-x2x4z, since 00:00 UTC (sync Synced, health Progressing)")
	require.Equal(t, CodeFailed, f.Code)
	require.Equal(t, fault.Step, f.Class)
}

func TestAMissingSecretIsTheCause(t *testing.T) {
	f := lateWeb(t, argo.Verdict{}, webApp(), broken("r/web", "CreateContainerConfigError", `secret "database-reader" not found`))
	require.Equal(t, CodeFailed, f.Code)
	require.ErrorContains(t, f, `app web: container web cannot be started: secret "database-reader" not found, pod web-5f6d-x2x4z`)
}

func TestASlowAppIsATimeout(t *testing.T) {
	a := webApp()
	a.Resources[0].Kind, a.Resources[0].Name = "Ingress", "web"
	f := lateWeb(t, argo.Verdict{Absent: []string{"late"}}, a)
	require.Equal(t, argo.CodeLate, f.Code)
	require.Equal(t, fault.Timeout, f.Class)
	require.ErrorContains(t, f, "app web: Ingress web is Progressing: 0 of 1")
	require.ErrorContains(t, f, "never appeared: late")
	require.Equal(t, "look at it: slipway toolchain -- kubectl get application -n argocd web -o yaml; correct it, then run the same command again", f.Fix)

	f = lateWeb(t, argo.Verdict{}, webApp(), broken("r/web", "ContainerCreating", ""))
	require.Equal(t, argo.CodeLate, f.Code, "nothing failed yet")
	require.ErrorContains(t, f, "app web: container web is not started yet, pod web-5f6d-x2x4z")
}

func TestAnAppThatIsWellSaysWhatItWaitsFor(t *testing.T) {
	a := webApp()
	a.Health, a.Resources = "Healthy", nil
	f := lateWeb(t, argo.Verdict{Why: "changed, not compared yet"}, a)
	require.ErrorContains(t, f, "app web: changed, not compared yet (sync Synced, health Healthy)")
}

func TestAnAppThatArgoDoesNotLookAtIsArgosFault(t *testing.T) {
	f := lateWeb(t, argo.Verdict{Stale: true}, webApp())
	require.Equal(t, argo.CodeStale, f.Code)
	require.ErrorContains(t, f, "there is no pod")
}

func TestAWrongSetNamesWhatIsWrong(t *testing.T) {
	err := wrongSet(argo.Verdict{Missing: []string{"db"}, Unexpected: []string{"extra"}})
	require.ErrorContains(t, err, "brings no app db; it brings extra")
	require.Equal(t, fault.Step, fault.ClassOf(err))
}
