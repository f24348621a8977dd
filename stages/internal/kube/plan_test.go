package kube_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
	"github.com/slipway-sh/slipway/stages/internal/plan"
)

// TestAPlanGoesOnAsIfItHadWritten: the API server has not changed, and who reads what was
// written finds it.
func TestAPlanGoesOnAsIfItHadWritten(t *testing.T) {
	api := kubetest.Serve(t)
	api.Set(t, "/api/v1/namespaces/shop/configmaps/old", "{metadata: {uid: u1, labels: {slipway.sh/deployment: blue}}, data: {k: v}}")
	api.Set(t, "/api/v1/namespaces/shop/configmaps/gone", "{metadata: {name: gone, namespace: shop, uid: u2, labels: {slipway.sh/deployment: blue}}}")
	c, err := kube.New(&rest.Config{Host: api.URL})
	require.NoError(t, err)
	p, ctx := &plan.Plan{}, t.Context()
	c = planned(t, c, p.Of("a/b"))

	secrets := c.Kubernetes.CoreV1().Secrets("shop")
	_, err = secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "new"}, Data: map[string][]byte{"k": []byte("secret")}}, metav1.CreateOptions{})
	require.NoError(t, err)
	made, err := secrets.Get(ctx, "new", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "secret", string(made.Data["k"]))

	objs, err := kube.Decode([]byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: old, namespace: shop}, data: {k: w}}"))
	require.NoError(t, err)
	applied, err := c.Apply(ctx, objs, kube.ApplyOptions{})
	require.NoError(t, err)
	require.Equal(t, kube.Changed, applied[0].Change)

	gone, err := c.DeleteOurs(ctx, kube.MemberOf(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "gone", "namespace": "shop"},
	}}), "blue", metav1.DeletePropagationBackground)
	require.NoError(t, err)
	require.True(t, gone)
	_, err = c.Kubernetes.CoreV1().ConfigMaps("shop").Get(ctx, "gone", metav1.GetOptions{})
	require.ErrorContains(t, err, "would not be there")

	require.Empty(t, api.Writes())
	found := p.Objects()
	require.Len(t, found, 3)
	require.Nil(t, found[0].Before)
	require.Equal(t, "w", found[1].After["data"].(map[string]any)["k"])
	require.Equal(t, "v", found[1].Before["data"].(map[string]any)["k"])
	require.Nil(t, found[2].After)
	require.Equal(t, "a/b", found[2].Step)
}

// TestAPlanComparesWholeNumbers: two that are one as floating point differ.
func TestAPlanComparesWholeNumbers(t *testing.T) {
	api := kubetest.Serve(t)
	api.Set(t, "/api/v1/namespaces/shop/services/s", "{metadata: {uid: u, annotations: {}}, spec: {healthCheckNodePort: 9007199254740993}}")
	c, err := kube.New(&rest.Config{Host: api.URL})
	require.NoError(t, err)
	objs, err := kube.Decode([]byte("{apiVersion: v1, kind: Service, metadata: {name: s, namespace: shop}, spec: {healthCheckNodePort: 9007199254740992}}"))
	require.NoError(t, err)
	p := &plan.Plan{}
	_, err = planned(t, c, p.Of("a/b")).Apply(t.Context(), objs, kube.ApplyOptions{})
	require.NoError(t, err)
	found := p.Objects()
	require.Len(t, found, 1)
	require.NotEqual(t, found[0].Before["spec"], found[0].After["spec"])
	require.Equal(t, int64(9007199254740993), found[0].Before["spec"].(map[string]any)["healthCheckNodePort"])
}

// TestAPlanOfWhatIsNotServed: an object of a kind that is defined by the same run is noted,
// and nobody waits for its definition.
func TestAPlanOfWhatIsNotServed(t *testing.T) {
	api := kubetest.Serve(t)
	c, err := kube.New(&rest.Config{Host: api.URL})
	require.NoError(t, err)
	p := &plan.Plan{}
	objs, err := kube.Decode([]byte("{apiVersion: example.com/v1, kind: Widget, metadata: {name: w, namespace: shop}}"))
	require.NoError(t, err)
	_, err = planned(t, c, p.Of("a/b")).Apply(t.Context(), objs, kube.ApplyOptions{})
	require.NoError(t, err)
	require.Len(t, p.Objects(), 1)
	require.Equal(t, "nothing serves the kind Widget yet: nobody has checked it", p.Objects()[0].Why)
}

// TestAPlanDoesNotWait for what only a run brings about.
func TestAPlanDoesNotWait(t *testing.T) {
	c := &kube.Client{Plan: new(plan.Plan).Of("a/b")}
	err := c.WaitFor(t.Context(), "the sun", kube.Poll, func(context.Context) (bool, string, error) { return false, "it is dark", nil })
	require.ErrorIs(t, err, plan.ErrLater)
	require.ErrorContains(t, err, "the sun; seen: it is dark")
}

// TestAPlanOfWhatWasSetByHand: what the release has as well stays.
func TestAPlanOfWhatWasSetByHand(t *testing.T) {
	api := kubetest.Serve(t)
	api.Set(t, "/api/v1/namespaces/shop/configmaps/c", `{metadata: {name: c, namespace: shop, uid: u, managedFields: [
  {manager: slipway, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:data": {"f:colour": {}}}},
  {manager: kubectl-patch, operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:data": {"f:colour": {}, "f:more": {}}}}]},
 data: {colour: blue, more: of it}}`)
	c, err := kube.New(&rest.Config{Host: api.URL})
	require.NoError(t, err)
	objs, err := kube.Decode([]byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}, data: {colour: blue}}"))
	require.NoError(t, err)
	p := &plan.Plan{}
	_, err = planned(t, c, p.Of("a/b")).Apply(t.Context(), objs, kube.ApplyOptions{})
	require.NoError(t, err)
	found := p.Objects()
	require.Len(t, found, 1)
	require.Equal(t, map[string]any{"colour": "blue"}, found[0].After["data"])
}

// TestAPlanWithAWebhookThatTakesNoDryRuns: nobody knows what it makes of the object, and
// the rest of the plan is made.
func TestAPlanWithAWebhookThatTakesNoDryRuns(t *testing.T) {
	api := kubetest.Serve(t)
	api.Set(t, "/api/v1/namespaces/shop/configmaps/old", "{metadata: {name: old, uid: u1, labels: {slipway.sh/deployment: blue}}, data: {k: v}}")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !r.URL.Query().Has("dryRun") || !strings.Contains(r.URL.Path, "/configmaps") {
			api.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"BadRequest","code":400,"message":"admission webhook \"guard.example.com\" does not support dry run"}`)
	}))
	t.Cleanup(server.Close)
	c, err := kube.New(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	p, ctx := &plan.Plan{}, t.Context()
	c = planned(t, c, p.Of("a/b"))
	objs, err := kube.Decode([]byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: old, namespace: shop}, data: {k: w}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: new, namespace: shop}, data: {k: x}}\n---\n{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}}"))
	require.NoError(t, err)
	_, err = c.Apply(ctx, objs, kube.ApplyOptions{})
	require.NoError(t, err)
	doubts := map[string]plan.Object{}
	for _, o := range p.Objects() {
		name, _, _ := unstructured.NestedString(o.After, "metadata", "name")
		doubts[name] = o
	}
	require.Len(t, doubts, 3)
	require.Equal(t, doubts["old"].Before, doubts["old"].After)
	require.Nil(t, doubts["new"].Before)
	for name, unknown := range map[string]bool{"old": true, "new": true, "web": false} {
		require.Equal(t, unknown, doubts[name].Unknown, name)
	}
	require.Equal(t, `the admission webhook "guard.example.com" takes no dry runs`, doubts["old"].Why)
	made, err := c.Kubernetes.CoreV1().ConfigMaps("shop").Get(ctx, "new", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "x", made.Data["k"])
	require.NoError(t, c.Kubernetes.CoreV1().ConfigMaps("shop").Delete(ctx, "old", metav1.DeleteOptions{}))
	_, err = c.Kubernetes.CoreV1().ConfigMaps("shop").Get(ctx, "old", metav1.GetOptions{})
	require.ErrorContains(t, err, "would not be there")
	require.Empty(t, api.Writes())
}

// TestAPlanNamesAllThatIsRefused, not only what a run would come to first.
func TestAPlanNamesAllThatIsRefused(t *testing.T) {
	api := kubetest.Serve(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPatch || strings.HasSuffix(r.URL.Path, "/good") {
			api.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,"message":"spec: field is immutable"}`)
	}))
	t.Cleanup(server.Close)
	c, err := kube.New(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	objs, err := kube.Decode([]byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: shop}}\n---\n{apiVersion: v1, kind: Service, metadata: {name: two, namespace: shop}}\n---\n{apiVersion: v1, kind: Service, metadata: {name: good, namespace: shop}}"))
	require.NoError(t, err)
	p := &plan.Plan{}
	_, err = planned(t, c, p.Of("a/b")).Apply(t.Context(), objs, kube.ApplyOptions{})
	var ops []string
	for _, f := range fault.All(err) {
		require.Equal(t, kube.CodeRejected, f.Code)
		ops = append(ops, f.Op)
	}
	require.Equal(t, []string{"apply ConfigMap shop/one", "apply Service shop/two"}, ops)
	require.Len(t, p.Objects(), 1, "the one that is not refused")
	require.Empty(t, api.Writes())
}

// TestWhatIsAppliedIsNotTriedOut: the server is asked for the object, and no more.
func TestWhatIsAppliedIsNotTriedOut(t *testing.T) {
	api := kubetest.Serve(t)
	const at, text = "/api/v1/namespaces/shop/configmaps/c", "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}, data: {k: v}}"
	api.Set(t, at, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop, uid: u, managedFields: [{manager: slipway, operation: Apply, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:data": {"f:k": {}}}}]}, data: {k: v}}`)
	tried := 0
	c, err := kube.New(&rest.Config{Host: api.URL, WrapTransport: func(next http.RoundTripper) http.RoundTripper {
		return transport(func(r *http.Request) (*http.Response, error) {
			if r.URL.Query().Has("dryRun") {
				tried++
			}
			return next.RoundTrip(r)
		})
	}})
	require.NoError(t, err)
	objs, err := kube.Decode([]byte(text))
	require.NoError(t, err)
	drift, err := c.Drift(t.Context(), objs, kube.ApplyOptions{})
	require.NoError(t, err)
	require.Empty(t, drift)
	p := &plan.Plan{}
	applied, err := planned(t, c, p.Of("a/b")).Apply(t.Context(), objs, kube.ApplyOptions{})
	require.NoError(t, err)
	require.Equal(t, kube.Unchanged, applied[0].Change)
	require.Zero(t, tried)
	found := p.Objects()
	require.Len(t, found, 1, "a plan rests on it")
	require.Equal(t, found[0].Before, found[0].After)

	api.Set(t, at, "data: {k: edited}")
	drift, err = c.Drift(t.Context(), objs, kube.ApplyOptions{})
	require.NoError(t, err)
	require.Len(t, drift, 1)
	require.Equal(t, 1, tried)
}

// planned is c for a plan.
func planned(t *testing.T, c *kube.Client, p *plan.Step) *kube.Client {
	t.Helper()
	out, err := c.Planned(p)
	require.NoError(t, err)
	return out
}

// transport is a function as a transport.
type transport func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
