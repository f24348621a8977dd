//go:build unix

package data

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/backup"
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
	refused(t, err, CodeMigration, "carry out migration split of data orders", "half done", "slipway upgrade --resume", "slipway rollback")
	require.Equal(t, []installed.Migration{{Name: "split"}}, b.record().Migrations, "it has begun")
	require.Nil(t, b.api.Get(livePod))
	b.release("new", "1.1.0", "upgradableFrom: [1.0.0]\n"+dataSections)
	_, err = b.migrate(true)
	require.NoError(t, err)
	require.True(t, b.record().Has("split"))
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

func TestARollbackTakesMigrationsBack(t *testing.T) {
	b := newBench(t)
	b.begins("r1", "")
	for _, before := range []bool{true, false} {
		_, err := b.migrate(before)
		require.NoError(t, err)
	}
	b.write("slipway-data-orders/rows", "a\nb\nc\nwritten meanwhile\n")
	out, err := b.restore("r3", false)
	require.NoError(t, err)
	require.Equal(t, contract.Restored{Undone: []string{"trim", "split"}}, out, "the last one first")
	require.NoFileExists(t, filepath.Join(b.dir, "slipway-data-orders/split"))
	require.Equal(t, "a\nb\nc\nwritten meanwhile\n", b.read("slipway-data-orders/rows"))
	rec := b.record()
	require.Equal(t, "r1", rec.Rollback)
	require.Empty(t, rec.Migrations)

	checked, err := checkAll(t.Context(), b.env("r3", "old"), contract.RestoreInput{PodInput: pods(), Backup: "r1"})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"orders": "4"}, checked.Checks)
	b.write("slipway-data-orders/rows", "a user has removed some\n")
	_, err = checkAll(t.Context(), b.env("r3", "old"), contract.RestoreInput{PodInput: pods(), Backup: "r1"})
	refused(t, err, CodeCheck, "orders: 1", "if the data is right as it is: slipway rollback --backup r1 --yes")
	checked, err = checkAll(t.Context(), b.env("r3", "old"), contract.RestoreInput{PodInput: pods(), Backup: "r1", Restore: true})
	require.NoError(t, err)
	require.Equal(t, contract.Migrated{Migrations: []string{}, Checks: map[string]string{}, Failed: []string{"orders"}}, checked)
	out, err = b.restore("r4", false)
	require.NoError(t, err)
	require.Equal(t, contract.Restored{}, out, "once more changes nothing")
}

func TestAMigrationThatIsNotTakenBack(t *testing.T) {
	b := newBench(t)
	b.release("new", "1.1.0", "upgradableFrom: [1.0.0]\n"+strings.Replace(dataSections, "[rm, -f, split]", "[sh, -c, 'echo it is held >&2; exit 6']", 1))
	b.begins("r1", "")
	_, err := b.migrate(true)
	require.NoError(t, err)
	_, err = b.restore("r3", false)
	refused(t, err, CodeUndo, "take back migration split", "it is held", "slipway rollback")
	require.True(t, b.record().Has("split"), "it is still to be taken back")
}

func TestARollbackRestoresWhatCannotBeTakenBack(t *testing.T) {
	b := newBench(t)
	b.release("new", "1.1.0", "upgradableFrom: [1.0.0]\n"+strings.Replace(dataSections, ", undo: [rm, -f, split]", "", 1))
	b.begins("r1", "")
	_, err := b.migrate(true)
	require.NoError(t, err)
	b.write("slipway-data-orders/rows", "a\nb\nc\nwritten meanwhile\n")
	before := b.record()
	_, err = b.restore("r3", false)
	refused(t, err, contract.CodeConsent, "migration split cannot be taken back", "data orders", "nothing was changed", "slipway rollback --backup r1 --yes")
	require.Equal(t, before, b.record())

	out, err := b.restore("r3", true)
	require.NoError(t, err)
	require.Equal(t, contract.Restored{Restored: []string{"orders"}, Saved: "r3"}, out)
	require.Equal(t, "a\nb\nc\n", b.read("slipway-data-orders/rows"))
	own, err := b.repo().Get(t.Context(), "r3")
	require.NoError(t, err)
	require.Equal(t, []any{contract.ForRollback, int64(len("a\nb\nc\nwritten meanwhile\n"))}, []any{own.Reason, own.Data[0].Bytes})
	b.write("slipway-data-orders/rows", "a\nb\nc\nwritten after that\n")
	again, err := b.restore("r4", false)
	require.NoError(t, err)
	require.Empty(t, again.Restored, "it is replaced already")
	require.Contains(t, b.read("slipway-data-orders/rows"), "written after that")
	_, err = restore(t.Context(), b.env("r4", "old"), contract.RestoreInput{PodInput: pods(), Backup: "r3"})
	require.ErrorContains(t, err, "holds data only")

	// What is damaged takes the place of nothing.
	before.Rollback = "r1"
	require.NoError(t, before.Keep(t.Context(), b.client(), "demo"))
	b.write("slipway-data-orders/rows", "present\n")
	b.write("state/backups/r1/data/orders/000000", "b\nb\nc\n")
	_, err = b.restore("r5", true)
	require.ErrorContains(t, err, "its sha256 is")
	require.Equal(t, "present\n", b.read("slipway-data-orders/rows"))
}

// TestARemedyOfARollback is a command that goes on with that rollback, and is not refused.
func TestARemedyOfARollback(t *testing.T) {
	b := newBench(t)
	b.begins("r1", "")
	_, err := b.migrate(true)
	require.NoError(t, err)
	b.api.Set(t, livePod, "metadata: {name: slipway-data-orders, namespace: shop}")
	_, err = b.migrate(false)
	refused(t, err, CodePod, "; then go on: slipway upgrade --resume; or go back: slipway rollback")
	_, err = b.restore("r3", false)
	refused(t, err, CodeUndo, "correct the cause, then run again: slipway rollback --backup r1")
	w, _, err := openBackup(t.Context(), b.env("r4", "old"), contract.RestoreInput{PodInput: pods(), Backup: "r1"})
	require.NoError(t, err)
	refused(t, w.badUsers("start Deployment shop/web", os.ErrPermission), CodeUsers, "correct the cause, then run again: slipway rollback --backup r1")
}

func TestARestoreThatFails(t *testing.T) {
	b := newBench(t)
	sections := strings.Replace(dataSections, ", undo: [rm, -f, split]", "", 1)
	b.release("new", "1.1.0", "upgradableFrom: [1.0.0]\n"+strings.Replace(sections, "cat >new", "test ! -e split && cat >new", 1))
	b.begins("r1", "")
	_, err := b.migrate(true)
	require.NoError(t, err)
	_, err = b.restore("r3", true)
	refused(t, err, CodeRestore, "restore data orders from backup r1", "slipway rollback")
	require.Equal(t, "r3", b.record().Saved)
	require.NoError(t, os.Remove(filepath.Join(b.dir, "slipway-data-orders/split")))
	out, err := b.restore("r4", false)
	require.NoError(t, err, "it was agreed to, and goes on")
	require.Equal(t, "r3", out.Saved, "the data is saved once")
}

// TestDataThatCannotBeSaved does not keep the backup out of its place, once somebody who was
// told so agrees. Data that is empty is saved.
func TestDataThatCannotBeSaved(t *testing.T) {
	b := newBench(t)
	b.release("new", "1.1.0", "upgradableFrom: [1.0.0]\n"+strings.Replace(dataSections, ", undo: [rm, -f, split]", "", 1))
	b.begins("r1", "")
	_, err := b.migrate(true)
	require.NoError(t, err)
	started := b.record()
	require.NoError(t, os.Remove(filepath.Join(b.dir, "slipway-data-orders/rows")))
	_, err = b.restore("r3", true)
	refused(t, err, CodeDump, "dump data orders", "then run again: slipway rollback --backup r1", "without a backup of it: slipway rollback --backup r1 --yes")
	_, err = b.restore("r4", false)
	refused(t, err, contract.CodeConsent, "or in none if it cannot be dumped")
	out, err := b.restore("r5", true)
	require.NoError(t, err)
	require.Equal(t, contract.Restored{Restored: []string{"orders"}, Unsaved: []string{"orders"}}, out)
	require.Equal(t, "a\nb\nc\n", b.read("slipway-data-orders/rows"))

	require.NoError(t, started.Keep(t.Context(), b.client(), "demo"))
	b.write("slipway-data-orders/rows", "")
	out, err = b.restore("r6", true)
	require.NoError(t, err)
	require.Equal(t, contract.Restored{Restored: []string{"orders"}, Saved: "r6"}, out)
	require.Equal(t, "a\nb\nc\n", b.read("slipway-data-orders/rows"))
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

func annotations(b *bench, path string) map[string]any {
	meta, _ := b.api.Get(path)["metadata"].(map[string]any)
	a, _ := meta["annotations"].(map[string]any)
	return a
}

func replicas(b *bench) any { return b.api.Get(webDeployment)["spec"].(map[string]any)["replicas"] }

func TestInPlaceStopsWhoUsesTheData(t *testing.T) {
	b := withUsers(t)
	b.begins("r1", contract.InPlace)
	w, err := open(t.Context(), b.env("r2", "new"), pods())
	require.NoError(t, err)
	d, err := w.dataNamed("orders")
	require.NoError(t, err)
	during := 0
	require.NoError(t, w.stopped(t.Context(), contract.InPlace, d, func(context.Context) error {
		during++
		require.EqualValues(t, 0, replicas(b))
		require.Equal(t, "true", annotations(b, webApp)["argocd.argoproj.io/skip-reconcile"])
		return nil
	}))
	require.EqualValues(t, 3, replicas(b))
	require.Empty(t, annotations(b, webApp))
	require.NotContains(t, annotations(b, webDeployment), replicasAnnotation)
	require.NoError(t, w.stopped(t.Context(), contract.Graceful, d, func(context.Context) error {
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
	_, err = b.migrate(true)
	require.NoError(t, err)
	require.EqualValues(t, 2, replicas(b))
	require.Empty(t, annotations(b, webApp))
	require.Equal(t, "DELETE "+livePod, b.api.Writes()[before])

	b.api.Set(t, webApp, `metadata: {annotations: {argocd.argoproj.io/skip-reconcile: "true"}}`)
	_, err = b.migrate(false)
	require.NoError(t, err)
	require.Equal(t, "true", annotations(b, webApp)["argocd.argoproj.io/skip-reconcile"], "what somebody else has told Argo CD stays")
}

// TestNobodyWritesBetweenSaveAndReplace: data is saved and replaced while its users are
// stopped, once.
func TestNobodyWritesBetweenSaveAndReplace(t *testing.T) {
	b := withUsers(t)
	b.write("new/platform.yaml", strings.Replace(b.read("new/platform.yaml"), ", undo: [rm, -f, split]", "", 1))
	b.begins("r1", contract.InPlace)
	require.NoError(t, b.record().Note("split", true).Keep(t.Context(), b.client(), "demo"))
	before := len(b.api.Writes())
	out, err := b.restore("r3", true)
	require.NoError(t, err)
	require.Equal(t, contract.Restored{Restored: []string{"orders"}, Saved: "r3"}, out)
	var order []string
	for _, w := range b.api.Writes()[before:] {
		if strings.Contains(w, webDeployment) || strings.Contains(w, livePod) {
			order = append(order, w[:strings.Index(w, " ")]+" "+filepath.Base(w))
		}
	}
	pod := []string{"PATCH slipway-data-orders", "DELETE slipway-data-orders"}
	require.Equal(t, slices.Concat([]string{"PATCH web"}, pod, pod, []string{"PATCH web"}), order)
}

func TestWhoUsesTheDataDoesNotStop(t *testing.T) {
	b := withUsers(t)
	b.begins("r1", contract.InPlace)
	w, err := open(t.Context(), b.env("r2", "new"), pods())
	require.NoError(t, err)
	d, err := w.dataNamed("orders")
	require.NoError(t, err)
	ready := b.api.Controller
	b.api.Controller = func(path string, o map[string]any) {
		ready(path, o)
		if path == webDeployment {
			o["status"] = map[string]any{"replicas": int64(1)}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err = w.stopped(ctx, contract.InPlace, d, func(context.Context) error {
		t.Error("it runs")
		return nil
	})
	refused(t, err, CodeUsers, "stop Deployment shop/web", "1 pods")
	require.EqualValues(t, 3, replicas(b), "it is started again")
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
	err = w.stopped(ctx, contract.InPlace, d, func(context.Context) error {
		t.Error("it runs")
		return nil
	})
	refused(t, err, CodeUsers, "1 pods that end")
	b.api.Delete(at + "web-1")
	ran := false
	require.NoError(t, w.stopped(t.Context(), contract.InPlace, d, func(context.Context) error {
		ran = true
		return nil
	}))
	require.True(t, ran)
}

// TestACorrectedReleaseIsWhatARollbackGoesBy: an upgrade may go on with other migrations than
// it has begun with.
func TestACorrectedReleaseIsWhatARollbackGoesBy(t *testing.T) {
	b := newBench(t)
	b.begins("r1", "")
	first, err := b.repo().Get(t.Context(), "r1")
	require.NoError(t, err)
	b.release("new", "1.1.0", "upgradableFrom: [1.0.0]\n"+strings.ReplaceAll(dataSections, "split", "divide"))
	_, err = b.complete("r2", "")
	require.NoError(t, err)
	second, err := b.repo().Get(t.Context(), "r1")
	require.NoError(t, err)
	stored := filepath.Join(b.dir, "state", backup.TargetKey("r1", second.TargetDigest), "000000")
	info, err := os.Stat(stored)
	require.NoError(t, err)
	_, err = b.complete("r2", "")
	require.NoError(t, err)
	same, err := os.Stat(stored)
	require.NoError(t, err)
	require.Equal(t, info.ModTime(), same.ModTime(), "what is there is not written again")
	require.NotEqual(t, first.TargetDigest, second.TargetDigest)
	require.Equal(t, first.Data, second.Data)
	require.NoDirExists(t, filepath.Join(b.dir, "state", backup.TargetKey("r1", first.TargetDigest), "000000"))
	_, err = b.migrate(true)
	require.NoError(t, err)
	out, err := b.restore("r3", false)
	require.NoError(t, err)
	require.Equal(t, []string{"divide"}, out.Undone)

	require.NoError(t, b.record().Note("gone", true).Keep(t.Context(), b.client(), "demo"))
	_, err = b.restore("r4", false)
	refused(t, err, contract.CodeConsent, "the release has the migration gone no more")
	out, err = b.restore("r4", true)
	require.NoError(t, err)
	require.Equal(t, []string{"orders"}, out.Restored)
	b.write("slipway-data-orders/rows", "a\nb\nc\nwritten after that\n")
	out, err = b.restore("r5", true)
	require.NoError(t, err)
	require.Empty(t, out.Restored, "it is replaced already, whatever the release has no more")
	require.Contains(t, b.read("slipway-data-orders/rows"), "written after that")
}

// TestABackupOfAnEarlierUpgrade takes the place of the data once in a rollback, also one that
// is run again.
func TestABackupOfAnEarlierUpgrade(t *testing.T) {
	b := newBench(t)
	b.begins("r1", "")
	require.NoError(t, installed.Record{Platform: "shop", Version: "1.2.0", Backup: "r2"}.Keep(t.Context(), b.client(), "demo"))
	_, err := b.restore("r3", false)
	refused(t, err, contract.CodeConsent, "other upgrades came after backup r1")
	out, err := b.restore("r3", true)
	require.NoError(t, err)
	require.Equal(t, []string{"orders"}, out.Restored)
	b.write("slipway-data-orders/rows", "a\nb\nc\nwritten after that\n")
	out, err = b.restore("r4", false)
	require.NoError(t, err)
	require.Empty(t, out.Restored)
	require.Contains(t, b.read("slipway-data-orders/rows"), "written after that")
}
