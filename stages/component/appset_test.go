package component

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/plan"
)

const (
	atSet      = "/apis/argoproj.io/v1alpha1/namespaces/cd/applicationsets/addons"
	atApp      = "/apis/argoproj.io/v1alpha1/namespaces/cd/applications/"
	addonsYAML = "{apiVersion: argoproj.io/v1alpha1, kind: ApplicationSet, metadata: {name: addons, namespace: cd}, spec: {generators: [{clusters: {}}]}}\n"
)

// addons is a component with an ApplicationSet, on a cluster with Argo CD.
func addons(t *testing.T, more string, files map[string]string) *fixture {
	t.Helper()
	all := map[string]string{"sets.yaml": addonsYAML, "gitops/x.yaml": "a: 1", "argocd.yaml": pageYAML}
	for name, text := range files {
		all[name] = text
	}
	s := newFixture(t, `
  - {name: argocd, kind: manifests, path: argocd.yaml, namespace: shop, required: true}
  - {name: addons, kind: appset, path: sets.yaml, namespace: shop`+more+`}
gitops: {engine: argocd}
`, all)
	s.api.Define("argoproj.io/v1alpha1", "ApplicationSet", true)
	s.api.Define("argoproj.io/v1alpha1", "Application", true)
	s.api.Controller = func(_ string, o map[string]any) { compare(o) }
	return s
}

// compare is what Argo CD does with what it was asked to look at.
func compare(o map[string]any) (asked bool) {
	notes, _ := o["metadata"].(map[string]any)["annotations"].(map[string]any)
	for _, name := range []string{"argocd.argoproj.io/refresh", "argocd.argoproj.io/application-set-refresh"} {
		_, is := notes[name]
		asked = asked || is
		delete(notes, name)
	}
	return asked
}

// application is what the set has made.
func (s *fixture) application(t *testing.T, name, owner, health string) {
	t.Helper()
	s.api.Set(t, atApp+name, "{metadata: {name: "+name+", namespace: cd, ownerReferences: [{apiVersion: argoproj.io/v1alpha1, kind: ApplicationSet, name: addons, uid: "+owner+"}]}, "+
		"status: {sync: {status: Synced, revision: abc}, health: {status: "+health+"}, reconciledAt: '2026-01-02T03:04:05Z'}}")
}

func TestTheApplicationsOfASetAreWaitedFor(t *testing.T) {
	s := addons(t, "", nil)
	in := contract.ComponentInput{Component: "addons"}
	wait := func(limit time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		_, err := s.install(ctx, in)
		return err
	}
	shut := func(says string) {
		t.Helper()
		var err error
		for limit := 400 * time.Millisecond; limit < 30*time.Second; limit *= 2 { // on a busy machine it gets less far
			if err = wait(limit); err == nil || strings.Contains(err.Error(), says) {
				break
			}
		}
		require.ErrorIs(t, err, &fault.Fault{Code: argo.CodeLate})
		require.Equal(t, fault.Timeout, fault.ClassOf(err))
		require.ErrorContains(t, err, "bring about the Applications of addons: waited ")
		require.ErrorContains(t, err, says)
		_, err = s.verify(t.Context(), in)
		require.ErrorContains(t, err, says)
	}
	_, err := s.verify(t.Context(), in)
	require.ErrorIs(t, err, plan.ErrChange)
	shut("addons: its controller has not looked at it yet")
	uid, _ := s.at(atSet, "metadata", "uid").(string)
	require.NotEmpty(t, uid)

	s.api.Set(t, atSet, "status: {conditions: [{type: ErrorOccurred, status: 'True', message: no cluster matches}, {type: ResourcesUpToDate, status: 'True'}]}")
	shut("addons: no cluster matches")
	s.api.Set(t, atSet, "status: {conditions: [{type: ErrorOccurred, status: 'False'}, {type: ResourcesUpToDate, status: 'True'}]}")
	shut("addons: it has made no Application yet")
	s.application(t, "theirs", "another", "Healthy")
	shut("addons: it has made no Application yet")
	s.application(t, "metrics", uid, "Healthy")
	s.application(t, "logs", uid, "Progressing")
	shut("app logs: ")
	s.application(t, "logs", uid, "Healthy")
	require.NoError(t, wait(10*time.Second))
	_, err = s.verify(t.Context(), in)
	require.NoError(t, err)
}

// TestApplicationsOfASetAreComparedAnew: what they were at an earlier commit says nothing.
func TestApplicationsOfASetAreComparedAnew(t *testing.T) {
	s := addons(t, "", nil)
	in := contract.ComponentInput{Component: "addons"}
	looks, uid := true, ""
	s.api.Controller = func(path string, o map[string]any) {
		meta := o["metadata"].(map[string]any)
		switch {
		case path == atSet:
			uid = meta["uid"].(string)
			o["status"] = map[string]any{"conditions": []any{map[string]any{"type": "ResourcesUpToDate", "status": "True"}}}
			if looks {
				compare(o)
			}
		case compare(o): // it finds a newer commit
			o["status"] = map[string]any{"sync": map[string]any{"status": "OutOfSync", "revision": "def"}, "health": map[string]any{"status": "Healthy"}}
		}
	}
	wait := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		_, err := s.install(ctx, in)
		return err
	}
	require.ErrorContains(t, wait(), "addons: it has made no Application yet")
	s.application(t, "metrics", uid, "Healthy")
	require.ErrorContains(t, wait(), "app metrics: OutOfSync: ")

	s.application(t, "metrics", uid, "Healthy")
	_, err := s.verify(t.Context(), in)
	require.ErrorContains(t, err, "app metrics: OutOfSync: ")

	s.application(t, "metrics", uid, "Healthy")
	looks = false
	require.ErrorContains(t, wait(), "addons: its controller has not looked at it since it was asked to")
	asked := 0
	for _, w := range s.writes() {
		if w == "PATCH "+atApp+"metrics" {
			asked++
		}
	}
	require.Equal(t, 2, asked, "once in each run that the set's controller took part in")
}

// TestASetMayBringNothing where the release says so.
func TestASetMayBringNothing(t *testing.T) {
	s := addons(t, ", empty: true", nil)
	set := s.api.Controller
	s.api.Controller = func(path string, o map[string]any) {
		set(path, o)
		if path == atSet {
			o["status"] = map[string]any{"conditions": []any{map[string]any{"type": "ResourcesUpToDate", "status": "True"}}}
		}
	}
	out, err := s.install(t.Context(), contract.ComponentInput{Component: "addons"})
	require.NoError(t, err)
	require.Equal(t, contract.Component{Objects: 1, Changed: 1}, out)
}

func TestFilesWithoutASet(t *testing.T) {
	s := addons(t, "", map[string]string{"sets.yaml": pageYAML})
	_, err := s.install(t.Context(), contract.ComponentInput{Component: "addons"})
	refused(t, err, contract.CodeUnusable, "read the manifests of component addons: its files hold no ApplicationSet")
}

// TestAnAppIsLookedForWhereArgoCDIs: its users may have one of that name elsewhere.
func TestAnAppIsLookedForWhereArgoCDIs(t *testing.T) {
	s := newFixture(t, `
  - {name: argocd, kind: manifests, path: argocd.yaml, namespace: shop, required: true}
  - {name: web, kind: app, path: gitops/web, namespace: default}
  - {name: seen, kind: gate, after: [web], ready: [{synced: web, deadline: 1s}]}
gitops: {engine: argocd}
`, map[string]string{"argocd.yaml": pageYAML, "gitops/web/Chart.yaml": "name: web"})
	s.api.Define("argoproj.io/v1alpha1", "Application", true)
	const healthy = "status: {sync: {status: Synced}, health: {status: Healthy}}}"
	s.api.Set(t, atApp+"web", "{metadata: {name: web, namespace: cd}, "+healthy)
	in := contract.ComponentInput{Component: "seen"}
	_, err := s.install(t.Context(), in)
	require.ErrorContains(t, err, "the gate app web; last seen: it is not there")

	s.api.Set(t, "/apis/argoproj.io/v1alpha1/namespaces/shop/applications/web", "{metadata: {name: web, namespace: shop}, "+healthy)
	_, err = s.install(t.Context(), in)
	require.NoError(t, err)
}
