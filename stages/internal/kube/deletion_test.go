package kube_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
)

// TestAnObjectThatIsBeingDeleted is one that is missing: it is waited for and made again.
func TestAnObjectThatIsBeingDeleted(t *testing.T) {
	const (
		at   = "/api/v1/namespaces/shop/configmaps/page"
		page = "{apiVersion: v1, kind: ConfigMap, metadata: {name: page, namespace: shop}, data: {k: v}}"
	)
	api, c := onFake(t)
	objs := objects(t, page)
	_, err := c.Apply(t.Context(), objs, kube.ApplyOptions{})
	require.NoError(t, err)
	drift, err := c.Drift(t.Context(), objs, kube.ApplyOptions{})
	require.NoError(t, err)
	require.Empty(t, drift)

	api.Set(t, at, "metadata: {uid: former, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [example.com/held]}")
	drift, err = c.Drift(t.Context(), objs, kube.ApplyOptions{})
	require.NoError(t, err)
	require.Len(t, drift, 1)
	require.Equal(t, kube.Created, drift[0].Change)
	go func() {
		time.Sleep(50 * time.Millisecond)
		api.Set(t, at, "metadata: {finalizers: null}")
		api.Delete(at)
	}()
	applied, err := c.Apply(t.Context(), objs, kube.ApplyOptions{})
	require.NoError(t, err)
	require.Equal(t, kube.Created, applied[0].Change)
	meta, _ := api.Get(at)["metadata"].(map[string]any)
	require.NotNil(t, meta)
	require.NotContains(t, meta, "deletionTimestamp")
}

// TestAPodOfAFormerTemplateThatIsBroken is replaced: Kubernetes would wait for it for good. One
// that was ready, and those of the present template, are left to it.
func TestAPodOfAFormerTemplateThatIsBroken(t *testing.T) {
	const (
		pods    = "/api/v1/namespaces/shop/pods/"
		started = "startTime: '2026-01-01T00:00:00Z', conditions: [{type: Ready, status: 'False', lastTransitionTime: "
	)
	api, c := onFake(t)
	set := func(more string) {
		api.Set(t, "/apis/apps/v1/namespaces/shop/statefulsets/web", "{metadata: {name: web, namespace: shop, uid: web, generation: 2}, "+
			"spec: {replicas: 3, selector: {matchLabels: {app: web}}"+more+"}, status: {observedGeneration: 2, currentRevision: one, updateRevision: two}}")
	}
	pod := func(name, revision, status string) {
		api.Set(t, pods+name, "{metadata: {name: "+name+", namespace: shop, uid: "+name+", labels: {app: web, controller-revision-hash: "+revision+"}, "+
			"ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: web, uid: web, controller: true}]}, status: {"+status+"}}")
	}
	pod("waits", "one", started+"'2026-01-01T00:00:01Z'}]")
	pod("crashes", "one", started+"'2026-01-01T01:00:00Z'}], containerStatuses: [{name: main, restartCount: 2, state: {waiting: {reason: CrashLoopBackOff}}, "+
		"lastState: {terminated: {exitCode: 3, reason: Error}}}]")
	pod("was-ready", "one", started+"'2026-01-01T01:00:00Z'}], containerStatuses: [{name: main, started: true, state: {running: {}}}]")
	pod("present", "two", started+"'2026-01-01T00:00:01Z'}]")
	wait := func() {
		limited, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.Error(t, readiness.WaitRollout(limited, c, "StatefulSet", "shop", "web"))
	}
	for _, kept := range []string{", updateStrategy: {type: OnDelete}", ", updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}"} {
		set(kept)
		wait()
		require.NotNil(t, api.Get(pods+"waits"), kept)
	}
	set(", updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 0}}")
	wait()
	for name, stays := range map[string]bool{"waits": false, "crashes": false, "was-ready": true, "present": true} {
		require.Equal(t, stays, api.Get(pods+name) != nil, name)
	}
}
