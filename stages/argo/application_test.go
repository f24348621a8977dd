package argo_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/stages/argo"
)

// read decodes an Application whose metadata, spec and status are given as JSON.
func read(t *testing.T, metadata, spec, status string) argo.Application {
	t.Helper()
	var o map[string]any
	doc := `{"apiVersion":"argoproj.io/v1alpha1","kind":"Application","metadata":` + metadata + `,"spec":` + spec + `,"status":` + status + `}`
	require.NoError(t, json.Unmarshal([]byte(doc), &o))
	a, err := argo.Read(&unstructured.Unstructured{Object: o})
	require.NoError(t, err)
	return a
}

const meta = `{"name":"web","namespace":"argocd","annotations":{"argocd.argoproj.io/sync-wave":"2"}}`

func TestReadsWhatMatters(t *testing.T) {
	a := read(t, meta, `{"destination":{"namespace":"apps"},"source":{"repoURL":"u","path":"p","helm":{"values":""}}}`, `{
		"sync":{"status":"Synced","revision":"`+rev+`","comparedTo":{"source":{"repoURL":"u","path":"p"}}},
		"health":{"status":"Healthy"},"reconciledAt":"2026-01-02T03:04:05Z",
		"operationState":{"phase":"Succeeded","startedAt":"2026-01-02T03:04:00Z","operation":{"sync":{"revision":"`+rev+`","source":{"repoURL":"u","path":"p"}}},
			"syncResult":{"revision":"`+rev+`","resources":[{"kind":"Job","namespace":"apps","name":"seed","hookType":"PostSync","hookPhase":"Succeeded","status":"Synced"}]}},
		"resources":[{"group":"apps","kind":"Deployment","namespace":"apps","name":"web","status":"Synced","health":{"status":"Healthy"}}]}`)
	require.Equal(t, 2, a.Wave)
	require.Equal(t, "apps", a.Destination)
	require.False(t, a.Outdated, "an empty value is as good as none")
	require.Empty(t, a.Operation.Failed)
	require.Empty(t, a.Operation.Running)
	require.Empty(t, a.Waiting(rev))
	require.Equal(t, "at revision aaaaaaaaaa", a.Waiting(old))
	require.False(t, a.Stuck(rev))
	require.Empty(t, a.Workloads())
}

func TestAnAppThatWasComparedWithAnOlderSpecWaits(t *testing.T) {
	a := read(t, meta, `{"source":{"repoURL":"u","path":"p","helm":{"valuesObject":{"image":"new"}}}}`, `{
		"sync":{"status":"Synced","revision":"`+rev+`","comparedTo":{"source":{"repoURL":"u","path":"p","helm":{"valuesObject":{"image":"old"}}}}},
		"health":{"status":"Healthy"},
		"operationState":{"phase":"Running","operation":{"sync":{"revision":"`+rev+`","source":{"repoURL":"u","path":"p","helm":{"valuesObject":{"image":"old"}}}}}}}`)
	require.True(t, a.Outdated)
	require.Equal(t, "changed, not compared yet", a.Waiting(rev))
	require.True(t, a.Stuck(rev))
}

func TestWaiting(t *testing.T) {
	tests := map[string]string{
		`{}`: "not reconciled yet",
		`{"sync":{"status":"OutOfSync","revision":"` + rev + `"},"health":{"status":"Missing"}}`:                                            "OutOfSync",
		`{"sync":{"status":"Synced","revision":"` + rev + `"},"health":{"status":"Progressing"}}`:                                           "Progressing",
		`{"sync":{"status":"Synced","revision":"` + rev + `"},"health":{"status":"Healthy"},"operationState":{"phase":"Running"}}`:          "syncing",
		`{"sync":{"status":"Synced","revision":"` + rev + `"},"health":{"status":"Healthy"},"operationState":{"phase":"Failed"}}`:           "last sync failed",
		`{"sync":{"status":"Synced","revision":"` + rev + `"},"health":{"status":"Healthy"},"operationState":{"phase":"Succeeded"}}`:        "",
		`{"sync":{"status":"Synced","revision":"` + rev + `"},"health":{"status":"Healthy"}}`:                                               "",
		`{"sync":{"status":"Unknown","revision":""},"health":{"status":"Healthy"},"conditions":[{"type":"ComparisonError","message":"x"}]}`: "at revision none",
	}
	for status, want := range tests {
		require.Equal(t, want, read(t, meta, `{}`, status).Waiting(rev), status)
	}
	gone := read(t, `{"name":"web","deletionTimestamp":"2026-01-02T03:04:05Z"}`, `{}`, `{}`)
	require.Equal(t, "being deleted", gone.Waiting(rev))
}

func TestAWaveThatIsNoNumberIsZero(t *testing.T) {
	require.Zero(t, read(t, `{"name":"web","annotations":{"argocd.argoproj.io/sync-wave":"first"}}`, `{}`, `{}`).Wave)
}

func TestExplain(t *testing.T) {
	const deployment = `"resources":[{"group":"apps","kind":"Deployment","namespace":"apps","name":"web","status":"Synced","health":{"status":"Progressing","message":"Waiting for rollout to finish:\n 0 of 1"}}]`
	tests := []struct{ name, status, pods, want string }{
		{
			"the desired state cannot be read",
			`{"conditions":[{"type":"ComparisonError","message":"Failed to load target state: rpc error: code = Unknown desc = failed to list refs: authentication required"}],` + deployment + `}`,
			"anything", "failed to list refs: authentication required",
		},
		{
			"pods know best",
			`{"conditions":[{"type":"SyncError","message":"gave up"}],` + deployment + `}`,
			"image slipway.local/nope@sha256:00 not found (pod web-0, ErrImagePull)",
			"image slipway.local/nope@sha256:00 not found (pod web-0, ErrImagePull)",
		},
		{
			"an object was refused",
			`{"operationState":{"phase":"Failed","message":"one or more objects failed","syncResult":{"resources":[{"kind":"Service","name":"web","status":"SyncFailed","message":"spec.ports: Required value"}]}}}`,
			"", "Service web was not applied: spec.ports: Required value",
		},
		{
			"the sync failed as a whole",
			`{"operationState":{"phase":"Error","message":"one or more synchronization tasks are not valid (retried 5 times)."}}`,
			"", "sync error: one or more synchronization tasks are not valid (retried 5 times).",
		},
		{"an object is not healthy", `{` + deployment + `}`, "", "Deployment web is Progressing: Waiting for rollout to finish: 0 of 1"},
		{
			"a hook runs",
			`{"operationState":{"phase":"Running","syncResult":{"resources":[{"kind":"Job","name":"gate","hookType":"PostSync","hookPhase":"Running","message":"active"}]}}}`,
			"", "hook Job gate has not finished: active",
		},
		{"something is waited for", `{"operationState":{"phase":"Running","message":"waiting for healthy state of argoproj.io/Application/db"}}`, "", "waiting for healthy state of argoproj.io/Application/db"},
		{"an object differs", `{"resources":[{"kind":"Secret","name":"s","status":"OutOfSync"}]}`, "", "Secret s differs from the branch"},
		{"nothing is known", `{}`, "", "sync not known, health not known"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, read(t, meta, `{}`, tt.status).Explain(tt.pods))
		})
	}
}

func TestWorkloadsAreThoseThatAreNotWell(t *testing.T) {
	a := read(t, meta, `{"destination":{"namespace":"apps"}}`, `{
		"operationState":{"phase":"Running","syncResult":{"resources":[{"kind":"Job","namespace":"apps","name":"gate","hookType":"PostSync","hookPhase":"Running"}]}},
		"resources":[
			{"group":"apps","kind":"Deployment","namespace":"apps","name":"ok","health":{"status":"Healthy"}},
			{"group":"apps","kind":"StatefulSet","name":"db","health":{"status":"Degraded"}},
			{"kind":"Service","namespace":"apps","name":"web","health":{"status":"Progressing"}}]}`)
	require.Equal(t, []argo.Resource{
		{Kind: "Job", Namespace: "apps", Name: "gate"},
		{Group: "apps", Kind: "StatefulSet", Namespace: "apps", Name: "db", Health: "Degraded"},
	}, a.Workloads())
}
