package conductor

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/stages/contract"
)

func failedAt(stage, name string, err error) pipeline.Result {
	return pipeline.Result{Key: pipeline.Key{Stage: stage, Name: name}, Status: pipeline.Failed, Err: err}
}

func TestADiagnosisIsAboutTheStepsWithACluster(t *testing.T) {
	g := sample(t, contract.Inputs{
		Release:     &platform.Release{Namespaces: []platform.Namespace{{Name: "gitea"}, {Name: "apps"}}, GitOps: &platform.GitOps{Engine: "argocd"}, Components: []platform.Component{{Name: "argocd", Namespace: "cd"}}},
		Environment: contract.Environment{Cluster: providers.Cluster{Local: &providers.LocalCluster{}}},
	})
	in := diagnosisInput(g, []pipeline.Result{
		failedAt("infrastructure", "terraform", errors.New("no disk")),
		failedAt("orchestrator", "sync", &fault.Fault{Code: "ORC-005", Op: "bring the app web up", Err: errors.New("app web: late")}),
		failedAt("preorchestrator", "gitea", errors.New("no code")),
		{Key: pipeline.Key{Stage: "preorchestrator", Name: "argocd"}, Status: pipeline.Blocked},
	})
	require.Equal(t, []contract.FailedStep{
		{Stage: "orchestrator", Step: "sync", Code: "ORC-005", Error: "bring the app web up: app web: late"},
		{Stage: "preorchestrator", Step: "gitea", Error: "no code"},
	}, in.Failed)
	require.Equal(t, []string{"gitea", "apps"}, in.Namespaces)
	require.Equal(t, "cd", in.Argo)
	require.Equal(t, "https://cluster:6444/readyz", in.Health)

	require.Empty(t, diagnosisInput(sample(t, contract.Inputs{}), nil).Health, "nobody but Slipway's node has that")
}

func TestWithoutAClusterThereIsNoDiagnosis(t *testing.T) {
	d, err := diagnose(t.Context(), nil, sample(t, contract.Inputs{}), "install", []pipeline.Result{ // with nothing that could run a step
		failedAt("infrastructure", "node", errors.New("no")), failedAt("infrastructure", "preflight", errors.New("no")),
	})
	require.NoError(t, err)
	require.Nil(t, d)
}

func TestADiagnosisAsText(t *testing.T) {
	at := time.Date(2026, 1, 2, 14, 10, 0, 0, time.UTC)
	d := &contract.Diagnosis{
		Cause: "app web: container web keeps ending with exit code 1, pod web-0, since 14:02 UTC", Known: true, At: at,
		Findings: []contract.Finding{
			{Kind: "crash", App: "web", Object: "pod apps/web-0", Failed: true, Count: 3, Log: []string{"starting", "panic: no"},
				Sentence: "app web: container web keeps ending with exit code 1, pod web-0, since 14:02 UTC"},
			{Kind: "node", Object: "node n2", Failed: true, Sentence: "node n2 is not ready"},
		},
		Apps:   []contract.App{{Name: "web", Health: "Degraded", Cause: "container web keeps ending"}},
		Events: []contract.Event{{Object: "pod apps/web-0", Reason: "BackOff", Message: "Back-off restarting", Count: 22, Last: at}},
		Gaps:   []string{"jobs: no answer in time"},
	}
	var b strings.Builder
	require.NoError(t, d.Text(&b))
	require.Equal(t, `cause: app web: container web keeps ending with exit code 1, pod web-0, since 14:02 UTC

findings:
  crash: app web: container web keeps ending with exit code 1, pod web-0, since 14:02 UTC (3 of them)
    | starting
    | panic: no
  node: node n2 is not ready

apps:
  web: sync not known, health Degraded: container web keeps ending

warnings, newest first:
  14:10:00 pod apps/web-0 BackOff (22): Back-off restarting

not looked at:
  jobs: no answer in time
`, b.String())
	require.ErrorContains(t, d.Text(full{}), "full")

	text, err := json.Marshal(d)
	require.NoError(t, err)
	var back contract.Diagnosis
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, *d, back)
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestWhatWasFoundIsInTheRecord(t *testing.T) {
	sync := failedAt("orchestrator", "sync", errors.New("late"))
	d := &contract.Diagnosis{Cause: "app web: image x not found", Known: true, Findings: []contract.Finding{{App: "web", Sentence: "app web: image x not found"}}}

	var r report.Run
	note(&r, []pipeline.Result{sync}, d, nil)
	require.Len(t, r.Diagnosis, 1)
	require.Equal(t, "app web: image x not found", r.Diagnosis[0].Summary)
	require.Equal(t, "web", r.Diagnosis[0].App)
	require.Equal(t, "orchestrator/sync", r.Diagnosis[0].Step)

	r = report.Run{}
	note(&r, []pipeline.Result{sync, failedAt("preorchestrator", "gitea", nil)}, d, nil)
	require.Empty(t, r.Diagnosis[0].Step, "it may be about either")

	r = report.Run{}
	note(&r, []pipeline.Result{sync}, &contract.Diagnosis{Cause: "no cause was found"}, nil)
	note(&r, []pipeline.Result{sync}, nil, nil)
	require.Empty(t, r.Diagnosis)

	note(&r, []pipeline.Result{sync}, nil, errors.New("the engine is away"))
	require.Contains(t, r.Warnings[0].Summary, "the engine is away")
}
