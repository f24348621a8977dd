//go:build unix

package data

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/backup"
	"github.com/slipway-sh/slipway/stages/internal/installed"
)

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
	refused(t, err, CodeMigration, "take back migration split", "it is held", "slipway rollback")
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
	refused(t, err, contract.CodeConsent, "migration split cannot be taken back", "data orders", "meanwhile it stops Deployment shop/web; nothing was changed", "slipway rollback --backup r1 --yes")
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

// TestThePodsOfARollbackHaveTheSettingsOfTheirRelease, which the configuration of the one to
// go back to may lack.
func TestThePodsOfARollbackHaveTheSettingsOfTheirRelease(t *testing.T) {
	b := newBench(t)
	b.write("new/pod.yaml", strings.Replace(b.read("new/pod.yaml"), "{domain}", "{settings.schema}", 1))
	b.installs()
	in := pods()
	in.Settings = []byte(`{"schema":"a"}`)
	data, err := backUp(t.Context(), b.env("r1", "new"), contract.BackupDataInput{PodInput: in, Data: "orders"})
	require.NoError(t, err)
	for _, schema := range []string{"a", "b"} { // an upgrade that goes on may have others
		_, err = complete(t.Context(), b.env("r1", "new"), contract.BackupInput{Settings: []byte(`{"schema":"` + schema + `"}`), Data: []contract.BackedUp{data}})
		require.NoError(t, err)
	}
	require.NoError(t, b.record().Note("split", true).Keep(t.Context(), b.client(), "demo"))
	seen := ""
	ready := b.api.Controller
	b.api.Controller = func(path string, o map[string]any) {
		ready(path, o)
		if path == livePod {
			c := o["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
			seen, _ = c["env"].([]any)[0].(map[string]any)["value"].(string)
		}
	}
	out, err := b.restore("r3", false)
	require.NoError(t, err)
	require.Equal(t, []string{"split"}, out.Undone)
	require.Equal(t, "b", seen)
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
	refused(t, err, CodeMigration, "correct the cause, then run again: slipway rollback --backup r1")
	w, _, err := openBackup(t.Context(), b.env("r4", "old"), contract.RestoreInput{PodInput: pods(), Backup: "r1"})
	require.NoError(t, err)
	refused(t, w.badUsers("start Deployment shop/web", os.ErrPermission), CodeMigration, "correct the cause, then run again: slipway rollback --backup r1")
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

// TestNobodyWritesAfterARestoreThatFailed, until the rollback is run again: what was saved
// would lack that. And nothing is begun where Argo CD would start them again.
func TestNobodyWritesAfterARestoreThatFailed(t *testing.T) {
	b := withUsers(t)
	text := strings.Replace(b.read("new/platform.yaml"), ", undo: [rm, -f, split]", "", 1)
	b.write("new/platform.yaml", strings.Replace(text, "cat >new", "test ! -e split && cat >new", 1))
	b.begins("r1", contract.Graceful)
	_, err := b.migrate(true)
	require.NoError(t, err)
	before := b.record()
	b.api.Set(t, webApp, "metadata: {ownerReferences: [{apiVersion: argoproj.io/v1alpha1, kind: ApplicationSet, name: all, uid: u, controller: true}]}")
	b.api.Set(t, "/apis/argoproj.io/v1alpha1/namespaces/argocd/applicationsets/all", "metadata: {name: all, namespace: argocd}")
	_, err = b.restore("r2", true)
	refused(t, err, CodeMigration, "ApplicationSet all does not let Application web be left alone")
	require.Equal(t, before, b.record(), "an upgrade can still go on")
	b.api.Set(t, webApp, "metadata: {ownerReferences: null}")

	_, err = b.restore("r3", true)
	refused(t, err, CodeRestore, "restore data orders from backup r1", "Deployment shop/web stays stopped until then: correct the cause")
	require.EqualValues(t, 0, replicas(b))
	require.NoError(t, os.Remove(filepath.Join(b.dir, "slipway-data-orders/split")))
	done := len(b.api.Writes())
	_, err = b.restore("r4", false)
	require.NoError(t, err)
	told := slices.DeleteFunc(b.api.Writes()[done:], func(w string) bool { return w != "PATCH "+webApp })
	require.Len(t, told, 1, "Argo CD is told to look again in the end only: it would start them")
	require.EqualValues(t, 3, replicas(b))
	require.Empty(t, annotations(b, webApp))
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
	refused(t, err, CodeBackup, "dump data orders", "then run again: slipway rollback --backup r1", "without a backup of it: slipway rollback --backup r1 --yes")
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

// TestNobodyWritesBetweenSaveAndReplace: data is saved and replaced while its users are
// stopped, once, whatever the style of the upgrade.
func TestNobodyWritesBetweenSaveAndReplace(t *testing.T) {
	for _, style := range []string{contract.Graceful, contract.InPlace} {
		t.Run(style, func(t *testing.T) { nobodyWrites(t, style) })
	}
}

func nobodyWrites(t *testing.T, style string) {
	t.Helper()
	b := withUsers(t)
	b.write("new/platform.yaml", strings.Replace(b.read("new/platform.yaml"), ", undo: [rm, -f, split]", "", 1))
	b.begins("r1", style)
	require.NoError(t, b.record().Note("split", true).Keep(t.Context(), b.client(), "demo"))
	// A run that was killed meanwhile has left them stopped, and so they stay.
	b.api.Set(t, webDeployment, `{metadata: {annotations: {slipway.sh/replicas: "2"}}, spec: {replicas: 0}, status: {replicas: 0}}`)
	before := len(b.api.Writes())
	out, err := b.restore("r3", true)
	require.NoError(t, err)
	require.Equal(t, contract.Restored{Restored: []string{"orders"}, Saved: "r3"}, out)
	require.EqualValues(t, 2, replicas(b))
	require.Empty(t, annotations(b, webApp))
	var order []string
	for _, w := range b.api.Writes()[before:] {
		if strings.Contains(w, webDeployment) || strings.Contains(w, livePod) {
			order = append(order, w[:strings.Index(w, " ")]+" "+filepath.Base(w))
		}
	}
	pod := []string{"PATCH slipway-data-orders", "DELETE slipway-data-orders"}
	require.Equal(t, slices.Concat(pod, pod, []string{"PATCH web"}), order)
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
