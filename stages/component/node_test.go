package component

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

// TestTheNodeOfAComponent: without one that has the label, one is chosen; one is used;
// two are an error.
func TestTheNodeOfAComponent(t *testing.T) {
	node := func(name, storage string, ready corev1.ConditionStatus) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
		if storage != "" {
			n.Labels["storage"] = storage
		}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
		return n
	}
	c := fake.NewClientset(node("a", "", corev1.ConditionFalse), node("b", "slow", corev1.ConditionTrue), node("c", "", corev1.ConditionTrue))
	env := step.NewEnv("r", "orchestrator/db", step.Dirs{State: t.TempDir()}, io.Discard, io.Discard)
	env.Deployment = "demo"
	i := &installer{env: env, client: &kube.Client{Kubernetes: c}, component: platform.Component{Name: "db", Node: &platform.Node{Label: "storage=fast"}}}
	labels := func() map[string]string {
		all, err := c.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		out := map[string]string{}
		for _, n := range all.Items {
			out[n.Name] = n.Labels["storage"]
		}
		return out
	}
	require.NoError(t, i.node(t.Context()))
	require.Equal(t, map[string]string{"a": "", "b": "slow", "c": "fast"}, labels(), "the first that is ready and has no such label")
	given, err := i.client.NodeLabels(t.Context(), "demo")
	require.NoError(t, err)
	require.Equal(t, []kube.NodeLabel{{Node: "c", Key: "storage", Value: "fast"}}, given)

	other := node("d", "fast", corev1.ConditionTrue)
	_, err = c.CoreV1().Nodes().Create(t.Context(), other, metav1.CreateOptions{})
	require.NoError(t, err)
	err = i.node(t.Context())
	require.ErrorIs(t, err, &fault.Fault{Code: CodeNode})
	require.ErrorContains(t, err, "2 nodes have the label storage=fast: c, d")

	i.component.Node.Label = "zone=x"
	for _, name := range []string{"b", "c", "d"} {
		require.NoError(t, c.CoreV1().Nodes().Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
	require.ErrorContains(t, i.node(t.Context()), "no node is ready that could get the label zone=x")
}

// TestComponentsThatLabelANodeAtTheSameTime: both keys are noted, or the destroy would leave a
// label; and where both are of the same key, the later takes another node.
func TestComponentsThatLabelANodeAtTheSameTime(t *testing.T) {
	for other, want := range map[string]string{"cache=here": "a", "storage=slow": "b"} {
		node := func(name string) *corev1.Node {
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1"}}
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
			return n
		}
		c := fake.NewClientset(node("a"), node("b"))
		raced := false
		c.PrependReactor("patch", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
			if raced {
				return false, nil, nil
			}
			raced = true
			key, value, _ := strings.Cut(other, "=")
			theirs := fake.NewClientset(node("a"))
			require.NoError(t, (&kube.Client{Kubernetes: theirs}).LabelNode(t.Context(), "demo", "other", "a", key, value))
			note, err := theirs.CoreV1().Secrets(kube.SystemNamespace).Get(t.Context(), kube.NodesNote, metav1.GetOptions{})
			require.NoError(t, err)
			o, err := c.Tracker().Get(corev1.SchemeGroupVersion.WithResource("secrets"), kube.SystemNamespace, kube.NodesNote)
			require.NoError(t, err)
			ours := o.(*corev1.Secret).DeepCopy()
			ours.Data["other"] = note.Data["other"]
			require.NoError(t, c.Tracker().Update(corev1.SchemeGroupVersion.WithResource("secrets"), ours, kube.SystemNamespace))
			n, err := theirs.CoreV1().Nodes().Get(t.Context(), "a", metav1.GetOptions{})
			require.NoError(t, err)
			n.ResourceVersion = "2"
			require.NoError(t, c.Tracker().Update(corev1.SchemeGroupVersion.WithResource("nodes"), n, ""))
			if strings.Contains(string(a.(clienttesting.PatchAction).GetPatch()), `"resourceVersion":"1"`) {
				return true, nil, apierrors.NewConflict(corev1.Resource("nodes"), "a", errors.New("it was written to"))
			}
			return false, nil, nil
		})
		env := step.NewEnv("r", "orchestrator/db", step.Dirs{State: t.TempDir()}, io.Discard, io.Discard)
		env.Deployment = "demo"
		i := &installer{env: env, client: &kube.Client{Kubernetes: c}, component: platform.Component{Name: "db", Node: &platform.Node{Label: "storage=fast"}}}
		require.NoError(t, i.node(t.Context()), other)
		got, err := c.CoreV1().Nodes().Get(t.Context(), want, metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, "fast", got.Labels["storage"], other)
		given, err := i.client.NodeLabels(t.Context(), "demo")
		require.NoError(t, err)
		key, value, _ := strings.Cut(other, "=")
		require.Equal(t, []kube.NodeLabel{{Node: want, Key: "storage", Value: "fast"}, {Node: "a", Key: key, Value: value}}, given)
	}
}
