package component

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/plan"
)

const (
	upgradedValues   = "port: 5353\nsize: 1Mi\ngone: true\n"
	upgradedTemplate = `apiVersion: v1
kind: Service
metadata: {name: dns}
spec:
  selector: {app: dns}
  ports:
    - {name: dns-udp, port: 53, protocol: UDP, targetPort: {{ .Values.port }}}
    - {name: dns-tcp, port: 53, protocol: TCP, targetPort: {{ add .Values.port 1 }}}
---
apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {kept: x{{ if .Values.gone }}, gone: x{{ end }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {kept: x{{ if .Values.gone }}, gone: x{{ end }}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: rows}
spec:
  replicas: 0
  serviceName: rows
  selector: {matchLabels: {app: rows}}
  template:
    metadata: {labels: {app: rows}}
    spec: {containers: [{name: a, image: busybox, env: [{name: A, value: a}, {name: A, value: "{{ .Values.port }}"}]}]}
  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: {{ .Values.size }}}}}}]
`
)

// TestRealUpgradeOfAChart: after an upgrade the objects are as the chart has them, and a second
// run changes nothing; what the API server refuses to change is told by a plan and by the run.
func TestRealUpgradeOfAChart(t *testing.T) {
	env, _, c, busybox := realSite(t, "  - {name: web, kind: chart, path: web, namespace: shop, images: [busybox]}\n", map[string]string{
		"web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n", "web/values.yaml": upgradedValues, "web/templates/all.yaml": upgradedTemplate,
	})
	in := contract.ComponentInput{Component: "web", Images: map[string]string{"busybox": busybox}}
	values := func(text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(filepath.Join(env.PlatformDir, "web/values.yaml"), []byte(text), 0o600))
	}
	changed := func() int {
		t.Helper()
		out, err := run(t.Context(), env, in)
		require.NoError(t, err)
		return out.Changed
	}
	require.Equal(t, 4, changed())
	require.Zero(t, changed())

	values("port: 6363\nsize: 1Mi\n")
	p := &plan.Plan{}
	_, err := run(t.Context(), env.Planned(p.Of("a/b")), in)
	require.NoError(t, err)
	planned := p.Objects()
	require.NotZero(t, changed())
	require.Zero(t, changed())
	service, err := c.Kubernetes.CoreV1().Services("shop").Get(t.Context(), "dns", metav1.GetOptions{})
	require.NoError(t, err)
	ports := map[string]int32{}
	for _, p := range service.Spec.Ports {
		ports[p.Name+" "+string(p.Protocol)] = p.TargetPort.IntVal
	}
	require.Equal(t, map[string]int32{"dns-udp UDP": 6363, "dns-tcp TCP": 6364}, ports)
	secret, err := c.Kubernetes.CoreV1().Secrets("shop").Get(t.Context(), "login", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string][]byte{"kept": []byte("x")}, secret.Data)
	settings, err := c.Kubernetes.CoreV1().ConfigMaps("shop").Get(t.Context(), "settings", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"kept": "x"}, settings.Data)
	seen := 0
	for _, o := range planned { // what the plan said is what the run did
		if o.After["kind"] == "ConfigMap" || o.After["kind"] == "Secret" {
			data, err := json.Marshal(o.After["data"])
			require.NoError(t, err)
			require.NotContains(t, string(data), "gone")
			seen++
		}
	}
	require.GreaterOrEqual(t, seen, 2)

	values("port: 6363\nsize: 2Mi\n")
	for what, look := range map[string]func() error{
		"plan": func() error {
			_, err := run(t.Context(), env.Planned(new(plan.Plan).Of("a/b")), in)
			return err
		},
		"install": func() error { _, err := run(t.Context(), env, in); return err },
	} {
		err := look()
		refused(t, err, kube.CodeRejected, "apply StatefulSet shop/rows: ")
		f, _ := fault.Whole(err)
		require.Contains(t, f.Fix, "slipway toolchain -- kubectl delete -n shop statefulset.v1.apps rows --cascade=orphan", what)
	}
	orphan := metav1.DeletePropagationOrphan
	require.NoError(t, c.Kubernetes.AppsV1().StatefulSets("shop").Delete(t.Context(), "rows", metav1.DeleteOptions{PropagationPolicy: &orphan}))
	require.Eventually(t, func() bool {
		_, err := c.Kubernetes.AppsV1().StatefulSets("shop").Get(t.Context(), "rows", metav1.GetOptions{})
		return err != nil
	}, time.Minute, 100*time.Millisecond)
	require.NotZero(t, changed())
	require.Zero(t, changed())
}
