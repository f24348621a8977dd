package lint_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/lint"
)

// TestWhatOneNodeDoesNotHave: each object asks in vain for what its name says; those of granted
// ask for what there is.
func TestWhatOneNodeDoesNotHave(t *testing.T) {
	const granted = `apiVersion: apps/v1
kind: Deployment
metadata: {name: usual}
spec:
  replicas: 3
  template:
    metadata: {labels: {app: usual}}
    spec:
      priorityClassName: system-cluster-critical
      affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: other}}}]}}
      containers: [{name: a, resources: {requests: {cpu: 1, memory: 1Gi, ephemeral-storage: 2Gi}, limits: {nvidia.com/gpu: 0}}}]
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: usual}, spec: {accessModes: [ReadWriteOnce]}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: theirs}, spec: {storageClassName: nfs, accessModes: [ReadWriteMany]}}
`
	const denied = `apiVersion: batch/v1
kind: CronJob
metadata: {name: pages}
spec: {jobTemplate: {spec: {template: {spec: {initContainers: [{name: a, resources: {limits: {example.com/page: 4}}}], containers: []}}}}}
---
apiVersion: v1
kind: Pod
metadata: {name: device}
spec: {containers: [{name: a, resources: {requests: {nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 1}}}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: spread}
spec:
  replicas: 3
  template:
    metadata: {labels: {app: spread}}
    spec:
      affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: spread}}}]}}
      containers: []
  volumeClaimTemplates: [{metadata: {name: a}, spec: {accessModes: [ReadWriteMany]}}]
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: shared}, spec: {accessModes: [ReadWriteMany]}}
`
	r := load(t, `components:
  - {name: granted, kind: manifests, path: granted.yaml, namespace: shop}
  - {name: denied, kind: manifests, path: denied.yaml, namespace: shop}
  - {name: chart, kind: chart, path: chart, namespace: shop}
`, map[string]string{
		"granted.yaml": granted, "denied.yaml": denied,
		"chart/Chart.yaml":       "{apiVersion: v2, name: c, version: 1.0.0}",
		"chart/templates/a.yaml": "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: chart}, spec: {accessModes: [ReadOnlyMany]}}",
	})
	s := contract.RenderInput{Kubernetes: "1.35.4"}
	for _, c := range r.Components {
		s.Components = append(s.Components, contract.ComponentInput{Component: c.Name})
	}
	has, err := lint.Contents(t.Context(), r, s, nil, nil)
	require.NoError(t, err)
	var says []string
	for _, d := range has.Denied {
		says = append(says, d.Component+" ("+d.Place()+"): "+d.Err.Error())
	}
	require.Equal(t, []string{
		"denied (denied.yaml, line 4): CronJob pages requests example.com/page, which the node does not have, and its pods do not start",
		"denied (denied.yaml): Pod device requests nvidia.com/gpu, which the node does not have, and its pods do not start",
		"denied (denied.yaml): StatefulSet spread claims a volume with ReadWriteMany; the cluster's have ReadWriteOnce or ReadWriteOncePod, and it gets none",
		"denied (denied.yaml, line 19): StatefulSet spread wants each of its 3 pods on another node (podAntiAffinity); there is one node, and 2 do not start",
		"denied (denied.yaml): PersistentVolumeClaim shared claims a volume with ReadWriteMany; the cluster's have ReadWriteOnce or ReadWriteOncePod, and it gets none",
		"chart (chart/templates/a.yaml, line 1): PersistentVolumeClaim chart claims a volume with ReadOnlyMany; the cluster's have ReadWriteOnce or ReadWriteOncePod, and it gets none",
	}, says)
}
