package argo_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/stages/internal/argo"
)

// read decodes an Application whose metadata, spec and status are given as JSON.
func read(t *testing.T, metadata, spec, status string) argo.Application {
	t.Helper()
	var o map[string]any
	doc := `{"apiVersion":"argoproj.io/v1alpha1","kind":"Application","metadata":` + metadata + `,"spec":` + spec + `,"status":` + status + `}`
	require.NoError(t, json.Unmarshal([]byte(doc), &o))
	return argo.Read(&unstructured.Unstructured{Object: o})
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
	require.False(t, a.Outdated, "an empty value counts as absent")
	require.Empty(t, a.Operation.Failed)
	require.Empty(t, a.Operation.Running)
	require.Empty(t, a.Waiting(rev))
	require.Equal(t, "at revision aaaaaaaaaa", a.Waiting(old))
	require.False(t, a.Stuck(rev))
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
	tests := []struct {
		name, status, want string
		failed             bool
	}{
		{
			"the desired state cannot be read",
			`{"conditions":[{"type":"ComparisonError","message":"Failed to load target state: rpc error: code = Unknown desc = failed to list refs: authentication required"}],` + deployment + `}`,
			"failed to list refs: authentication required", true,
		},
		{
			"an object was refused",
			`{"operationState":{"phase":"Failed","message":"one or more objects failed","syncResult":{"resources":[{"kind":"Service","name":"web","status":"SyncFailed","message":"spec.ports: Required value"}]}}}`,
			"Service web was not applied: spec.ports: Required value", true,
		},
		{
			"a hook failed, and an object before it",
			`{"operationState":{"phase":"Failed","syncResult":{"resources":[
				{"kind":"Job","name":"seed","hookType":"PostSync","hookPhase":"Failed","message":"Job has reached the specified backoff limit"},
				{"kind":"Service","name":"web","status":"SyncFailed","message":"refused"}]}}}`,
			"Service web was not applied: refused", true,
		},
		{
			"a hook failed",
			`{"operationState":{"phase":"Failed","syncResult":{"resources":[{"kind":"Job","name":"seed","hookType":"PostSync","hookPhase":"Failed","message":"Job has reached the specified backoff limit"}]}}}`,
			"hook Job seed failed: Job has reached the specified backoff limit", true,
		},
		{
			"the sync failed as a whole",
			`{"operationState":{"phase":"Error","message":"one or more synchronization tasks are not valid (retried 5 times)."}}`,
			"sync error: one or more synchronization tasks are not valid (retried 5 times).", true,
		},
		{"an object is not healthy", `{` + deployment + `}`, "Deployment web is Progressing: Waiting for rollout to finish: 0 of 1", false},
		{
			"a hook runs",
			`{"operationState":{"phase":"Running","syncResult":{"resources":[{"kind":"Job","name":"gate","hookType":"PostSync","hookPhase":"Running","message":"active"}]}}}`,
			"hook Job gate has not finished: active", false,
		},
		{"something is waited for", `{"operationState":{"phase":"Running","message":"waiting for healthy state of argoproj.io/Application/db"}}`, "waiting for healthy state of argoproj.io/Application/db", false},
		{"an object differs", `{"resources":[{"kind":"Secret","name":"s","status":"OutOfSync"}]}`, "Secret s differs from the branch", false},
		{"only its health is known", `{"health":{"status":"Degraded"}}`, "sync not known, health Degraded", true},
		{"nothing is known", `{}`, "sync not known, health not known", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := read(t, meta, `{}`, tt.status)
			require.Equal(t, tt.want, a.Explain())
			require.Equal(t, tt.failed, a.Failed())
		})
	}
}

func TestProblemsKnowSinceWhen(t *testing.T) {
	a := read(t, meta, `{"destination":{"namespace":"apps"}}`, `{
		"conditions":[{"type":"ComparisonError","message":"x","lastTransitionTime":"2026-01-02T03:04:05Z"},{"type":"InvalidSpecError","message":"y","lastTransitionTime":"nonsense"}],
		"operationState":{"phase":"Running","message":"waiting","startedAt":"2026-01-02T03:05:00Z"}}`)
	p := a.Problems()
	require.Len(t, p, 3)
	require.Equal(t, argo.Problem{Kind: argo.Unreadable, Text: "x", Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Failed: true}, p[0])
	require.Zero(t, p[1].Since)
	require.Equal(t, argo.Problem{Kind: argo.Waits, Text: "waiting", Since: time.Date(2026, 1, 2, 3, 5, 0, 0, time.UTC)}, p[2])
}

func TestAnAppThatIsDoneHasNoProblems(t *testing.T) {
	a := read(t, meta, `{}`, `{"sync":{"status":"Synced","revision":"`+rev+`"},"health":{"status":"Healthy"}}`)
	require.Empty(t, a.Problems())
	require.False(t, a.Failed())
	require.Equal(t, "sync Synced, health Healthy", a.Explain())
}

func TestOwnsItsResourcesAndHooks(t *testing.T) {
	a := read(t, meta, `{"destination":{"namespace":"apps"}}`, `{
		"operationState":{"phase":"Running","syncResult":{"resources":[{"kind":"Job","namespace":"apps","name":"gate","hookType":"PostSync","hookPhase":"Running"}]}},
		"resources":[{"group":"apps","kind":"StatefulSet","name":"db","health":{"status":"Degraded"}}]}`)
	require.True(t, a.Owns("Job", "apps", "gate"))
	require.True(t, a.Owns("StatefulSet", "apps", "db"), "in the Application's own destination")
	require.False(t, a.Owns("StatefulSet", "other", "db"))
	require.False(t, a.Owns("Deployment", "apps", "db"))
}
