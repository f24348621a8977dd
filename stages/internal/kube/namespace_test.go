package kube_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
)

// TestPlace: what has namespaces and names none gets one, what has none loses it, and a
// kind that is only about to be defined is as its definition says.
func TestPlace(t *testing.T) {
	api, c := onFake(t)
	api.Define("example.com/v1", "Widget", true)
	api.Define("example.com/v1", "Fleet", false)
	objs := objects(t, `
{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: theirs}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: c, namespace: odd}}
---
{apiVersion: example.com/v1, kind: Widget, metadata: {name: d}}
---
{apiVersion: example.com/v1, kind: Fleet, metadata: {name: e}}
---
{apiVersion: new.example.com/v1, kind: Part, metadata: {name: f}}
---
{apiVersion: new.example.com/v1, kind: Whole, metadata: {name: g}}
---
{apiVersion: unknown.example.com/v1, kind: Thing, metadata: {name: h}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: parts.new.example.com}
spec: {group: new.example.com, scope: Namespaced, names: {kind: Part}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: wholes.new.example.com}
spec: {group: new.example.com, scope: Cluster, names: {kind: Whole}}
`)
	require.NoError(t, c.SetNamespace(t.Context(), objs, "ns"))
	got := map[string]string{}
	for _, o := range objs {
		got[o.GetName()] = o.GetNamespace()
	}
	require.Equal(t, map[string]string{
		"a": "ns", "b": "theirs", "c": "", "d": "ns", "e": "", "f": "ns", "g": "", "h": "ns",
		"parts.new.example.com": "", "wholes.new.example.com": "",
	}, got)

	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	t.Cleanup(refusing.Close)
	away, err := kube.New(&rest.Config{Host: refusing.URL})
	require.NoError(t, err)
	require.Error(t, away.SetNamespace(t.Context(), objs, "ns"), "it cannot be known")
}

func TestTheEndOfAJob(t *testing.T) {
	of := func(kind batchv1.JobConditionType, status corev1.ConditionStatus, reason, message string) *batchv1.Job {
		return &batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{
			{Type: batchv1.JobSuspended, Status: corev1.ConditionFalse}, {Type: kind, Status: status, Reason: reason, Message: message},
		}}}
	}
	for _, c := range []struct {
		job    *batchv1.Job
		done   bool
		failed string
	}{
		{&batchv1.Job{}, false, ""},
		{of(batchv1.JobComplete, corev1.ConditionFalse, "", ""), false, ""},
		{of(batchv1.JobSuccessCriteriaMet, corev1.ConditionTrue, "", ""), false, ""},
		{of(batchv1.JobComplete, corev1.ConditionTrue, "", ""), true, ""},
		{of(batchv1.JobFailed, corev1.ConditionTrue, "DeadlineExceeded", "it was too slow"), false, "DeadlineExceeded it was too slow"},
		{of(batchv1.JobFailed, corev1.ConditionTrue, "", ""), false, "it failed"},
	} {
		done, failed := readiness.JobEnd(c.job)
		require.Equal(t, c.done, done)
		require.Equal(t, c.failed, failed)
	}
}
