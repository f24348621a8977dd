package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/gate"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
	"github.com/slipway-sh/slipway/stages/internal/plan"
)

// cluster is an API server with a kind of somebody's own, and Argo CD's.
func cluster(t *testing.T) (*kubetest.API, *kube.Client) {
	t.Helper()
	api := kubetest.Serve(t)
	api.Define("example.com/v1", "Widget", true)
	api.Define("argoproj.io/v1alpha1", "Application", true)
	return api, connect(t, api.URL)
}

func connect(t *testing.T, url string) *kube.Client {
	t.Helper()
	c, err := kube.New(&rest.Config{Host: url})
	require.NoError(t, err)
	return c
}

const (
	atWeb    = "/apis/apps/v1/namespaces/shop/deployments/web"
	atSeed   = "/apis/batch/v1/namespaces/shop/jobs/seed"
	atPod    = "/api/v1/namespaces/shop/pods/web-0"
	atWidget = "/apis/example.com/v1/namespaces/shop/widgets/w"
	atApp    = "/apis/argoproj.io/v1alpha1/namespaces/cd/applications/web"
	atShop   = "/api/v1/namespaces/shop/services/web"
	atSlice  = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices/web-1"
)

// TestEachGateOpens with what a cluster shows before, and then.
func TestEachGateOpens(t *testing.T) {
	widget := "example.com/v1/Widget shop/w"
	type look struct{ path, text, seen string }
	for what, c := range map[string]struct {
		gate  platform.Await
		shut  []look // in their order: what is added to the cluster, and what is seen then
		opens look
	}{
		"rollout": {
			platform.Await{Rollout: "apps/v1/Deployment shop/web"},
			[]look{
				{"", "", "not found"},
				{atWeb, "{metadata: {generation: 2}, spec: {replicas: 2}, status: {observedGeneration: 1}}", "generation 2 is not observed yet"},
				{atWeb, "status: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, availableReplicas: 1}", "2 of 2 pods updated, 1 available"},
			},
			look{atWeb, "status: {availableReplicas: 2}", "it is rolled out"},
		},
		"job": {
			platform.Await{Job: "shop/seed"},
			[]look{{"", "", "not found"}, {atSeed, "status: {active: 1, failed: 2}", "1 active, 2 failed"}},
			look{atSeed, "status: {conditions: [{type: Complete, status: 'True'}]}", "it completed"},
		},
		"endpoint": {
			platform.Await{Endpoint: "shop/web:80"},
			[]look{
				{"", "", "not found"},
				{atShop, "{spec: {ports: [{name: other, port: 81}]}}", "the Service has no port 80"},
				{atShop, "{spec: {ports: [{name: other, port: 81}, {name: http, port: 80}]}}", "0 of 0 endpoints are ready"},
				{atSlice, "{metadata: {labels: {kubernetes.io/service-name: web}}, ports: [{name: http, port: 8080}], endpoints: [{addresses: [a], conditions: {ready: false}}, {addresses: [b]}]}", "0 of 2 endpoints are ready"},
				{"/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices/other-port", "{metadata: {labels: {kubernetes.io/service-name: web}}, ports: [{name: other}], endpoints: [{addresses: [a], conditions: {ready: true}}]}", "0 of 2 endpoints are ready"},
				{"/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices/other-service", "{metadata: {labels: {kubernetes.io/service-name: db}}, ports: [{name: http}], endpoints: [{addresses: [a], conditions: {ready: true}}]}", "0 of 2 endpoints are ready"},
			},
			look{atSlice, "endpoints: [{addresses: [a], conditions: {ready: true}}, {addresses: [b]}]", "1 of 2 endpoints are ready"},
		},
		"condition": {
			platform.Await{Condition: &platform.ConditionGate{Object: widget, Type: "Programmed", Status: "True"}},
			[]look{
				{"", "", "it is not there"},
				{atWidget, "{metadata: {generation: 2}}", "it has no condition Programmed"},
				{atWidget, "status: {conditions: [{type: Ready, status: 'True'}]}", "it has no condition Programmed"},
				{atWidget, "status: {conditions: [{type: Programmed, status: 'False', reason: Pending, message: no address}]}", "Programmed=False, Pending, no address"},
				{atWidget, "status: {conditions: [{type: Programmed, status: 'True', observedGeneration: 1}]}", "Programmed=True, of generation 1, not 2"},
			},
			look{atWidget, "status: {conditions: [{type: Programmed, status: 'True', observedGeneration: 2}]}", "Programmed=True"},
		},
		"a condition that is not the default": {
			platform.Await{Condition: &platform.ConditionGate{Object: widget, Type: "Paused", Status: "False"}},
			[]look{{atWidget, "status: {conditions: [{type: Paused, status: 'True'}]}", "Paused=True"}},
			look{atWidget, "status: {conditions: [{type: Paused, status: 'False'}]}", "Paused=False"},
		},
		"cel": {
			platform.Await{CEL: &platform.CELGate{Object: widget, Expression: "object.status.size >= 2 && object.status.parts.all(p, p.ready)"}},
			[]look{
				{"", "", "it is not there"},
				{atWidget, "{spec: {size: 2}}", "no such key: status"},
				{atWidget, "status: {parts: []}", "no such key: size"},
				{atWidget, "status: {size: large, parts: []}", "the expression has no value: a field is missing, or has another type"},
				{atWidget, "status: {size: 1}", "false"},
				{atWidget, "status: {size: 2, parts: [{ready: true}, {ready: false}]}", "false"},
			},
			look{atWidget, "status: {size: 2, parts: [{ready: true}, {ready: true}]}", "true"},
		},
		"cel whose field is a value": {
			platform.Await{CEL: &platform.CELGate{Object: widget, Expression: "object.data[object.data.password] == 'x'"}},
			[]look{{atWidget, "data: {password: hunter2}", "the expression has no value: a field is missing, or has another type"}},
			look{atWidget, "data: {hunter2: x}", "true"},
		},
		"cel on an object of the cluster's own": {
			platform.Await{CEL: &platform.CELGate{Object: "v1/Namespace shop", Expression: "object.status.phase == 'Active'"}},
			[]look{{"", "", "it is not there"}},
			look{"/api/v1/namespaces/shop", "status: {phase: Active}", "true"},
		},
		"synced": {
			platform.Await{Synced: "web"},
			[]look{
				{"", "", "it is not there"},
				{"/apis/argoproj.io/v1alpha1/namespaces/cd/applications/other", "{metadata: {name: other, namespace: cd}, status: {sync: {status: Synced}, health: {status: Healthy}}}", "it is not there"},
				{"/apis/argoproj.io/v1alpha1/namespaces/cd/applications/odd", "{metadata: {name: odd, namespace: cd}, status: {sync: nobody can read this}}", "it is not there"},
				{"/apis/argoproj.io/v1alpha1/namespaces/aa/applications/web", "{metadata: {name: web, namespace: aa}, status: {sync: {status: Synced}, health: {status: Healthy}}}", "it is not there"},
				{atApp, "{metadata: {name: web, namespace: cd}, status: {sync: {status: OutOfSync, revision: abc}, health: {status: Healthy}, reconciledAt: '2026-01-02T03:04:05Z'}}", "OutOfSync"},
				{atApp, "status: {sync: {status: Synced}, health: {status: Progressing}}", "Progressing"},
			},
			look{atApp, "status: {health: {status: Healthy}}", ""},
		},
	} {
		t.Run(what, func(t *testing.T) {
			api, client := cluster(t)
			for _, l := range c.shut {
				if l.path != "" {
					api.Set(t, l.path, l.text)
				}
				open, seen, err := gate.Look(t.Context(), client, "cd", c.gate)
				require.False(t, open, l.text)
				if err != nil { // to a wait it is something seen
					seen = err.Error()
				}
				require.Contains(t, seen, l.seen, l.text)
				require.NotContains(t, seen, "hunter2", "what CEL says quotes values")
				require.Error(t, gate.Wait(t.Context(), planned(t, client), "cd", c.gate), "for a plan it is looked at once")
			}
			api.Set(t, c.opens.path, c.opens.text)
			open, seen, err := gate.Look(t.Context(), client, "cd", c.gate)
			require.NoError(t, err)
			require.True(t, open, seen)
			require.Contains(t, seen, c.opens.seen)
			require.NoError(t, gate.Wait(t.Context(), planned(t, client), "cd", c.gate))
			c.gate.Deadline = config.Duration(time.Minute)
			require.NoError(t, gate.Wait(t.Context(), client, "cd", c.gate))
			require.Empty(t, api.Writes(), "gates change nothing")
		})
	}
}

// proxied is an API server that asks the Service web for what is behind its proxy.
func proxied(t *testing.T, api *kubetest.API, answer http.HandlerFunc) *kube.Client {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/proxy") {
			answer(w, r)
			return
		}
		api.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return connect(t, s.URL)
}

// TestAServiceIsAskedThroughTheAPIServer, so that it need not be reachable from here.
func TestAServiceIsAskedThroughTheAPIServer(t *testing.T) {
	var asked atomic.Value
	api, _ := cluster(t)
	client := proxied(t, api, func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.Method + " " + r.URL.RequestURI())
		switch {
		case strings.HasSuffix(r.URL.Path, "/moved"):
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		case strings.HasSuffix(r.URL.Path, "/down"):
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, "no endpoints\n  available")
		default:
			_, _ = io.WriteString(w, `{"status": "pass"}`)
		}
	})
	const proxy = "GET /api/v1/namespaces/shop/services/http:web:8080/proxy"
	for what, c := range map[string]struct {
		gate        platform.HTTPGate
		asked, seen string
		open        bool
	}{
		"its root":          {platform.HTTPGate{Path: "/", Status: 200}, proxy + "/", "answered 200", true},
		"a path":            {platform.HTTPGate{Path: "/api/healthz", Status: 200}, proxy + "/api/healthz", "answered 200", true},
		"a directory":       {platform.HTTPGate{Path: "/api/", Status: 200}, proxy + "/api/", "answered 200", true},
		"a query":           {platform.HTTPGate{Path: "/api?deep=1&x=a%2Fb", Status: 200}, proxy + "/api?deep=1&x=a%2Fb", "answered 200", true},
		"over HTTPS":        {platform.HTTPGate{Path: "/", Status: 200, TLS: true}, "GET /api/v1/namespaces/shop/services/https:web:8080/proxy/", "answered 200", true},
		"out of it":         {platform.HTTPGate{Path: "/../../../../secrets/database", Status: 200}, proxy + "/secrets/database", "answered 200", true},
		"out, escaped":      {platform.HTTPGate{Path: "/a/%2e%2e/%2E./..%2fsecrets/", Status: 200}, proxy + "/secrets/", "answered 200", true},
		"escaped twice":     {platform.HTTPGate{Path: "/%252e%252e/secrets", Status: 200}, proxy + "/%252e%252e/secrets", "answered 200", true},
		"its text":          {platform.HTTPGate{Path: "/", Status: 200, Contains: `"pass"`}, proxy + "/", "answered 200", true},
		"another text":      {platform.HTTPGate{Path: "/", Status: 200, Contains: "warm"}, proxy + "/", `the response does not contain "warm": {"status": "pass"}`, false},
		"another status":    {platform.HTTPGate{Path: "/down", Status: 200}, proxy + "/down", "answered 503, not 200: no endpoints available", false},
		"a redirect":        {platform.HTTPGate{Path: "/moved", Status: 302}, proxy + "/moved", "answered 302", true},
		"where it leads to": {platform.HTTPGate{Path: "/moved", Status: 200}, proxy + "/moved", "answered 302, not 200", false},
	} {
		t.Run(what, func(t *testing.T) {
			c.gate.Service = "shop/web:8080"
			open, seen, err := gate.Look(t.Context(), planned(t, client), "cd", platform.Await{HTTP: &c.gate})
			require.NoError(t, err)
			require.Equal(t, c.open, open)
			require.Contains(t, seen, c.seen)
			require.Equal(t, c.asked, asked.Load())
		})
	}
	away := httptest.NewServer(nil)
	away.Close()
	open, seen, err := gate.Look(t.Context(), connect(t, away.URL), "cd", platform.Await{HTTP: &platform.HTTPGate{Service: "shop/web:80", Path: "/", Status: 200}})
	require.NoError(t, err)
	require.False(t, open)
	require.Contains(t, seen, "connection refused")
}

// TestWhatTheAPIServerItselfAnswersOpensNoGate, whatever status the gate waits for.
func TestWhatTheAPIServerItselfAnswersOpensNoGate(t *testing.T) {
	api, _ := cluster(t)
	services := corev1.Resource("services")
	for what, c := range map[string]struct {
		answer error
		status int
		seen   string
		open   bool
	}{
		"no Service":         {apierrors.NewNotFound(services, "web"), 404, `the API server does not reach it: services "web" not found`, false},
		"no endpoint":        {apierrors.NewServiceUnavailable(`no endpoints available for service "web"`), 503, `does not reach it: no endpoints available for service "web"`, false},
		"not allowed":        {apierrors.NewForbidden(services, "http:web:80", errors.New("no rights")), 403, "does not reach it: services", false},
		"another API server": {apierrors.NewUnauthorized("who are you"), 401, "answered 401", true},
	} {
		client := proxied(t, api, func(w http.ResponseWriter, _ *http.Request) {
			status := c.answer.(apierrors.APIStatus).Status()
			status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
			w.WriteHeader(int(status.Code))
			require.NoError(t, json.NewEncoder(w).Encode(status))
		})
		open, seen, err := gate.Look(t.Context(), client, "cd", platform.Await{HTTP: &platform.HTTPGate{Service: "shop/web:80", Path: "/", Status: c.status}})
		require.NoError(t, err, what)
		require.Equal(t, c.open, open, what)
		require.Contains(t, seen, c.seen, what)
	}
}

// TestAGateThatOpensMeanwhile is waited for.
func TestAGateThatOpensMeanwhile(t *testing.T) {
	var n atomic.Int32
	api, _ := cluster(t)
	client := proxied(t, api, func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1) < 3 {
			w.WriteHeader(http.StatusBadGateway)
		}
	})
	a := platform.Await{HTTP: &platform.HTTPGate{Service: "shop/web:80", Path: "/", Status: 200}, Deadline: config.Duration(time.Minute)}
	require.NoError(t, gate.Wait(t.Context(), client, "cd", a))
	require.EqualValues(t, 3, n.Load())
}

// TestWhatWillNotRecoverEndsTheWaitAtOnce: nobody waits an hour for it.
func TestWhatWillNotRecoverEndsTheWaitAtOnce(t *testing.T) {
	for what, c := range map[string]struct {
		gate platform.Await
		says string
	}{
		"a Job that failed": {
			platform.Await{Job: "shop/seed"},
			"wait for the gate job shop/seed: job shop/seed failed: BackoffLimitExceeded it was tried 6 times: container web ",
		},
		"an expression that is not true or false": {
			platform.Await{CEL: &platform.CELGate{Object: "example.com/v1/Widget shop/w", Expression: "object.spec.size"}},
			"wait for the gate object.spec.size of example.com/v1/Widget shop/w: the expression object.spec.size is of type int, not true or false",
		},
		"what may not be read": {
			platform.Await{Condition: &platform.ConditionGate{Object: "v1/Secret shop/s", Type: "Ready", Status: "True"}},
			"wait for the gate Ready=True of v1/Secret shop/s: you may not",
		},
	} {
		t.Run(what, func(t *testing.T) {
			api, _ := cluster(t)
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.URL.Path, "/secrets/") {
					w.Header().Set("Content-Type", "application/json")
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(http.StatusForbidden)
					_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"you may not"}`)
					return
				}
				api.ServeHTTP(w, r)
			}))
			t.Cleanup(s.Close)
			api.Set(t, atSeed, "status: {failed: 6, conditions: [{type: FailureTarget, status: 'True'}, {type: Failed, status: 'True', reason: BackoffLimitExceeded, message: it was tried 6 times}]}")
			api.Set(t, atWidget, "spec: {size: 2}")
			api.Set(t, atPod, crashing)
			c.gate.Deadline = config.Duration(time.Hour)
			begun := time.Now()
			err := gate.Wait(t.Context(), connect(t, s.URL), "cd", c.gate)
			require.Less(t, time.Since(begun), 20*time.Second)
			require.ErrorIs(t, err, &fault.Fault{Code: kube.CodeFailed})
			require.Equal(t, fault.Step, fault.ClassOf(err))
			require.ErrorContains(t, err, c.says)
		})
	}
}

// TestTheEndOfTheStepsTimeIsNoShutGate: the gate had more time.
func TestTheEndOfTheStepsTimeIsNoShutGate(t *testing.T) {
	_, client := cluster(t)
	a := platform.Await{Job: "shop/seed", Deadline: config.Duration(time.Hour)}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := gate.Wait(ctx, client, "cd", a)
	require.NotErrorIs(t, err, &fault.Fault{Code: gate.CodeShut})
	require.ErrorIs(t, err, &fault.Fault{Code: kube.CodeWait})
	require.ErrorContains(t, err, "the gate job shop/seed; last seen: ")

	stopped, stop := context.WithCancel(t.Context())
	stop()
	err = gate.Wait(stopped, client, "cd", a)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, &fault.Fault{Code: gate.CodeShut})
}

func planned(t *testing.T, c *kube.Client) *kube.Client {
	t.Helper()
	c, err := c.Planned(plan.Verify("gate"))
	require.NoError(t, err)
	return c
}

func TestAGateInAPlanSaysWhatItSees(t *testing.T) {
	api, client := cluster(t)
	api.Set(t, atSeed, "status: {active: 1}")
	begun := time.Now()
	err := gate.Wait(t.Context(), planned(t, client), "cd", platform.Await{Job: "shop/seed", Deadline: config.Duration(time.Hour)})
	require.EqualError(t, err, "gate job shop/seed is shut: 1 active, 0 failed")
	require.Less(t, time.Since(begun), 5*time.Second)
	_, _, err = gate.Look(t.Context(), client, "cd", platform.Await{})
	require.EqualError(t, err, "a gate without a condition")
}
