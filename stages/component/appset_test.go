package component

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/dryrun"
)

const (
	atSet      = "/apis/argoproj.io/v1alpha1/namespaces/cd/applicationsets/addons"
	atApp      = "/apis/argoproj.io/v1alpha1/namespaces/cd/applications/"
	addonsYAML = "{apiVersion: argoproj.io/v1alpha1, kind: ApplicationSet, metadata: {name: addons, namespace: cd}, spec: {generators: [{clusters: {}}]}}\n"
)

// addons is a component with an ApplicationSet, on a cluster with Argo CD.
func addons(t *testing.T, more string, files map[string]string) *site {
	t.Helper()
	all := map[string]string{"sets.yaml": addonsYAML, "gitops/x.yaml": "a: 1", "argocd.yaml": pageYAML}
	for name, text := range files {
		all[name] = text
	}
	s := newSite(t, `
  - {name: argocd, kind: manifests, path: argocd.yaml, namespace: shop, required: true}
  - {name: addons, kind: appset, path: sets.yaml, namespace: shop`+more+`}
gitops: {engine: argocd}
`, all)
	s.api.Define("argoproj.io/v1alpha1", "ApplicationSet", true)
	s.api.Define("argoproj.io/v1alpha1", "Application", true)
	return s
}

// application is what the set has made.
func (s *site) application(t *testing.T, name, owner, health string) {
	t.Helper()
	s.api.Set(t, atApp+name, "{metadata: {name: "+name+", namespace: cd, ownerReferences: [{apiVersion: argoproj.io/v1alpha1, kind: ApplicationSet, name: addons, uid: "+owner+"}]}, "+
		"status: {sync: {status: Synced, revision: abc}, health: {status: "+health+"}, reconciledAt: '2026-01-02T03:04:05Z'}}")
}

func TestTheApplicationsOfASetAreWaitedFor(t *testing.T) {
	s := addons(t, "", nil)
	in := contract.ComponentInput{Component: "addons"}
	wait := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
		defer cancel()
		_, err := s.install(ctx, in)
		return err
	}
	shut := func(says string) {
		t.Helper()
		err := wait()
		require.ErrorIs(t, err, &fault.Fault{Code: CodeAppSet})
		require.Equal(t, fault.Timeout, fault.ClassOf(err))
		require.ErrorContains(t, err, "bring about the Applications of addons: waited ")
		require.ErrorContains(t, err, says)
		_, err = s.install(dryrun.Context(t.Context()), in)
		require.ErrorContains(t, err, says)
	}
	_, err := s.install(dryrun.Context(t.Context()), in)
	require.ErrorIs(t, err, dryrun.ErrWouldChange)
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
	require.NoError(t, wait())
	s.held(t, in)
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
	refused(t, err, CodeManifests, "read the manifests of component addons: its files hold no ApplicationSet")
}
