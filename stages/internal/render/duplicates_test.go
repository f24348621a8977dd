package render

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// What charts render twice is what Helm makes of it: the last one.
func TestDecodeRenderedTakesTheLastOne(t *testing.T) {
	text := []byte(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: old, tier: front, app: web}}
spec:
  unknown: true
  template:
    spec:
      containers:
        - name: web
          env: [{name: LEVEL, value: info}, {name: OTHER, value: a}, {name: LEVEL, value: debug}, {name: LEVEL, value: trace}]
          ports: [{containerPort: 53}, {containerPort: 53, protocol: UDP}, {containerPort: 53, name: dns}]
          volumeMounts: [{name: a, mountPath: /a}, {name: b, mountPath: /a}]
---
{apiVersion: example.com/v1, kind: Web, metadata: {name: web}, spec: {env: [{name: A}, {name: A}]}}
`)
	_, err := kube.Decode(text)
	require.ErrorContains(t, err, `key "app" already set in map`)
	objs, err := kube.DecodeRendered(text)
	require.NoError(t, err)
	for _, o := range objs {
		KeepLast(o)
	}
	require.Equal(t, map[string]string{"app": "web", "tier": "front"}, objs[0].GetLabels())
	containers, _, err := unstructured.NestedSlice(objs[0].Object, "spec", "template", "spec", "containers")
	require.NoError(t, err)
	require.Equal(t, map[string]any{
		"name":         "web",
		"env":          []any{map[string]any{"name": "OTHER", "value": "a"}, map[string]any{"name": "LEVEL", "value": "trace"}},
		"ports":        []any{map[string]any{"containerPort": int64(53), "protocol": "UDP"}, map[string]any{"containerPort": int64(53), "name": "dns"}},
		"volumeMounts": []any{map[string]any{"name": "a", "mountPath": "/a"}, map[string]any{"name": "b", "mountPath": "/a"}},
	}, containers[0], "Kubernetes refuses what is left twice")
	require.Len(t, objs[1].Object["spec"].(map[string]any)["env"], 2, "only its controller knows")
}
