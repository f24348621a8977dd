package lint

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhatNoClusterTakes is of the right type, and nevertheless refused.
func TestWhatNoClusterTakes(t *testing.T) {
	const podOf = deploymentOf + "{selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c"
	long := strings.Repeat("a", 64)
	for manifest, want := range map[string][]string{
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Web_Server}":                           {`metadata.name: got "Web_Server", want a name that Kubernetes takes: `},
		"apiVersion: v1\nkind: Service\nmetadata: {name: " + long + "}":                           {"metadata.name: got "},
		"apiVersion: v1\nkind: Service\nmetadata: {name: a.b}":                                    {"metadata.name: got "},
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: a.b}":                                  {"metadata.name: got "},
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: 'system:A_b.c'}":  nil,
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: 'a/b'}":    {"metadata.name: got "},
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a.b-c.1, labels: {v: 1.0.0_x, w: ''}}": nil,
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {v: 1.0+x, 'a b': c}}":      {`: got the key "a b"`, `metadata.labels.v: got "1.0+x", want a label's value: `},
		"apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a, labels: {v: 1.0+x}}":        {`metadata.labels.v: got "1.0+x"`},
		"apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 70000, nodePort: 0, targetPort: 65536}, {port: 0}], selector: {a: b c}}": {
			`spec.ports[0].port: got 70000, want a port, 1 to 65535`, `spec.ports[0].targetPort: got 65536`, `spec.ports[1].port: got 0`, `spec.selector.a: got "b c"`},
		"apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 53, protocol: UDP}, {port: 53}, {port: 53, protocol: TCP}]}": {`spec.ports[2].port: got "53/TCP" again (first in ports[1]), want it once`},
		podOf + ", image: 'quay.io/a/b:v1 '}]}}}": {`spec.template.spec.containers[0].image: "quay.io/a/b:v1 " is no reference of an image`},
		podOf + ", image: 'http://quay.io/a:1'}, {name: d, image: quay.io/Team/App}], initContainers: [{name: i, image: 'a:b:c'}]}}}": {"containers[0].image", "containers[1].image", "initContainers[0].image"},
		podOf + ", image: busybox}]}}}":                                             nil,
		podOf + ", env: [{name: A, value: x}, {name: B}, {name: A, value: z}]}]}}}": {`spec.template.spec.containers[0].env[2].name: got "A" again (first in env[0]), want it once`},
		podOf + "}, {name: c}], volumes: [{name: v}, {name: v}]}}}":                 {"containers[1].name", "volumes[1].name"},
		podOf + ", ports: [{containerPort: 99999}], livenessProbe: {httpGet: {port: 65536}}, readinessProbe: {tcpSocket: {port: web}}}], nodeSelector: {a: b c}}}}": {
			"containers[0].livenessProbe.httpGet.port: got 65536", "containers[0].ports[0].containerPort: got 99999", "spec.nodeSelector.a"},
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {selector: {matchLabels: {a: '-'}}}": {"spec.selector.matchLabels.a"},
	} {
		got := mistakesIn(t, manifest)
		require.Len(t, got, len(want), "%s: %v", manifest, got)
		for i, w := range want {
			require.Contains(t, got[i], w, manifest)
			require.NotContains(t, got[i], "regex")
		}
	}
}
