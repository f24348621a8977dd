package argo_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/internal/argo"
)

const (
	rev = "aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd"
	old = "0000000000bbbbbbbbbbccccccccccdddddddddd"
)

func start() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// app returns an Application that is Synced and Healthy at rev, compared at the given second.
func app(name string, wave int, reconciled string) argo.Application {
	return argo.Application{
		Name: name, Namespace: "argocd", Wave: wave, Sync: "Synced", Health: "Healthy",
		Revision: rev, Reconciled: reconciled,
		Operation: argo.Operation{Phase: "Succeeded", Revision: rev, Started: "s1"},
	}
}

func rootOf(reconciled string, children ...string) argo.Application {
	r := app("root", 0, reconciled)
	for _, c := range children {
		r.Resources = append(r.Resources, argo.Resource{Group: "argoproj.io", Kind: "Application", Namespace: "argocd", Name: c})
	}
	return r
}

func tracker(expected ...string) *argo.Tracker {
	return &argo.Tracker{Namespace: "argocd", Root: "root", Revision: rev, Expected: expected, Deadline: time.Minute}
}

func TestAStatusFromBeforeIsNotBelieved(t *testing.T) {
	tr := tracker("db", "web")
	v := tr.Update(start(), []argo.Application{rootOf("t1", "db", "web"), app("db", 0, "t1"), app("web", 1, "t1")})
	require.False(t, v.Done, "nothing was compared since the tracker started")
	require.Len(t, v.Actions, 3)
	for _, a := range v.Actions {
		require.JSONEq(t, `{"metadata":{"annotations":{"argocd.argoproj.io/refresh":"normal"}}}`, string(a.Patch))
	}

	refreshing := app("web", 1, "t1")
	refreshing.Refreshing = true
	v = tr.Update(start().Add(time.Second), []argo.Application{rootOf("t2", "db", "web"), app("db", 0, "t2"), refreshing})
	require.False(t, v.Done)
	require.Empty(t, v.Actions, "a refresh is not requested again immediately")
	require.Contains(t, v.Line, "1/2 apps; waiting for web")

	v = tr.Update(start().Add(2*time.Second), []argo.Application{rootOf("t2", "db", "web"), app("db", 0, "t2"), app("web", 1, "t2")})
	require.True(t, v.Done, v.Line)
	require.Equal(t, "2/2 apps", v.Line)
}

func TestARefreshWithinTheSameSecondIsAskedForAgain(t *testing.T) {
	tr := tracker("db")
	all := []argo.Application{rootOf("t1", "db"), app("db", 0, "t1")}
	require.Len(t, tr.Update(start(), all).Actions, 2)
	require.Empty(t, tr.Update(start().Add(750*time.Millisecond), all).Actions)
	require.Len(t, tr.Update(start().Add(time.Second), all).Actions, 2)
	require.Empty(t, tr.Update(start().Add(1500*time.Millisecond), all).Actions)
}

func TestZeroAppsAreNeverASuccess(t *testing.T) {
	tr := tracker()
	tr.Update(start(), []argo.Application{rootOf("t1")})
	v := tr.Update(start().Add(time.Second), []argo.Application{rootOf("t2")})
	require.False(t, v.Done)
}

func TestTheChildrenMustBeExactlyTheExpectedOnes(t *testing.T) {
	tr := tracker("db", "web")
	tr.Update(start(), nil)
	v := tr.Update(start().Add(time.Second), []argo.Application{rootOf("t2", "db", "extra"), app("db", 0, "t2"), app("extra", 0, "t2")})
	require.False(t, v.Done)
	require.Equal(t, []string{"web"}, v.Missing)
	require.Equal(t, []string{"extra"}, v.Unexpected)
}

func TestAnAppOfAnotherUserIsNoneOfOurs(t *testing.T) {
	tr := tracker("db")
	tr.Update(start(), nil)
	theirs := app("theirs", 0, "t2")
	theirs.Namespace, theirs.Health = "team", "Degraded"
	twin := app("db", 0, "t2")
	twin.Namespace, twin.Health = "team", "Degraded"
	root := rootOf("t1")
	root.Namespace, root.Sync, root.Revision = "team", "OutOfSync", old
	v := tr.Update(start().Add(time.Second), []argo.Application{rootOf("t2", "db"), twin, app("db", 0, "t2"), theirs, root})
	require.True(t, v.Done, v.Line)
	require.Empty(t, v.Actions)
}

func TestEachAppHasItsDeadlineFromItsWave(t *testing.T) {
	tr := tracker("db", "seed", "web")
	busy := func(name string, wave int) argo.Application {
		a := app(name, wave, "t2")
		a.Health = "Progressing"
		return a
	}
	root := rootOf("t2", "db")
	root.Operation.Phase = "Running"
	require.Nil(t, tr.Update(start(), nil).Late)
	// db takes 50 s of its 60.
	require.Nil(t, tr.Update(start().Add(time.Second), []argo.Application{root, busy("db", 0), busy("web", 2)}).Late)
	at := start().Add(51 * time.Second)
	require.Nil(t, tr.Update(at, []argo.Application{root, busy("db", 0), busy("web", 2)}).Late)
	// seed appears when db is done: its time begins now, and web's has not begun.
	at = at.Add(time.Second)
	require.Nil(t, tr.Update(at, []argo.Application{root, app("db", 0, "t2"), busy("seed", 1), busy("web", 2)}).Late)
	at = at.Add(59 * time.Second)
	v := tr.Update(at, []argo.Application{root, app("db", 0, "t2"), busy("seed", 1), busy("web", 2)})
	require.Nil(t, v.Late)
	require.Equal(t, "1/3 apps; waiting for seed: Progressing, web: Progressing", v.Line)
	at = at.Add(time.Second)
	v = tr.Update(at, []argo.Application{root, app("db", 0, "t2"), busy("seed", 1), busy("web", 2)})
	require.NotNil(t, v.Late)
	require.Equal(t, "seed", v.Late.Name)
	require.False(t, v.Stale)
}

func TestARootThatBringsNothingIsLate(t *testing.T) {
	tr := tracker("db")
	root := rootOf("")
	root.Sync, root.Health, root.Reconciled = "Unknown", "Healthy", "t2"
	require.Nil(t, tr.Update(start(), []argo.Application{root}).Late)
	v := tr.Update(start().Add(time.Minute), []argo.Application{root})
	require.NotNil(t, v.Late)
	require.Equal(t, "root", v.Late.Name)
	require.Equal(t, []string{"db"}, v.Absent)
	require.True(t, v.Stale, "it was not compared since the tracker started")

	tr = tracker("db")
	require.Nil(t, tr.Update(start(), nil).Late)
	v = tr.Update(start().Add(time.Minute), nil)
	require.NotNil(t, v.Late)
	require.Equal(t, "root", v.Late.Name)
}

func TestASyncToAnOlderCommitIsEndedOnce(t *testing.T) {
	tr := tracker("db")
	stuck := rootOf("t1", "db")
	stuck.Operation = argo.Operation{Phase: "Running", Revision: old, Started: "s0", Message: "waiting for healthy state of db"}
	patches := func(v argo.Verdict, name string) string {
		var out []string
		for _, a := range v.Actions {
			if a.App.Name == name {
				out = append(out, string(a.Patch))
			}
		}
		return strings.Join(out, "\n")
	}
	v := tr.Update(start(), []argo.Application{stuck, app("db", 0, "t1")})
	require.Contains(t, patches(v, "root"), `"Terminating"`)
	require.NotContains(t, patches(v, "db"), `"Terminating"`)
	v = tr.Update(start().Add(time.Second/2), []argo.Application{stuck, app("db", 0, "t1")})
	require.Empty(t, patches(v, "root"))
	stuck.Operation.Started = "s2"
	v = tr.Update(start().Add(time.Second/2), []argo.Application{stuck, app("db", 0, "t1")})
	require.Contains(t, patches(v, "root"), `"Terminating"`, "another sync to the older commit")
}

func TestASyncThatArgoGaveUpIsTriedOnceMore(t *testing.T) {
	tr := tracker("db")
	tr.Update(start(), nil)
	failed := app("db", 0, "t2")
	failed.Operation.Phase = "Failed"
	v := tr.Update(start().Add(time.Second), []argo.Application{rootOf("t2", "db"), failed})
	require.False(t, v.Done, "a failed hook leaves an app Synced and Healthy")
	require.Contains(t, v.Line, "last sync failed")
	require.Len(t, v.Actions, 1)
	require.Contains(t, string(v.Actions[0].Patch), rev)
	v = tr.Update(start().Add(2*time.Second), []argo.Application{rootOf("t2", "db"), failed})
	require.Empty(t, v.Actions)
}
