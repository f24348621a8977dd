package report_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
)

// hostile is what an image's name, a pod's message or a log may hold.
const hostile = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\"> \x1b[31mred\x1b[0m \x1b]8;;https://evil.example\x07link\x1b]8;;\x07 \u202egnp.exe | `code` ]]> @team {{.}}"

func at(seconds float64) time.Time {
	return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))
}

func key(stage, name string) pipeline.Key { return pipeline.Key{Stage: stage, Name: name} }

// did is a step of a sample: what it needs, and from when to when it ran.
type did struct {
	id, needs string
	from, to  float64
	status    pipeline.Status
}

// graph is an install as it is wired, with the times of a real one.
var graph = []did{
	{"infrastructure/preflight", "", 0.2, 1.9, pipeline.Succeeded},
	{"infrastructure/terraform", "infrastructure/preflight", 1.9, 5.4, pipeline.Succeeded},
	{"infrastructure/node", "infrastructure/preflight", 1.9, 9.8, pipeline.Succeeded},
	{"infrastructure/cluster", "infrastructure/terraform infrastructure/node", 9.8, 12.1, pipeline.Succeeded},
	{"infrastructure/local-addons", "infrastructure/cluster", 12.1, 16.7, pipeline.Succeeded},
	{"infrastructure/storage", "infrastructure/cluster infrastructure/local-addons", 16.7, 25.3, pipeline.Succeeded},
	{"infrastructure/loadbalancer", "infrastructure/cluster infrastructure/local-addons", 16.7, 21.2, pipeline.Succeeded},
	{"preorchestrator/namespaces", "infrastructure/cluster", 12.1, 13.4, pipeline.Succeeded},
	{"preorchestrator/secrets", "preorchestrator/namespaces", 13.4, 14.6, pipeline.Succeeded},
	{"preorchestrator/tls", "preorchestrator/namespaces", 13.4, 14.9, pipeline.Succeeded},
	{"preorchestrator/gitea", "infrastructure/cluster infrastructure/local-addons preorchestrator/secrets preorchestrator/tls", 16.7, 30.2, pipeline.Succeeded},
	{"preorchestrator/argocd", "infrastructure/cluster infrastructure/local-addons preorchestrator/secrets preorchestrator/tls", 16.7, 33.8, pipeline.Succeeded},
	{"preorchestrator/git", "preorchestrator/gitea", 30.2, 32.1, pipeline.Succeeded},
	{"preorchestrator/reconcile", "preorchestrator/git preorchestrator/argocd", 33.8, 37.4, pipeline.Succeeded},
	{"orchestrator/publish", "preorchestrator/gitea", 30.2, 32.9, pipeline.Succeeded},
	{"orchestrator/sync", "orchestrator/publish preorchestrator/reconcile infrastructure/storage infrastructure/loadbalancer", 37.4, 49.5, pipeline.Succeeded},
	{"postorchestrator/access", "orchestrator/sync", 49.5, 50.9, pipeline.Succeeded},
}

// plan returns the graph, and what its steps did.
func plan(steps []did) (nodes []pipeline.Node, results []pipeline.Result) {
	named := func(id string) pipeline.Key {
		stage, name, _ := strings.Cut(id, "/")
		return key(stage, name)
	}
	for _, s := range steps {
		n := pipeline.Node{Key: named(s.id)}
		for _, need := range strings.Fields(s.needs) {
			n.Needs = append(n.Needs, named(need))
		}
		nodes = append(nodes, n)
		r := pipeline.Result{Key: n.Key, Status: s.status, Finished: at(s.to)}
		if s.from > 0 {
			r.Started = at(s.from)
			r.Detail.Log = logOf(s.id)
		}
		results = append(results, r)
	}
	return nodes, results
}

func logOf(id string) string { return "steps/" + strings.Replace(id, "/", ".", 1) + "/log.txt" }

func startedRun(workflow string, nodes []pipeline.Node) *report.Run {
	r := &report.Run{
		ID: "20260102-030405-a1b2c3", Workflow: workflow, Deployment: "blue", Provider: "local", Slipway: "v0.4.0", Lock: "sha256:" + strings.Repeat("1a", 32), Tools: map[string]string{"terraform": "sha256:" + strings.Repeat("0c", 32)},
		Platform: report.Platform{Name: "reference", Version: "1.0.0", Digest: "sha256:" + strings.Repeat("5f", 32)},
		Config:   "sha256:" + strings.Repeat("a7", 32), Started: at(0), Outcome: report.Running,
	}
	r.Plan(nodes)
	return r
}

const revision = "0f3c5a9be8812a7d44c0d7a1f2b6c3d4e5f60718"

// succeeded returns the record of an install that went well.
func succeeded() *report.Run {
	nodes, results := plan(graph)
	r := startedRun("install", nodes)
	results[2].Detail.Log = "" // the node is a service: it has no log there
	results[1].Status, results[1].Detail.Reused = pipeline.Reused, true
	r.Finish(results, nil, at(51.2))
	for i, name := range []string{"base", "database", "guestbook"} {
		r.Apps = append(r.Apps, report.App{Name: name, Namespace: "argocd", Wave: 10 * (i + 1), Sync: "Synced", Health: "Healthy", Revision: revision})
	}
	r.Links = []report.Link{{Name: "Gitea", URL: "https://gitea.slipway.test"}, {Name: "Guestbook", URL: "https://guestbook.slipway.test"}}
	r.Commands = []string{"dagger call kubeconfig export --path kubeconfig", "dagger call cluster up"}
	return r
}

// failed returns the record of an install that failed in sync, at its second attempt,
// with hostile text wherever text of others gets into a record.
func failed() *report.Run {
	steps := append([]did{}, graph...)
	steps[15].to, steps[15].status = 97.9, pipeline.Failed
	steps[16] = did{steps[16].id, steps[16].needs, 0, 97.9, pipeline.Blocked}
	nodes, results := plan(steps)
	f := &fault.Fault{
		Code: "SYN-003", Class: fault.Step, Op: "bring the app guestbook to 0f3c5a9be8 within 45s",
		Fix: "correct the app, then run the same command again; to look at it: slipway toolchain -- kubectl get application -n argocd guestbook -o yaml",
		Log: logOf("orchestrator/sync"),
		Err: errors.New("app guestbook: the image slipway.local/guestbook:missing of container web cannot be pulled: not found (sync Synced, health Progressing)\npod guestbook-7c9d-x2x4z: ImagePullBackOff\n" + hostile),
	}
	results[15].Err = f
	results[16].Err = &pipeline.BlockedError{By: []pipeline.Key{results[15].Key}}
	r := startedRun("install", nodes)
	warned := &fault.Fault{
		Code: "HOK-001", Class: fault.Step, Op: "run the hook announce after orchestrator/publish", Log: "hooks/announce.txt",
		Fix: "correct what its output says, then run the same command again", Err: errors.New("exit status 1: the chat does not answer"),
	}
	results = append(results,
		pipeline.Result{Key: key(report.HooksStage, "backup"), Status: pipeline.Succeeded, Started: at(1.9), Finished: at(2.6), Detail: pipeline.Detail{Log: "hooks/backup.txt"}},
		pipeline.Result{Key: key(report.HooksStage, "announce"), Status: pipeline.Warned, Started: at(98), Finished: at(98.3), Err: warned, Detail: pipeline.Detail{Log: "hooks/announce.txt"}},
	)
	r.Finish(results, errors.Join(&pipeline.StepError{Stage: "orchestrator", Step: "sync", Err: f}), at(98.4))
	r.Apps = []report.App{
		{Name: "base", Namespace: "argocd", Wave: 10, Sync: "Synced", Health: "Healthy", Revision: revision},
		{Name: "database", Namespace: "argocd", Wave: 20, Sync: "Synced", Health: "Healthy", Revision: revision},
		{Name: "guestbook", Namespace: "argocd", Wave: 30, Sync: "Synced", Health: "Degraded", Cause: "web: ImagePullBackOff " + hostile},
	}
	r.Reproduce = []string{"slipway save --run 20260102-030405-a1b2c3 --name blue --out run.tar.zst", "slipway reproduce --package run.tar.zst"}
	r.Links = []report.Link{{Name: "Odd", URL: "javascript:document.title='owned'"}}
	return r
}

// directory returns a run's directory as the state volume holds it.
func directory(t *testing.T, r *report.Run) string {
	t.Helper()
	dir := t.TempDir()
	b, err := r.Encode()
	require.NoError(t, err)
	put(t, dir, "report.json", string(b))
	put(t, dir, "config.yaml", "version: 1\n")
	for i, s := range r.Steps {
		if s.Log == "" {
			continue
		}
		var log strings.Builder
		begin := s.Started.Format(time.RFC3339)
		fmt.Fprintf(&log, "time=%s level=INFO msg=\"step started\" run=%s step=%s timeout=10m0s\n", begin, r.ID, s.ID())
		fmt.Fprintf(&log, "slipway: %s: \x1b[1mlooking\x1b[0m (0s)\r\n", s.ID())
		switch {
		case s.Status == pipeline.Failed:
			for n := range 60 {
				fmt.Fprintf(&log, "slipway: %s: 2 of 3 apps are well; guestbook: Synced, Progressing (%ds)\n", s.ID(), n)
			}
			fmt.Fprintf(&log, "%s\ntime=%s level=ERROR msg=\"step failed\" code=%s\n", hostile, begin, s.Fault.Code)
		case i == 4:
			fmt.Fprintf(&log, "applied\tconfigmap/kube-system/coredns: unchanged\n")
			fmt.Fprintf(&log, "time=%s level=WARN msg=\"the storage class was there already\"\n", begin)
		}
		if s.Status.OK() {
			fmt.Fprintf(&log, "time=%s level=INFO msg=\"step succeeded\" step=%s\n", begin, s.ID())
		}
		put(t, dir, s.Log, log.String())
	}
	return dir
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
}
