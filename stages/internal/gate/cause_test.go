package gate_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/gate"
)

const crashing = `
metadata: {name: web-0, namespace: shop, labels: {app: web, job-name: seed}}
status:
  phase: Running
  conditions: [{type: Ready, status: 'False'}]
  containerStatuses:
    - {name: web, restartCount: 3, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 3, reason: Error}}}
`

// TestAGateThatStaysShut says what was seen last, and what is behind it.
func TestAGateThatStaysShut(t *testing.T) {
	for what, c := range map[string]struct {
		gate   platform.Await
		says   string
		behind bool // pods are
	}{
		"http": {
			platform.Await{HTTP: &platform.HTTPGate{Service: "shop/web:80", Path: "/healthz", Status: 200}},
			"the gate http shop/web:80/healthz; last seen: answered 503, not 200: no endpoints", true,
		},
		"endpoint": {
			platform.Await{Endpoint: "shop/web:80"},
			"the gate endpoint of shop/web:80; last seen: 0 of 0 endpoints are ready", true,
		},
		"job": {platform.Await{Job: "shop/seed"}, "the gate job shop/seed; last seen: 1 active, 0 failed", true},
		"rollout": {
			platform.Await{Rollout: "apps/v1/Deployment shop/web"},
			"the gate rollout of apps/v1/Deployment shop/web; last seen: Deployment shop/web: 0 of 1 pods updated, 0 available", true,
		},
		"cel": {
			platform.Await{CEL: &platform.CELGate{Object: "example.com/v1/Widget shop/w", Expression: "object.status.ready"}},
			"the gate object.status.ready of example.com/v1/Widget shop/w; last seen: no such key: status", false,
		},
		"a kind that nobody has defined": {
			platform.Await{Condition: &platform.ConditionGate{Object: "example.com/v1/Gadget shop/g", Type: "Ready", Status: "True"}},
			"the gate Ready=True of example.com/v1/Gadget shop/g; last seen: the cluster has no kind example.com/v1/Gadget", false,
		},
	} {
		t.Run(what, func(t *testing.T) {
			api, _ := cluster(t)
			client := proxied(t, api, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusServiceUnavailable)
				_, _ = io.WriteString(w, "no endpoints")
			})
			api.Set(t, atShop, "spec: {ports: [{port: 80}], selector: {app: web}}")
			api.Set(t, atWeb, "spec: {selector: {matchLabels: {app: web}}}")
			api.Set(t, atSeed, "status: {active: 1}")
			api.Set(t, atWidget, "spec: {}")
			c.gate.Deadline = config.Duration(300 * time.Millisecond)
			wait := func() *fault.Fault {
				begun := time.Now()
				err := gate.Wait(t.Context(), client, "cd", c.gate)
				require.Less(t, time.Since(begun), 20*time.Second)
				f := new(fault.Fault)
				require.ErrorAs(t, err, &f)
				require.Equal(t, gate.CodeShut, f.Code)
				require.Equal(t, 1, strings.Count(err.Error(), c.gate.Describe()), "a summary has room for the beginning of %s", err)
				require.Regexp(t, `^wait for a gate: waited [0-9.]+m?s for the gate `, err.Error())
				require.ErrorContains(t, err, c.says)
				return f
			}
			api.Set(t, atPod, "{metadata: {name: web-0, namespace: shop, labels: {app: web, job-name: seed}}, status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}}")
			require.Equal(t, fault.Timeout, wait().Class, "nothing went wrong yet")
			api.Set(t, atPod, crashing)
			f := wait()
			if !c.behind {
				require.Equal(t, fault.Timeout, f.Class)
				return
			}
			require.Equal(t, fault.Step, f.Class)
			require.ErrorContains(t, f, ": container web ")
			require.ErrorContains(t, f, "exit code 3")
			require.ErrorContains(t, f, "pod web-0")
		})
	}
}

// TestWhatKeepsAnObjectFromItsGate is named: pods that it makes, an app's failure, or what
// somebody warned of.
func TestWhatKeepsAnObjectFromItsGate(t *testing.T) {
	const late = "{type: Warning, reason: Refused, message: no quota is left, lastTimestamp: '2026-01-02T03:05:00Z', involvedObject: {kind: Widget, name: w, namespace: shop}}"
	widget := platform.Await{Condition: &platform.ConditionGate{Object: "example.com/v1/Widget shop/w", Type: "Ready", Status: "True"}}
	for what, c := range map[string]struct {
		gate  platform.Await
		says  string
		class fault.Class
	}{
		"condition of a workload": {
			platform.Await{Condition: &platform.ConditionGate{Object: "apps/v1/Deployment shop/web", Type: "Available", Status: "True"}},
			"last seen: it has no condition Available: container web ", fault.Step,
		},
		"cel on a workload": {
			platform.Await{CEL: &platform.CELGate{Object: "apps/v1/Deployment shop/web", Expression: "object.status.availableReplicas > 0"}},
			"last seen: no such key: status: container web ", fault.Step,
		},
		"condition of anything":     {widget, "last seen: it has no condition Ready: Refused: no quota is left", fault.Timeout},
		"synced, but what it makes": {platform.Await{Synced: "web"}, "container web ", fault.Step},
		"synced, but the sync":      {platform.Await{Synced: "db"}, "spec.ports: Required value", fault.Step},
		"a workload without pods": {
			platform.Await{CEL: &platform.CELGate{Object: "apps/v1/Deployment shop/idle", Expression: "object.status.ready"}},
			"last seen: no such key: status: Refused: no quota is left", fault.Timeout,
		},
	} {
		t.Run(what, func(t *testing.T) {
			api, client := cluster(t)
			api.Set(t, atWeb, "spec: {selector: {matchLabels: {app: web}}}")
			api.Set(t, atWidget, "spec: {}")
			api.Set(t, atPod, crashing)
			api.Set(t, "/apis/apps/v1/namespaces/shop/deployments/idle", "spec: {replicas: 0, selector: {matchLabels: {app: idle}}}")
			api.Set(t, "/api/v1/namespaces/shop/events/idle", "{type: Warning, reason: Refused, message: no quota is left, involvedObject: {apiVersion: apps/v1, kind: Deployment, name: idle, namespace: shop}}")
			api.Set(t, "/api/v1/namespaces/shop/events/early", "{type: Warning, reason: Pending, message: not yet, lastTimestamp: '2026-01-02T03:04:00Z', involvedObject: {kind: Widget, name: w, namespace: shop}}")
			api.Set(t, "/api/v1/namespaces/shop/events/late", late)
			api.Set(t, "/api/v1/namespaces/shop/events/other", "{type: Warning, reason: Other, message: of another, lastTimestamp: '2026-01-02T03:06:00Z', involvedObject: {apiVersion: other.example.com/v1, kind: Widget, name: w, namespace: shop}}")
			api.Set(t, "/api/v1/namespaces/shop/events/normal", "{type: Normal, reason: Seen, message: is fine, lastTimestamp: '2026-01-02T03:07:00Z', involvedObject: {kind: Widget, name: w, namespace: shop}}")
			api.Set(t, atApp, `{metadata: {name: web, namespace: cd}, spec: {destination: {namespace: shop}}, status: {sync: {status: Synced, revision: abc}, health: {status: Degraded},
  resources: [{group: apps, version: v1, kind: Deployment, namespace: shop, name: web, health: {status: Degraded}}]}}`)
			api.Set(t, "/apis/argoproj.io/v1alpha1/namespaces/cd/applications/db", `{metadata: {name: db, namespace: cd}, status: {sync: {status: OutOfSync, revision: abc}, health: {status: Missing},
  operationState: {phase: Failed, message: failed, syncResult: {resources: [{kind: Service, name: web, status: SyncFailed, message: "spec.ports: Required value"}]}}}}`)
			c.gate.Deadline = config.Duration(300 * time.Millisecond)
			err := gate.Wait(t.Context(), client, "cd", c.gate)
			require.ErrorIs(t, err, &fault.Fault{Code: gate.CodeShut})
			require.ErrorContains(t, err, c.says)
			require.Equal(t, c.class, fault.ClassOf(err), err.Error())
		})
	}
}
