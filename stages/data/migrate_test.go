//go:build unix

package data

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/installed"
)

func TestMigrationsAreCarriedOutOnce(t *testing.T) {
	b := newBench(t)
	_, err := b.migrate(true)
	require.ErrorContains(t, err, "has no backup")
	b.begins("r1", "")
	out, err := b.migrate(true)
	require.NoError(t, err)
	require.Equal(t, []string{"split"}, out.Migrations)
	require.Equal(t, []installed.Migration{{Name: "split", Done: true}}, b.record().Migrations)
	out, err = b.migrate(true)
	require.NoError(t, err)
	require.Equal(t, []string{"split"}, out.Migrations)
	require.Equal(t, "split\n", b.read("slipway-data-orders/log"), "it is done")

	b.write("slipway-data-orders/rows", "a\nb\nc\nwritten meanwhile\n")
	out, err = b.migrate(false)
	require.NoError(t, err)
	require.Equal(t, contract.Migrated{Migrations: []string{"trim"}, Checks: map[string]string{"orders": "4"}}, out)

	b.write("slipway-data-orders/rows", "a\n")
	_, err = b.migrate(false)
	refused(t, err, CodeCheck, "of which the check said: 3", "orders: 1", "slipway upgrade --resume", "slipway rollback")
}

func TestAMigrationThatFailsIsTakenUpAgain(t *testing.T) {
	b := newBench(t)
	b.begins("r1", "")
	rest := strings.Replace(dataSections, "echo split >>log; touch split", "echo half done >&2; exit 5", 1)
	b.release("new", "1.1.0", "upgradableFrom: [1.0.0]\n"+rest)
	_, err := b.migrate(true)
	refused(t, err, CodeMigration, "carry out migration split of data orders", "half done", "slipway upgrade --resume; or go back: slipway rollback")
	require.Equal(t, []installed.Migration{{Name: "split"}}, b.record().Migrations, "it has begun")
	require.Nil(t, b.api.Get(livePod))
	b.release("new", "1.1.0", "upgradableFrom: [1.0.0]\n"+dataSections)
	_, err = b.migrate(true)
	require.NoError(t, err)
	require.True(t, b.record().Has("split"))
}

// TestTheWayBackWithoutATerminal: the command that is named where no undo takes a migration back
// runs as it is, and what it does is said.
func TestTheWayBackWithoutATerminal(t *testing.T) {
	b := newBench(t)
	b.begins("r1", "")
	rest := strings.Replace(dataSections, `command: [sh, -c, "echo split >>log; touch split"], undo: [rm, -f, split]`, `command: [sh, -c, "exit 5"]`, 1)
	b.release("new", "1.1.0", "upgradableFrom: [1.0.0]\n"+rest)
	_, err := b.migrate(true)
	refused(t, err, CodeMigration, "or go back: slipway rollback; it asks before the backup takes the place of data orders, and loses everything written since; without a terminal it requires --yes")
}

// TestWhatACommandSaysHasNoSecrets: neither those that its pod reads nor what looks like one.
func TestWhatACommandSaysHasNoSecrets(t *testing.T) {
	b := newBench(t)
	rest := strings.Replace(dataSections, "echo split >>log; touch split", "echo as orders with hunter2hunter2, password=elsewhere1 >&2; exit 5", 1)
	b.release("new", "1.1.0", "upgradableFrom: [1.0.0]\n"+rest)
	b.write("new/pod.yaml", strings.Replace(b.read("new/pod.yaml"), "image: db,", "image: db, envFrom: [{secretRef: {name: login}}],", 1))
	b.api.Set(t, "/api/v1/namespaces/shop/secrets/login", "{metadata: {name: login, namespace: shop}, data: {PGDATABASE: b3JkZXJz, PGPASSWORD: aHVudGVyMmh1bnRlcjI=}}")
	b.begins("r1", "")
	_, err := b.migrate(true)
	refused(t, err, CodeMigration, "as orders with ***, password=***")
	require.NotContains(t, b.log.String(), "hunter2hunter2")
	require.Contains(t, b.log.String(), "as orders with ***")
}

const (
	webDeployment = "/apis/apps/v1/namespaces/shop/deployments/web"
	webApp        = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/web"
)

// withUsers has what uses the data, and Argo CD that owns it.
func withUsers(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.api.Define("argoproj.io/v1alpha1", "Application", true)
	b.api.Define("argoproj.io/v1alpha1", "ApplicationSet", true)
	engine := "gitops: {engine: argocd, tree: gitops, project: {name: p}}\n"
	text := strings.NewReplacer("[{name: shop}]", "[{name: shop}, {name: argocd}]",
		"images: [db]}]", "images: [db]}, {name: argocd, kind: manifests, path: web.yaml, namespace: argocd, required: true}, {name: web, kind: app, path: gitops/web, namespace: shop}]",
	).Replace(b.read("new/platform.yaml"))
	b.write("new/platform.yaml", text+engine)
	require.NoError(t, os.MkdirAll(filepath.Join(b.dir, "new/gitops/web"), 0o755))
	b.write("new/gitops/web/Chart.yaml", "name: web\n")
	b.api.Set(t, webDeployment, `{metadata: {name: web, namespace: shop, annotations: {argocd.argoproj.io/tracking-id: "web:apps/Deployment:shop/web"}}, spec: {replicas: 3}, status: {replicas: 3}}`)
	b.api.Set(t, webApp, "metadata: {name: web, namespace: argocd}")
	return b
}

// inPlace is an upgrade in place that has begun, and the data whose users it stops.
func inPlace(t *testing.T) (*bench, *work, platform.Data) {
	t.Helper()
	b := withUsers(t)
	b.begins("r1", contract.InPlace)
	w, err := open(t.Context(), b.env("r2", "new"), pods())
	require.NoError(t, err)
	d, err := w.dataNamed("orders")
	require.NoError(t, err)
	return b, w, d
}

func annotations(b *bench, path string) map[string]any {
	meta, _ := b.api.Get(path)["metadata"].(map[string]any)
	a, _ := meta["annotations"].(map[string]any)
	return a
}

func replicas(b *bench) any { return b.api.Get(webDeployment)["spec"].(map[string]any)["replicas"] }

func TestInPlaceStopsWhoUsesTheData(t *testing.T) {
	b, w, d := inPlace(t)
	during := 0
	require.NoError(t, w.stoppedInPlace(t.Context(), contract.InPlace, d, func(context.Context) error {
		during++
		require.EqualValues(t, 0, replicas(b))
		require.Equal(t, "true", annotations(b, webApp)["argocd.argoproj.io/skip-reconcile"])
		return nil
	}))
	require.EqualValues(t, 3, replicas(b))
	require.Empty(t, annotations(b, webApp))
	require.NotContains(t, annotations(b, webDeployment), replicasAnnotation)
	require.NoError(t, w.stoppedInPlace(t.Context(), contract.Graceful, d, func(context.Context) error {
		during++
		require.EqualValues(t, 3, replicas(b))
		return nil
	}))
	require.Equal(t, 2, during)

	// A run that was killed in between: the next one starts what is stopped, once no command
	// of that run is at work any more.
	b.api.Set(t, livePod, "metadata: {name: slipway-data-orders, namespace: shop, labels: {slipway.sh/deployment: demo, slipway.sh/data: orders}}")
	before := len(b.api.Writes())
	b.api.Set(t, webApp, `metadata: {annotations: {argocd.argoproj.io/skip-reconcile: "true", slipway.sh/stopped: "true"}}`)
	b.api.Set(t, webDeployment, `{metadata: {annotations: {slipway.sh/replicas: "2"}}, spec: {replicas: 0}}`)
	_, err := b.migrate(true)
	require.NoError(t, err)
	require.EqualValues(t, 2, replicas(b))
	require.Empty(t, annotations(b, webApp))
	require.Equal(t, "DELETE "+livePod, b.api.Writes()[before])

	b.api.Set(t, webApp, `metadata: {annotations: {argocd.argoproj.io/skip-reconcile: "true"}}`)
	_, err = b.migrate(false)
	require.NoError(t, err)
	require.Equal(t, "true", annotations(b, webApp)["argocd.argoproj.io/skip-reconcile"], "what somebody else has told Argo CD stays")

	const set = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applicationsets/all"
	b.api.Set(t, webApp, "metadata: {annotations: {argocd.argoproj.io/skip-reconcile: null}, ownerReferences: [{apiVersion: argoproj.io/v1alpha1, kind: ApplicationSet, name: all, uid: u, controller: true}]}")
	b.api.Set(t, set, "metadata: {name: all, namespace: argocd}")
	err = w.stopped(t.Context(), d, func(context.Context) error { return nil })
	require.ErrorIs(t, err, &fault.Fault{Code: CodeMigration})
	require.ErrorContains(t, err, "ApplicationSet all does not let Application web be left alone", "it would start them again")
	require.EqualValues(t, 2, replicas(b))
	b.api.Set(t, set, "spec: {preservedFields: {annotations: [argocd.argoproj.io/skip-reconcile]}}")
	require.NoError(t, w.stopped(t.Context(), d, func(context.Context) error { return nil }))
}

func TestWhoUsesTheDataDoesNotStop(t *testing.T) {
	b, w, d := inPlace(t)
	ready := b.api.Controller
	b.api.Controller = func(path string, o map[string]any) {
		ready(path, o)
		if path == webDeployment {
			o["status"] = map[string]any{"replicas": int64(1)}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err := w.stopped(ctx, d, func(context.Context) error {
		t.Error("it runs")
		return nil
	})
	refused(t, err, CodeMigration, "stop Deployment shop/web", "1 pods")
	require.EqualValues(t, 3, replicas(b), "it is started again")
}

// TestWhoIsStartedMeanwhileIsStoppedAgain: a sync that Argo CD had begun before it was told to
// leave the workload alone gives it its pods back.
func TestWhoIsStartedMeanwhileIsStoppedAgain(t *testing.T) {
	b, w, d := inPlace(t)
	syncs, follow := 0, b.api.Controller
	b.api.Controller = func(path string, o map[string]any) {
		spec, _ := o["spec"].(map[string]any)
		if path == webDeployment && syncs == 0 && fmt.Sprint(spec["replicas"]) == "0" {
			syncs++
			spec["replicas"] = int64(3)
		}
		follow(path, o)
	}
	ran := false
	require.NoError(t, w.stopped(t.Context(), d, func(context.Context) error {
		ran = true
		require.EqualValues(t, 0, replicas(b))
		return nil
	}))
	require.True(t, ran)
	require.Equal(t, 1, syncs)
	require.EqualValues(t, 3, replicas(b), "as many as before")
}

// TestPodsThatEndAreWaitedFor: they may still write, and a Deployment does not count them.
func TestPodsThatEndAreWaitedFor(t *testing.T) {
	b := withUsers(t)
	b.begins("r1", contract.InPlace)
	const at = "/api/v1/namespaces/shop/pods/"
	pod := func(name, owner, more string) {
		b.api.Set(t, at+name, `{metadata: {name: `+name+`, namespace: shop, labels: {app: web, pod-template-hash: "7f9"}, ownerReferences: [{controller: true, kind: ReplicaSet, name: `+owner+`}]}`+more+`}`)
	}
	pod("web-1", "web-7f9", "")
	pod("web-2", "web-7f9", ", status: {phase: Failed}")
	pod("web-admin-1", "web-admin-7f9", "")
	w, err := open(t.Context(), b.env("r2", "new"), pods())
	require.NoError(t, err)
	d, err := w.dataNamed("orders")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err = w.stopped(ctx, d, func(context.Context) error {
		t.Error("it runs")
		return nil
	})
	refused(t, err, CodeMigration, "1 pods that end")
	b.api.Delete(at + "web-1")
	ran := false
	require.NoError(t, w.stopped(t.Context(), d, func(context.Context) error {
		ran = true
		return nil
	}))
	require.True(t, ran)
}
