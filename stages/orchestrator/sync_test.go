package orchestrator

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

const revision = "aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd"

// application is one as Argo CD leaves it, compared in the given second.
func application(name, health string, second int, children ...any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
		"metadata": map[string]any{"name": name, "namespace": "argocd"},
		"status": map[string]any{
			"sync":         map[string]any{"status": "Synced", "revision": revision},
			"health":       map[string]any{"status": health},
			"reconciledAt": "2026-01-02T03:04:" + strconv.Itoa(10+second) + "Z",
			"resources":    children,
		},
	}}
}

func child(name string) map[string]any {
	return map[string]any{"group": "argoproj.io", "kind": "Application", "name": name}
}

// cluster is a waiter on a fake API whose Argo CD answers a refresh at once:
// it compares the Application anew, when answer is set.
func cluster(t *testing.T, deadline time.Duration, screen io.Writer, answer bool, apps ...runtime.Object) *waiter {
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), listed(), apps...)
	second := 1
	client.PrependReactor("patch", "applications", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if !answer {
			return true, &unstructured.Unstructured{}, nil
		}
		p := a.(clienttesting.PatchAction)
		o, err := client.Tracker().Get(argo.Applications(), p.GetNamespace(), p.GetName())
		if err != nil {
			return true, nil, err
		}
		u := o.(*unstructured.Unstructured).DeepCopy()
		second++
		if err := unstructured.SetNestedField(u.Object, "2026-01-02T03:05:"+strconv.Itoa(10+second)+"Z", "status", "reconciledAt"); err != nil {
			return true, nil, err
		}
		return true, u, client.Tracker().Update(argo.Applications(), u, p.GetNamespace())
	})
	t.Helper()
	return &waiter{
		client:  &kube.Client{Kubernetes: kubefake.NewClientset(), Dynamic: client},
		env:     step.NewEnv("r", "orchestrator/sync", step.Dirs{State: t.TempDir()}, io.Discard, screen),
		tracker: &argo.Tracker{Namespace: "argocd", Root: RootApp, Revision: revision, Expected: []string{"db", "web"}, Deadline: deadline},
		pause:   time.Millisecond,
	}
}

func TestWaitEndsWhenAllWereComparedAnew(t *testing.T) {
	var screen bytes.Buffer
	w := cluster(t, time.Hour, &screen, true,
		application(RootApp, "Healthy", 0, child("db"), child("web")), application("web", "Healthy", 0), application("db", "Healthy", 0))
	out, err := w.wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, []contract.App{
		{Name: "db", Namespace: "argocd", Sync: "Synced", Health: "Healthy", Revision: revision},
		{Name: "web", Namespace: "argocd", Sync: "Synced", Health: "Healthy", Revision: revision},
	}, out.Apps)
	require.Contains(t, screen.String(), "orchestrator/sync: 0/2 apps; waiting for db")
	require.Contains(t, screen.String(), "orchestrator/sync: 2/2 apps (")
}

func TestWaitEndsAtTheDeadlineOfAnApp(t *testing.T) {
	w := cluster(t, 50*time.Millisecond, io.Discard, true,
		application(RootApp, "Progressing", 0, child("db"), child("web")), application("web", "Healthy", 0), application("db", "Degraded", 0))
	_, err := w.wait(t.Context())
	require.ErrorIs(t, err, &fault.Fault{Code: CodeFailed})
	require.ErrorContains(t, err, "app db: ")
	require.Equal(t, []string{"db Degraded, explained", "web Healthy"}, kept(t, w))
}

func TestWaitSaysThatAnotherRunHasReplacedTheRevision(t *testing.T) {
	w := cluster(t, 50*time.Millisecond, io.Discard, true,
		application(RootApp, "Healthy", 0, child("db"), child("web")), application("web", "Healthy", 0), application("db", "Healthy", 0))
	w.tracker.Revision = "bbbbbbbbbbcccccccccc"
	_, err := w.wait(t.Context())
	require.ErrorIs(t, err, &fault.Fault{Code: argo.CodeLate})
	require.ErrorContains(t, err, "app db: branch main is at aaaaaaaaaa now: another run or somebody's push has replaced bbbbbbbbbb")
}

func TestWaitBlamesArgoWhenNothingIsCompared(t *testing.T) {
	w := cluster(t, 50*time.Millisecond, io.Discard, false,
		application(RootApp, "Healthy", 0, child("db"), child("web")), application("web", "Healthy", 0), application("db", "Healthy", 0))
	_, err := w.wait(t.Context())
	require.ErrorIs(t, err, &fault.Fault{Code: argo.CodeStale})
	require.Equal(t, []string{"db Healthy", "web Healthy"}, kept(t, w))
}

// TestWaitTellsOfArgoCDsControllerWhateverItIsCalled: as Argo CD's chart calls it in a Helm
// release argo-cd, here.
func TestWaitTellsOfArgoCDsControllerWhateverItIsCalled(t *testing.T) {
	const name = "argo-cd-argocd-application-controller"
	failed := func(of, message string) *corev1.Event {
		return &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: of, Namespace: "argocd"}, Reason: "FailedCreate", Message: message,
			InvolvedObject: corev1.ObjectReference{Kind: "StatefulSet", Name: of}, LastTimestamp: metav1.Now(),
		}
	}
	w := newWaiter(failed(name, "exceeded quota: small, requested: pods=1, used: pods=9, limited: pods=9"), failed("somebody-elses", "no"))
	require.Equal(t, ": there is no pod with the label app.kubernetes.io/name=argocd-application-controller", w.controller(t.Context()))
	set := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": map[string]any{
		"name": name, "namespace": "argocd", "labels": map[string]any{"app.kubernetes.io/name": "argocd-application-controller"},
	}}}
	w.client.Dynamic = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), listed(), set)
	require.Contains(t, w.controller(t.Context()), "quota small is used up")
}

// kept is what the report will tell of the apps.
func kept(t *testing.T, w *waiter) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(w.env.StateDir, "runs/r/steps/orchestrator.sync", seenFile))
	require.NoError(t, err)
	var apps contract.Apps
	require.NoError(t, json.Unmarshal(b, &apps))
	var out []string
	for _, a := range apps.Apps {
		line := a.Name + " " + a.Health
		if a.Cause != "" {
			line += ", explained"
		}
		out = append(out, line)
	}
	return out
}

func TestWaitEndsAtOnceWhenTheTreeBringsOtherApps(t *testing.T) {
	w := cluster(t, time.Hour, io.Discard, true,
		application(RootApp, "Healthy", 0, child("db"), child("extra")), application("db", "Healthy", 0))
	_, err := w.wait(t.Context())
	require.ErrorIs(t, err, &fault.Fault{Code: CodeSet})
	require.ErrorContains(t, err, "brings no app web; it brings extra")
}

func TestWaitTellsWhatItSawWhenItIsStopped(t *testing.T) {
	w := cluster(t, time.Hour, io.Discard, true, application(RootApp, "Progressing", 0))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := w.wait(ctx)
	require.ErrorIs(t, err, &fault.Fault{Code: kube.CodeWait})
	require.Empty(t, kept(t, w))
	require.ErrorContains(t, err, "last seen: 0/2 apps; waiting for db: not there yet, web: not there yet")
}

// TestAStillWaitSaysWhatKeepsTheFirstApp: once nothing has happened for a while, and until
// something does.
func TestAStillWaitSaysWhatKeepsTheFirstApp(t *testing.T) {
	now, looks, cause := time.Now(), 0, "image x not found"
	s := stillness{since: now}
	look := func() string { looks++; return cause }
	at := func(after time.Duration, line string) string {
		return s.why(now.Add(after), argo.Verdict{Line: line, First: "web"}, look)
	}
	require.Empty(t, at(0, "0/2 apps"))
	require.Empty(t, at(stillEvery-time.Second, "0/2 apps"))
	require.Equal(t, ": image x not found", at(stillEvery, "0/2 apps"))
	require.Equal(t, ": image x not found", at(stillEvery+time.Second, "0/2 apps"))
	require.Equal(t, 1, looks, "not each time")
	cause = "container web ended"
	require.Equal(t, ": container web ended", at(2*stillEvery, "0/2 apps"))
	require.Empty(t, at(2*stillEvery+time.Second, "1/2 apps"), "something has happened")
	require.Empty(t, s.why(now.Add(9*stillEvery), argo.Verdict{Line: "1/2 apps"}, look), "no app is there")
	require.Equal(t, 2, looks)
}
