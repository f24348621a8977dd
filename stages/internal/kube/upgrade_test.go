package kube_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/plan"
)

// workload is a manifest of one without pods: spec and pod are fields in flow style.
func workload(kind, name, spec, pod, container string) string {
	return `
apiVersion: apps/v1
kind: ` + kind + `
metadata: {name: ` + name + `}
spec:
  ` + spec + `
  selector: {matchLabels: {app: ` + name + `}}
  template:
    metadata: {labels: {app: ` + name + `}}
    spec:
      nodeSelector: {test.slipway.sh/none: none}
      ` + pod + `
      containers: [{name: main, image: busybox, ` + container + `}]
`
}

// TestRealWhatAnUpgradeChanges: what applying alone cannot make of an object is made of it all
// the same, and nothing of it is left to do.
func TestRealWhatAnUpgradeChanges(t *testing.T) {
	c, ns, _ := real(t)
	const service = `{apiVersion: v1, kind: Service, metadata: {name: dns}, spec: {selector: {app: dns}, ports: [{name: udp, port: 53, protocol: UDP, targetPort: %u}, {name: tcp, port: 53, protocol: TCP, targetPort: %t}]}}`
	for name, x := range map[string]struct{ before, after, has, not string }{
		"a key of stringData that is gone": {
			before: `{apiVersion: v1, kind: Secret, metadata: {name: gone}, stringData: {a: x, b: x}}`,
			after:  `{apiVersion: v1, kind: Secret, metadata: {name: gone}, stringData: {a: x}}`,
			has:    `"a":"eA=="`, not: `"b"`,
		},
		"a key of data that is gone": {
			before: `{apiVersion: v1, kind: Secret, metadata: {name: gone2}, data: {a: eA==, b: eA==}}`,
			after:  `{apiVersion: v1, kind: Secret, metadata: {name: gone2}, stringData: {a: x}}`,
			has:    `"a":"eA=="`, not: `"b"`,
		},
		"a strategy": {
			before: workload("Deployment", "strategy", "replicas: 0", "", ""), after: workload("Deployment", "strategy", "strategy: {type: Recreate}", "", ""),
			has: `"type":"Recreate"`, not: `"rollingUpdate"`,
		},
		"a StatefulSet's strategy": {
			before: workload("StatefulSet", "sets", "serviceName: s\n  updateStrategy: {rollingUpdate: {partition: 1}}", "", ""),
			after:  workload("StatefulSet", "sets", "serviceName: s\n  updateStrategy: {type: OnDelete}", "", ""),
			has:    `"type":"OnDelete"`, not: `"rollingUpdate"`,
		},
		"a volume and a probe": {
			before: workload("Deployment", "volume", "replicas: 0", "volumes: [{name: v, secret: {secretName: x}}]", "livenessProbe: {httpGet: {port: 80}}"),
			after:  workload("Deployment", "volume", "replicas: 0", "volumes: [{name: v, configMap: {name: x}}]", "livenessProbe: {exec: {command: [x]}}"),
			has:    `"exec"`, not: `"httpGet"`,
		},
		"a port as TCP and UDP": {
			before: strings.NewReplacer("%u", "5353", "%t", "5353").Replace(service), after: strings.NewReplacer("%u", "5354", "%t", "5355").Replace(service),
			has: `"targetPort":5355`, not: `5353`,
		},
		"a variable that is there twice": {
			before: workload("Deployment", "env", "replicas: 0", "", "env: [{name: A, value: a}, {name: A, value: b}]"),
			after:  workload("Deployment", "env", "replicas: 0", "", "env: [{name: A, value: c}, {name: A, value: d}, {name: B, value: e}]"),
			has:    `[{"name":"A","value":"c"},{"name":"A","value":"d"},{"name":"B","value":"e"}]`, not: `"value":"a"`,
		},
		"a port that has two names": {
			before: workload("Deployment", "ports", "replicas: 0", "", "ports: [{name: http, containerPort: 80}, {name: health, containerPort: 80}]"),
			after:  workload("Deployment", "ports", "replicas: 0", "", "ports: [{name: http, containerPort: 81}, {name: health, containerPort: 81}]"),
			has:    `"containerPort":81,"name":"health"`, not: `"containerPort":80`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, manifest := range []string{x.before, x.after} {
				require.Len(t, drifted(t, c, ns, manifest), 1)
				_, err := applyYAML(t.Context(), c, []byte(manifest), kube.ApplyOptions{Namespace: ns})
				require.NoError(t, err)
				requireNoDrift(t, c, ns, manifest)
			}
			require.Contains(t, liveText(t, c, ns, x.after), x.has)
			require.NotContains(t, liveText(t, c, ns, x.after), x.not)
		})
	}
}

// liveText is the first object of a manifest as it is in the cluster, as JSON without its
// metadata and its status.
func liveText(t *testing.T, c *kube.Client, namespace, manifest string) string {
	t.Helper()
	objs, err := kube.Decode([]byte(manifest))
	require.NoError(t, err)
	api, err := c.Resource(t.Context(), objs[0].GroupVersionKind(), namespace)
	require.NoError(t, err)
	o, err := api.Get(t.Context(), objs[0].GetName(), metav1.GetOptions{})
	require.NoError(t, err)
	delete(o.Object, "metadata")
	delete(o.Object, "status")
	text, err := o.MarshalJSON()
	require.NoError(t, err)
	return string(text)
}

// TestRealWhatAnUpgradeCannotChange: applying fails and says what to do, as looking for drift
// does before; and doing so helps.
func TestRealWhatAnUpgradeCannotChange(t *testing.T) {
	c, ns, _ := real(t)
	set := func(size string) string {
		return workload("StatefulSet", "set", "replicas: 0\n  serviceName: s\n  volumeClaimTemplates: [{metadata: {name: v}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: "+size+"}}}}]", "", "")
	}
	job := func(arg string) string {
		return `{apiVersion: batch/v1, kind: Job, metadata: {name: job}, spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: a, image: busybox, args: [` + arg + `]}]}}}}`
	}
	selector := workload("Deployment", "selector", "replicas: 0", "", "")
	for name, x := range map[string]struct{ before, after, remedy string }{
		"a Secret's type": {
			`{apiVersion: v1, kind: Secret, metadata: {name: login}, stringData: {username: a, password: b}}`,
			`{apiVersion: v1, kind: Secret, metadata: {name: login}, type: kubernetes.io/basic-auth, stringData: {username: a, password: b}}`,
			"kubectl delete -n NS secret login",
		},
		"an immutable ConfigMap": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: fixed}, immutable: true, data: {a: b}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: fixed}, immutable: true, data: {a: c}}`,
			"kubectl delete -n NS configmap fixed",
		},
		"volumeClaimTemplates": {set("1Mi"), set("2Mi"), "kubectl delete -n NS statefulset.v1.apps set --cascade=orphan"},
		"a Job's template":     {job("one"), job("two"), "kubectl delete -n NS job.v1.batch job"},
		"a selector":           {selector, strings.ReplaceAll(selector, "{app: selector}", "{app: other}"), "kubectl delete -n NS deployment.v1.apps selector"},
		"a role": {
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: binding}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}}`,
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: binding}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}}`,
			"kubectl delete -n NS rolebinding.v1.rbac.authorization.k8s.io binding",
		},
		"a headless Service": {
			`{apiVersion: v1, kind: Service, metadata: {name: head}, spec: {ports: [{port: 80}]}}`,
			`{apiVersion: v1, kind: Service, metadata: {name: head}, spec: {clusterIP: None, ports: [{port: 80}]}}`,
			"kubectl delete -n NS service head",
		},
		"a claim": {
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: claim}, spec: {storageClassName: a, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}`,
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: claim}, spec: {storageClassName: b, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}`,
			"", // its data would be lost
		},
	} {
		t.Run(name, func(t *testing.T) {
			apply(t, c, ns, x.before)
			opts := kube.ApplyOptions{Namespace: ns}
			was := liveText(t, c, ns, x.before)
			for _, c := range []*kube.Client{planned(t, c, plan.Verify("web")), c} {
				_, err := applyYAML(t.Context(), c, []byte(x.after), opts)
				require.ErrorIs(t, err, &fault.Fault{Code: kube.CodeRejected})
				f, ok := fault.Whole(err)
				require.True(t, ok)
				require.Contains(t, f.Fix, "give the field in the manifest the value that the object has")
				if x.remedy == "" {
					require.NotContains(t, f.Fix, "kubectl")
				} else {
					require.Contains(t, f.Fix, strings.ReplaceAll(x.remedy, "NS", ns))
				}
			}
			require.Equal(t, was, liveText(t, c, ns, x.before))
			if x.remedy == "" {
				return
			}
			remove(t, c, ns, x.before, strings.Contains(x.remedy, "orphan"))
			apply(t, c, ns, x.after)
			requireNoDrift(t, c, ns, x.after)
		})
	}
}

// requireNoDrift requires that, in a moment, a manifest makes and changes nothing: a controller may still
// write to what was applied.
func requireNoDrift(t *testing.T, c *kube.Client, namespace, manifest string) {
	t.Helper()
	var left []kube.Applied
	for range 50 {
		if left = drifted(t, c, namespace, manifest); len(left) == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	require.Empty(t, left)
}

// drifted is what applying a manifest would make or change.
func drifted(t *testing.T, c *kube.Client, namespace, manifest string) []kube.Applied {
	t.Helper()
	objs, err := kube.Decode([]byte(manifest))
	require.NoError(t, err)
	found, err := c.Drift(t.Context(), objs, kube.ApplyOptions{Namespace: namespace})
	require.NoError(t, err)
	return found
}

// remove deletes the object of a manifest, with or without what it owns, and waits until it
// is gone.
func remove(t *testing.T, c *kube.Client, namespace, manifest string, orphan bool) {
	t.Helper()
	objs, err := kube.Decode([]byte(manifest))
	require.NoError(t, err)
	api, err := c.Resource(t.Context(), objs[0].GroupVersionKind(), namespace)
	require.NoError(t, err)
	policy := metav1.DeletePropagationBackground
	if orphan {
		policy = metav1.DeletePropagationOrphan
	}
	require.NoError(t, api.Delete(t.Context(), objs[0].GetName(), metav1.DeleteOptions{PropagationPolicy: &policy}))
	require.NoError(t, c.WaitAbsent(t.Context(), objs[0].GetName(), func(ctx context.Context) (string, error) {
		_, err := api.Get(ctx, objs[0].GetName(), metav1.GetOptions{})
		return "it is there", err
	}))
}
