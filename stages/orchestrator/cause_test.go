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
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/argo"
	"github.com/slipway-sh/slipway/stages/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

func newWaiter(objs ...runtime.Object) *waiter {
	return &waiter{
		client:  &kube.Client{Kubernetes: fake.NewClientset(objs...)},
		env:     step.NewEnv("r", "orchestrator/sync", step.Dirs{}, io.Discard, io.Discard),
		tracker: &argo.Tracker{Root: RootApp, Revision: "aaaaaaaaaaaa", Expected: []string{"web"}, Deadline: time.Minute},
	}
}

// broken is a Deployment whose pod waits for something.
func broken(image, reason, message string) []runtime.Object {
	selector := map[string]string{"app": "web"}
	return []runtime.Object{
		&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "apps"},
			Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: selector}},
		},
		&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "web-0", Namespace: "apps", Labels: selector},
			Status: corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
				Name: "web", Image: image + "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
			}}},
		},
	}
}

func webApp() argo.Application {
	return argo.Application{
		Name: "web", Namespace: "argocd", Sync: "Synced", Health: "Progressing", Destination: "apps",
		Resources: []argo.Resource{{Group: "apps", Kind: "Deployment", Namespace: "apps", Name: "web", Health: "Progressing", Message: "0 of 1"}},
	}
}

func TestABrokenImageHasItsOwnSentence(t *testing.T) {
	tests := []struct{ image, message, why string }{
		{"slipway.local/nope", "lookup slipway.local: Temporary failure in name resolution", "not found"},
		{"r/nope", `Back-off pulling image "x": ErrImagePull: dial tcp: lookup r: no such host`, "not found"},
		{"r/nope", "rpc error: code = NotFound desc = failed to pull", "not found"},
		{"r/nope", "pull access denied", "refused by its registry"},
		{"r/nope", "failed to pull: connect: no route to it", "cannot be pulled: no route to it"},
	}
	for _, tt := range tests {
		w := newWaiter(broken(tt.image, "ErrImagePull", tt.message)...)
		a := webApp()
		err := w.late(t.Context(), argo.Verdict{Late: &a})
		require.EqualError(t, err, "bring the app web to aaaaaaaaaa within 1m0s: app web: image "+tt.image+"@sha256:0123456789ab… "+tt.why+
			" (pod web-0, ErrImagePull) (sync Synced, health Progressing)")
		f := new(fault.Fault)
		require.ErrorAs(t, err, &f)
		require.Equal(t, CodeFailed, f.Code)
		require.Equal(t, fault.Step, f.Class)
	}
}

func TestACrashIsTheCause(t *testing.T) {
	w := newWaiter(broken("r/nope", "CreateContainerConfigError", `secret "database-reader" not found`)...)
	sentence, known := w.cause(t.Context(), webApp())
	require.True(t, known)
	require.Contains(t, sentence, "pod web-0")
	require.Contains(t, sentence, `secret "database-reader" not found`)
}

func TestASlowAppIsATimeout(t *testing.T) {
	a := webApp()
	a.Resources[0].Kind, a.Resources[0].Name = "Ingress", "web"
	err := newWaiter().late(t.Context(), argo.Verdict{Late: &a, Absent: []string{"late"}})
	f := new(fault.Fault)
	require.ErrorAs(t, err, &f)
	require.Equal(t, CodeLate, f.Code)
	require.Equal(t, fault.Timeout, f.Class)
	require.ErrorContains(t, err, "app web: Ingress web is Progressing: 0 of 1")
	require.ErrorContains(t, err, "never appeared: late")
}

func TestAnAppThatArgoDoesNotLookAtIsArgosFault(t *testing.T) {
	a := webApp()
	err := newWaiter().late(t.Context(), argo.Verdict{Late: &a, Stale: true})
	f := new(fault.Fault)
	require.ErrorAs(t, err, &f)
	require.Equal(t, CodeStale, f.Code)
	require.ErrorContains(t, err, "there is no pod")
}

func TestAWrongSetNamesWhatIsWrong(t *testing.T) {
	err := wrongSet(argo.Verdict{Missing: []string{"db"}, Unexpected: []string{"extra"}})
	require.ErrorContains(t, err, "brings no app db; it brings extra")
	require.Equal(t, fault.Step, fault.ClassOf(err))
}
