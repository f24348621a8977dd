package kube_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
	"github.com/slipway-sh/slipway/stages/internal/plan"
)

// namespacesThatNote is a client of an API server that notes the methods of its requests.
func namespacesThatNote(t *testing.T) (typedcorev1.NamespaceInterface, *[]string) {
	t.Helper()
	var methods []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		methods = append(methods, r.Method)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(namespaceObject())
	}))
	t.Cleanup(server.Close)
	c, err := kube.New(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	return c.Kubernetes.CoreV1().Namespaces(), &methods
}

func TestAPlanWritesNothing(t *testing.T) {
	api := kubetest.Serve(t)
	c, err := kube.New(&rest.Config{Host: api.URL})
	require.NoError(t, err)
	p := plan.Verify("a/b")
	c = planned(t, c, p)
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	_, err = c.Kubernetes.CoreV1().Namespaces().Create(t.Context(), shop, metav1.CreateOptions{})
	require.NoError(t, err)
	require.ErrorIs(t, p.Err(), plan.ErrChange)
	require.Empty(t, api.Writes())
	_, err = c.Asking().Kubernetes.CoreV1().Namespaces().Create(t.Context(), shop, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Len(t, api.Writes(), 1)
}

// TestAMachineThatSleptWritesNothing: what a step had decided to do before does not get to the
// server, whatever its context says.
func TestAMachineThatSleptWritesNothing(t *testing.T) {
	api, methods := namespacesThatNote(t)
	ctx, sleep := kubetest.Work(t)
	_, err := api.Create(ctx, namespaceObject(), metav1.CreateOptions{})
	require.NoError(t, err)
	sleep()
	for _, ctx := range []context.Context{ctx, context.WithoutCancel(ctx)} {
		_, err = api.Create(ctx, namespaceObject(), metav1.CreateOptions{})
		require.Error(t, err)
	}
	require.ErrorIs(t, err, &fault.Fault{Code: lock.CodeLost})
	require.False(t, kube.Transient(err), "it must not be tried again")
	_, err = api.Get(context.WithoutCancel(ctx), "x", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"POST", "GET"}, *methods)
}

// A controller that writes to an object between the look at it and the dry run, such as
// the one that notes a Deployment's revision, is no drift; another value is.
func TestAControllerIsNoDrift(t *testing.T) {
	const object = `{"apiVersion":"v1","kind":"Service","metadata":{"name":"m","namespace":"n","uid":"u"%s},"spec":{"type":%q}}`
	noted := `,"annotations":{"revision":"1"}`
	looks, live := 0, "v"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/api":
			fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
		case r.URL.Path == "/apis":
			fmt.Fprint(w, `{"kind":"APIGroupList","groups":[]}`)
		case r.URL.Path == "/api/v1":
			fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"services","namespaced":true,"kind":"Service","verbs":["get","patch"]}]}`)
		case r.Method == http.MethodPatch:
			fmt.Fprintf(w, object, noted, "v")
		default:
			if looks++; looks == 1 {
				fmt.Fprintf(w, object, "", live)
			} else {
				fmt.Fprintf(w, object, noted, live)
			}
		}
	}))
	defer server.Close()
	c, err := kube.New(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	objs, err := kube.Decode(fmt.Appendf(nil, object, "", "v"))
	require.NoError(t, err)
	found, err := c.Drift(t.Context(), objs, kube.ApplyOptions{})
	require.NoError(t, err)
	require.Empty(t, found)
	looks, live = 0, "edited"
	found, err = c.Drift(t.Context(), objs, kube.ApplyOptions{})
	require.NoError(t, err)
	require.Len(t, found, 1)
}
