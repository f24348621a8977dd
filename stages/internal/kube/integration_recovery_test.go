package kube_test

import (
	"cmp"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
)

// statefulSet is a manifest of one with a single pod.
func statefulSet(name, image, command string) string {
	return strings.NewReplacer("kind: Deployment", "kind: StatefulSet", "  replicas: 1", "  replicas: 1\n  serviceName: "+name).Replace(deployment(name, image, command, ""))
}

// TestRealCorrection: what is corrected after its first pod never became ready is rolled out, and
// until then the cause is that of the present template.
func TestRealCorrection(t *testing.T) {
	for name, x := range map[string]struct {
		make           func(image, command string) string
		kind           string
		image, command string // of the first template; empty: as in the last
		cause          string
	}{
		"statefulset without an image": {
			make: func(image, command string) string { return statefulSet("web", image, command) }, kind: "StatefulSet", image: "slipway.local/nothing:1", cause: "nothing:1",
		},
		"statefulset that crashes": {
			make: func(image, command string) string { return statefulSet("web", image, command) }, kind: "StatefulSet", command: "exit 3", cause: "exit code 3",
		},
		"deployment without an image": {
			make: func(image, command string) string { return deployment("web", image, command, "") }, kind: "Deployment", image: "slipway.local/nothing:1", cause: "nothing:1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, ns, busybox := real(t)
			const runs = "exec busybox sleep 1000"
			apply(t, c, ns, x.make(cmp.Or(x.image, busybox), cmp.Or(x.command, runs)))
			require.NoError(t, c.WaitFor(t.Context(), "the first cause", kube.Poll, func(ctx context.Context) (bool, string, error) {
				cause := readiness.PodCause(ctx, c, ns, "app=web", "web")
				return strings.Contains(cause, x.cause), cause, nil
			}))
			apply(t, c, ns, x.make("slipway.local/nothing:2", runs))
			short, cancel := context.WithTimeout(t.Context(), 15*time.Second)
			defer cancel()
			err := readiness.WaitRollout(short, c, x.kind, ns, "web")
			require.ErrorContains(t, err, "nothing:2")
			require.NotContains(t, err.Error(), x.cause)

			apply(t, c, ns, x.make(busybox, runs))
			limited, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			require.NoError(t, readiness.WaitRollout(limited, c, x.kind, ns, "web"))
		})
	}
}

// TestRealObjectThatIsBeingDeleted is waited for and made again.
func TestRealObjectThatIsBeingDeleted(t *testing.T) {
	c, ns, _ := real(t)
	const manifest = "{apiVersion: v1, kind: ConfigMap, metadata: {name: m, finalizers: [example.com/held]}, data: {k: v}}"
	apply(t, c, ns, manifest)
	maps := c.Kubernetes.CoreV1().ConfigMaps(ns)
	before, err := maps.Get(t.Context(), "m", metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, maps.Delete(t.Context(), "m", metav1.DeleteOptions{}))
	objs, err := kube.Decode([]byte(manifest))
	require.NoError(t, err)
	drift, err := c.Drift(t.Context(), objs, kube.ApplyOptions{Namespace: ns})
	require.NoError(t, err)
	require.Len(t, drift, 1)
	freed := make(chan error, 1)
	go func() {
		time.Sleep(time.Second)
		_, err := maps.Patch(t.Context(), "m", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		freed <- err
	}()
	applied := apply(t, c, ns, manifest)
	require.NoError(t, <-freed)
	require.Equal(t, kube.Created, applied[0].Change)
	after, err := maps.Get(t.Context(), "m", metav1.GetOptions{})
	require.NoError(t, err)
	require.NotEqual(t, before.UID, after.UID)
	_, err = maps.Patch(t.Context(), "m", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
}
