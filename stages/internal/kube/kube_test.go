package kube_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/slipway-sh/slipway/config/kubeconfig"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

func namespaceObject() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "slipway-test-"}}
}

func TestDecode(t *testing.T) {
	objs, err := kube.Decode([]byte(`
# a comment only
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data: {k: "1"}
---
apiVersion: v1
kind: List
items:
  - {apiVersion: v1, kind: Secret, metadata: {name: b}}
  - {apiVersion: apps/v1, kind: Deployment, metadata: {name: c, namespace: n}, spec: {replicas: 3}}
`))
	require.NoError(t, err)
	require.Len(t, objs, 3)
	require.Equal(t, "a", objs[0].GetName())
	require.Equal(t, "b", objs[1].GetName())
	require.Equal(t, int64(3), objs[2].Object["spec"].(map[string]any)["replicas"])

	for text, want := range map[string]string{
		"apiVersion: v1\nkind: ConfigMap\n":                                 "document 1: apiVersion, kind or metadata.name is missing",
		"{apiVersion: v1, kind: X, metadata: {name: a}}\n---\na: 1\na: 2\n": "document 2: ",
		"a: [\n": "document 1: ",
		"---\ns: &x " + strings.Repeat("a", 1<<20) + "\nl: [" + strings.Repeat("*x,", 20) + "]\n": "stand for more than 16 MiB",
		"{apiVersion: v1, kind: \"Foo\\n\\nNothing changes\", metadata: {name: a}}":               "kind \"Foo\\n\\nNothing changes\" of",
		"{apiVersion: v1, kind: Foo, metadata: {name: \"a\\n---\"}}":                              `name "/a\n---" has a character that cannot be printed`,
		"{apiVersion: \"v1\\n\", kind: Foo, metadata: {name: a}}":                                 "Kubernetes has no kind",
		"{apiVersion: \"a/b/v1\", kind: Foo, metadata: {name: a}}":                                "Kubernetes has no kind",
	} {
		_, err := kube.Decode([]byte(text))
		require.ErrorContains(t, err, want)
	}
}

func TestTransient(t *testing.T) {
	gr := schema.GroupResource{Resource: "things"}
	for name, err := range map[string]error{
		"refused":      &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)},
		"no route":     &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)},
		"unknown host": &net.DNSError{Err: "no such host", Name: "cluster"},
		"too many":     apierrors.NewTooManyRequests("slow down", 1),
		"no etcd":      apierrors.NewInternalError(errors.New("etcdserver: request timed out")),
		"unavailable":  apierrors.NewServiceUnavailable("starting"),
		"timeout":      apierrors.NewServerTimeout(gr, "get", 1),
		"lost":         errors.New("http2: client connection lost"),
	} {
		require.True(t, kube.Transient(err), name)
	}
	for name, err := range map[string]error{
		"nil":       nil,
		"cancelled": context.Canceled,
		"forbidden": apierrors.NewForbidden(gr, "a", nil),
		"not found": apierrors.NewNotFound(gr, "a"),
		"conflict":  apierrors.NewConflict(gr, "a", nil),
		"other":     errors.New("broken"),
	} {
		require.False(t, kube.Transient(err), name)
	}
}

func TestWaitForSaysWhatWasSeenLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		n := 0
		err := new(kube.Client).WaitFor(ctx, "the bridge to open", time.Second, func(context.Context) (bool, string, error) {
			n++
			if n > 10 {
				return false, "", apierrors.NewServiceUnavailable("the keeper is away")
			}
			return false, "a ship is passing", nil
		})
		require.ErrorIs(t, err, &fault.Fault{Code: kube.CodeWait})
		require.Equal(t, fault.Timeout, fault.ClassOf(err))
		require.EqualError(t, err, "waited 30s for the bridge to open; last seen: the keeper is away")
	})
}

// TestWhoWantsToKnowWhatIsWaitedFor is told of what is seen, and that it is over; not of a
// wait that is as short as a moment.
func TestWhoWantsToKnowWhatIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		start := time.Now()
		c := &kube.Client{OnWait: func(what string, since, until time.Time, seen string, over bool) {
			require.Equal(t, start, since)
			require.Equal(t, start.Add(30*time.Second), until)
			told = append(told, fmt.Sprintf("%s %s: %s %t", time.Since(start), what, seen, over))
		}}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		wait := func(looks int) error {
			n := 0
			return c.WaitFor(ctx, "the bridge", kube.Poll, func(context.Context) (bool, string, error) {
				n++
				return n > looks, fmt.Sprintf("ship %d", n/10), nil
			})
		}
		require.NoError(t, wait(12))
		require.Equal(t, []string{"1s the bridge: ship 0 false", "2.25s the bridge: ship 1 false", "3s the bridge: ship 1 true"}, told)
		told, start = nil, time.Now()
		ctx, cancel = context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		require.NoError(t, wait(3))
		require.Empty(t, told)
	})
}

func TestWaitForEndsWithErrorsThatStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		err := new(kube.Client).WaitFor(t.Context(), "x", time.Second, func(context.Context) (bool, string, error) {
			if n++; n < 3 {
				return false, "", apierrors.NewNotFound(schema.GroupResource{}, "x")
			}
			return false, "", errors.New("broken for good")
		})
		require.EqualError(t, err, "wait for x: broken for good")
	})
}

func TestWaitForHasALimitOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := new(kube.Client).WaitFor(t.Context(), "x", time.Second, func(context.Context) (bool, string, error) { return false, "no", nil })
		require.EqualError(t, err, "waited 10m0s for x; last seen: no")
	})
}

func TestWaitForCancelledIsNoTimeout(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	err := new(kube.Client).WaitFor(ctx, "x", time.Millisecond, func(context.Context) (bool, string, error) {
		cancel(errors.New("somebody pressed the button"))
		return false, "", nil
	})
	require.ErrorContains(t, err, "somebody pressed the button")
	require.NotErrorIs(t, err, &fault.Fault{Code: kube.CodeWait})
}

// server is an API server that knows ConfigMaps only, and that handle overrides.
func server(t *testing.T, handle func(w http.ResponseWriter, r *http.Request) bool) (*kube.Client, *httptest.Server) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if handle(w, r) {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		var answer any
		switch r.URL.Path {
		case "/api":
			answer = metav1.APIVersions{Versions: []string{"v1"}}
		case "/apis":
			answer = metav1.APIGroupList{}
		case "/api/v1":
			answer = metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{
				{Name: "configmaps", Namespaced: true, Kind: "ConfigMap", Verbs: metav1.Verbs{"get", "list", "patch", "delete"}},
			}}
		default:
			w.WriteHeader(http.StatusNotFound)
			answer = metav1.Status{Status: metav1.StatusFailure, Code: 404, Reason: metav1.StatusReasonNotFound}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(s.Close)
	c, err := kube.New(&rest.Config{Host: s.URL})
	require.NoError(t, err)
	return c, s
}

func TestApplyRidesOutAnOverloadedServer(t *testing.T) {
	var failures atomic.Int32
	c, _ := server(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPatch {
			return false
		}
		require.Equal(t, "slipway", r.URL.Query().Get("fieldManager"))
		require.Equal(t, "true", r.URL.Query().Get("force"))
		if failures.Add(1) <= 2 {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":500,"message":"etcdserver: request timed out"}`))
			return true
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n","resourceVersion":"7"}}`))
		return true
	})
	out, err := applyYAML(t.Context(), c, []byte(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`), kube.ApplyOptions{Namespace: "n"})
	require.NoError(t, err)
	require.Equal(t, []kube.Applied{{Kind: "ConfigMap", Namespace: "n", Name: "a", Change: kube.Created}}, out)
	require.Equal(t, int32(3), failures.Load())
	require.Equal(t, "1 objects: 1 created, 0 changed, 0 unchanged", kube.Count(out))
}

func TestRetryStopsWithItsContext(t *testing.T) {
	c, s := server(t, func(http.ResponseWriter, *http.Request) bool { return false })
	s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 600*time.Millisecond)
	defer cancel()
	_, err := c.List(ctx, schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "", "")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, &fault.Fault{Code: kube.CodeUnreachable})
	require.Equal(t, fault.Timeout, fault.ClassOf(err))
	require.Regexp(t, `^list configmaps: waited [0-9.]+m?s for `+s.URL+`: context deadline exceeded; last seen: `, err.Error())
	require.ErrorContains(t, err, "connection refused")

	cancelled, stop := context.WithCancelCause(t.Context())
	stop(errors.New("somebody pressed the button"))
	_, err = c.List(cancelled, schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "", "")
	require.ErrorContains(t, err, "somebody pressed the button")
	require.NotErrorIs(t, err, &fault.Fault{Code: kube.CodeUnreachable})
}

func TestRetryGivesUpAfterALongOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := kube.New(&rest.Config{Host: "https://cluster:6443"})
		require.NoError(t, err)
		n := 0
		err = c.Retry(t.Context(), "get it", func(context.Context) error {
			n++
			return syscall.ECONNREFUSED
		})
		require.ErrorIs(t, err, &fault.Fault{Code: kube.CodeUnreachable})
		require.ErrorContains(t, err, "get it: https://cluster:6443 did not answer for 2m")
		require.Greater(t, n, 50)

		start := time.Now()
		err = c.Retry(t.Context(), "get it", func(context.Context) error {
			if time.Since(start) < 30*time.Second {
				return syscall.ECONNREFUSED
			}
			return nil
		})
		require.NoError(t, err, "half a minute is nothing")
	})
}

func TestConnectNamesTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	_, err := kube.Connect(file, nil)
	require.ErrorIs(t, err, &fault.Fault{Code: kubeconfig.CodeInvalid})
	require.ErrorContains(t, err, file)
	f, _ := errors.AsType[*fault.Fault](err)
	require.Equal(t, "for an existing cluster, name a kubeconfig that works with kubectl; then run the same command again", f.Fix)
	require.NoError(t, os.WriteFile(file, []byte("{"), 0o600))
	_, err = kube.Connect(file, nil)
	require.ErrorContains(t, err, file)
}

// applyYAML applies the documents of manifest.
func applyYAML(ctx context.Context, c *kube.Client, manifest []byte, opts kube.ApplyOptions) ([]kube.Applied, error) {
	objs, err := kube.Decode(manifest)
	if err != nil {
		return nil, err
	}
	return c.Apply(ctx, objs, opts)
}
