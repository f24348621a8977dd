package kube_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
)

func TestAnObjectThatIsRefused(t *testing.T) {
	for what, c := range map[string]struct {
		answer metav1.Status
		code   fault.Code
	}{
		"invalid":   {metav1.Status{Code: 422, Reason: metav1.StatusReasonInvalid, Message: "data: must be a map"}, kube.CodeRejected},
		"forbidden": {metav1.Status{Code: 403, Reason: metav1.StatusReasonForbidden, Message: "exceeded quota"}, kube.CodeRejected},
	} {
		t.Run(what, func(t *testing.T) {
			client, _ := server(t, func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodPatch {
					return false
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(int(c.answer.Code))
				c.answer.Kind, c.answer.APIVersion, c.answer.Status = "Status", "v1", metav1.StatusFailure
				_ = json.NewEncoder(w).Encode(c.answer)
				return true
			})
			_, err := applyYAML(t.Context(), client, []byte(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: apps}}`), kube.ApplyOptions{})
			require.ErrorIs(t, err, &fault.Fault{Code: c.code})
			require.Equal(t, fault.Step, fault.ClassOf(err))
			require.EqualError(t, err, "apply ConfigMap apps/a: "+c.answer.Message)
		})
	}
}

func TestAKindThatTheClusterDoesNotHave(t *testing.T) {
	client, _ := server(t, func(http.ResponseWriter, *http.Request) bool { return false })
	_, err := applyYAML(t.Context(), client, []byte(`{apiVersion: example.org/v1, kind: Moon, metadata: {name: a}}`), kube.ApplyOptions{})
	require.ErrorIs(t, err, &fault.Fault{Code: kube.CodeRejected})
	require.ErrorContains(t, err, "Moon")
}

func TestWhatFailsForGoodIsNotWaitedFor(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "work", Namespace: "n"}
	client := &kube.Client{Kubernetes: fake.NewClientset(
		&corev1.Pod{ObjectMeta: meta, Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "low on memory"}},
	)}
	err := readiness.WaitPodDone(t.Context(), client, "n", "work")
	require.ErrorIs(t, err, &fault.Fault{Code: kube.CodeFailed})
	require.Equal(t, fault.Step, fault.ClassOf(err))
	require.ErrorContains(t, err, "Pod n/work")
	require.ErrorContains(t, err, "it failed Evicted low on memory")
}
