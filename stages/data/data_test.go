//go:build unix

package data

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/backup"
	"github.com/slipway-sh/slipway/stages/internal/installed"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
	"github.com/slipway-sh/slipway/stages/step"
)

// kubectlScript stands for kubectl: each pod is a folder in which the command runs.
const kubectlScript = `#!/bin/sh
while [ "$1" != -- ]; do
  case $1 in slipway-*) pod=$1 ;; esac
  shift
done
shift
cd "${0%/*}/../$pod" && exec "$@"
`

const head = `apiVersion: slipway/v2
name: shop
namespaces: [{name: shop}]
components: [{name: database, kind: manifests, path: web.yaml, namespace: shop, images: [db]}]
`

// The data is a file in the pod's folder: its lines are the rows.
const dataSections = `data:
  - name: orders
    component: database
    pod: pod.yaml
    scratch: pod.yaml
    dump: [cat, rows]
    restore: [sh, -c, "cat >new && mv new rows"]
    check: [sh, -c, 'read -r before || before=0; now=$(wc -l <rows); echo "orders: $now" >&2; [ "$now" -ge "$before" ] && echo $now']
    users: [Deployment shop/web]
    retain: 1
migrations:
  - {name: split, version: 1.1.0, data: orders, when: before, command: [sh, -c, "echo split >>log; touch split"], undo: [rm, -f, split]}
  - {name: trim, version: 1.1.0, data: orders, when: after, command: [sh, -c, "echo trim >>log; touch trim"], undo: [rm, -f, trim]}
`

// bench is a cluster with a release, and what its steps work in.
type bench struct {
	t   *testing.T
	api *kubetest.API
	dir string
	log bytes.Buffer // of all steps
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, api: kubetest.Serve(t), dir: t.TempDir()}
	for _, dir := range []string{"state/secrets", "tools", "old", "new", "slipway-data-orders", "slipway-scratch-orders"} {
		require.NoError(t, os.MkdirAll(filepath.Join(b.dir, dir), 0o755))
	}
	b.write("tools/kubectl", kubectlScript)
	require.NoError(t, os.Chmod(filepath.Join(b.dir, "tools/kubectl"), 0o755)) //nolint:gosec // it is run
	b.write("state/secrets/kubeconfig", "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: "+b.api.URL+"}}]\ncontexts: [{name: c, context: {cluster: c, user: c}}]\nusers: [{name: c}]\n")
	b.release("old", "1.0.0", "")
	b.release("new", "1.1.0", "upgradableFrom: [1.0.0]\n"+dataSections)
	b.write("slipway-data-orders/rows", "a\nb\nc\n")
	b.api.Set(t, "/api/v1/namespaces/shop", "metadata: {name: shop}")
	b.api.Controller = func(path string, o map[string]any) {
		if strings.HasPrefix(path, "/api/v1/namespaces/shop/pods/slipway-") {
			o["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
		}
		if spec, ok := o["spec"].(map[string]any); ok && strings.Contains(path, "/deployments/") {
			o["status"] = map[string]any{"replicas": spec["replicas"]}
		}
	}
	return b
}

func (b *bench) write(name, text string) {
	b.t.Helper()
	require.NoError(b.t, os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600))
}

func (b *bench) read(name string) string {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join(b.dir, name))
	require.NoError(b.t, err)
	return string(text)
}

// release writes a release into a folder.
func (b *bench) release(folder, version, sections string) {
	b.write(folder+"/"+platform.File, head+"version: "+version+"\n"+sections)
	b.write(folder+"/web.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
	b.write(folder+"/pod.yaml", "{apiVersion: v1, kind: Pod, metadata: {namespace: shop, labels: {app: psql}}, spec: {containers: [{name: psql, image: db, env: [{name: DOMAIN, value: \"{domain}\"}]}]}}")
}

// env is the environment of a step of a run, with the release in a folder.
func (b *bench) env(run, folder string) *step.Env {
	at := func(name string) string { return filepath.Join(b.dir, name) }
	env := step.NewEnv(run, "preorchestrator/backup", step.Dirs{State: at("state"), Platform: at(folder), Tools: at("tools")}, &b.log, io.Discard)
	env.Deployment = "demo"
	return env
}

func (b *bench) client() *kube.Client {
	b.t.Helper()
	c, err := kube.Connect(filepath.Join(b.dir, "state/secrets/kubeconfig"), nil)
	require.NoError(b.t, err)
	return c
}

func (b *bench) record() installed.Record {
	b.t.Helper()
	rec, err := installed.Read(b.t.Context(), b.client())
	require.NoError(b.t, err)
	return rec
}

func (b *bench) repo() *backup.Repository {
	b.t.Helper()
	repo, err := openRepository(b.t.Context(), b.env("r0", "old"))
	require.NoError(b.t, err)
	return repo
}

func pods() contract.PodInput {
	return contract.PodInput{Fill: map[string]any{"domain": "example.org"}, Images: map[string]string{"db": "slipway.local/db@sha256:" + strings.Repeat("0", 64)}}
}

// installs is what an install of the old release leaves.
func (b *bench) installs() {
	b.t.Helper()
	require.NoError(b.t, installed.Record{Platform: "shop", Version: "1.0.0"}.Keep(b.t.Context(), b.client(), "demo"))
	files := os.DirFS(filepath.Join(b.dir, "old"))
	digest, err := platform.Digest(files)
	require.NoError(b.t, err)
	in := contract.Installed{Platform: "shop", Version: "1.0.0", Digest: digest, Config: []byte(`{"a":1}`)}
	before, err := b.repo().Installed(b.t.Context())
	require.NoError(b.t, err)
	require.NoError(b.t, b.repo().KeepInstalled(b.t.Context(), 1, before, in, files))
}

func (b *bench) backUp(run string) (contract.BackedUp, error) {
	return backUp(b.t.Context(), b.env(run, "new"), contract.BackupDataInput{PodInput: pods(), Data: "orders"})
}

func (b *bench) complete(run, style string, data ...contract.BackedUp) (contract.BackupSummary, error) {
	return complete(b.t.Context(), b.env(run, "new"), contract.BackupInput{Style: style, Data: data})
}

// begins is an upgrade with its backup.
func (b *bench) begins(run, style string) {
	b.t.Helper()
	b.installs()
	data, err := b.backUp(run)
	require.NoError(b.t, err)
	_, err = b.complete(run, style, data)
	require.NoError(b.t, err)
}

func (b *bench) migrate(before bool) (contract.Migrated, error) {
	do := migrateAfter
	if before {
		do = migrateBefore
	}
	return do(b.t.Context(), b.env("r2", "new"), contract.MigrateInput{PodInput: pods(), Data: []string{"orders"}})
}

func (b *bench) restore(run string, consent bool) (contract.Restored, error) {
	return restore(b.t.Context(), b.env(run, "old"), contract.RestoreInput{PodInput: pods(), Backup: "r1", Restore: consent})
}

// refused checks that err is a fault with a code, and says something.
func refused(t *testing.T, err error, code fault.Code, says ...string) {
	t.Helper()
	require.ErrorIs(t, err, &fault.Fault{Code: code})
	f, _ := errors.AsType[*fault.Fault](err)
	for _, s := range says {
		require.Contains(t, f.Error()+"\n"+f.Fix, s)
	}
}

// TestThePodsOfAStoppedClusterAreWaitedFor, before anything is done with the data.
func TestThePodsOfAStoppedClusterAreWaitedFor(t *testing.T) {
	b := newBench(t)
	b.begins("r1", contract.Graceful)
	asked, pods := 0, pods()
	again := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer again.Close()
	pods.Pods = again.URL
	_, err := migrateBefore(t.Context(), b.env("r2", "new"), contract.MigrateInput{PodInput: pods, Data: []string{"orders"}})
	require.NoError(t, err)
	require.Equal(t, 1, asked)
	_, err = restore(t.Context(), b.env("r3", "old"), contract.RestoreInput{PodInput: pods, Backup: "r1"})
	require.NoError(t, err)
	require.Equal(t, 2, asked)
	b.installs()
	_, err = backUp(t.Context(), b.env("r4", "new"), contract.BackupDataInput{PodInput: pods, Data: "orders"})
	require.NoError(t, err)
	require.Equal(t, 3, asked)
}

const livePod = "/api/v1/namespaces/shop/pods/slipway-data-orders"

func TestABackupIsProvedBeforeItCounts(t *testing.T) {
	b := newBench(t)
	b.installs()
	seen := map[string]any{}
	ready := b.api.Controller
	b.api.Controller = func(path string, o map[string]any) {
		ready(path, o)
		if path == livePod {
			seen = o
		}
	}
	data, err := b.backUp("r1")
	require.NoError(t, err)
	require.Equal(t, []any{"orders", int64(6), "3"}, []any{data.Name, data.Bytes, data.Check})
	require.Equal(t, "a\nb\nc\n", b.read("slipway-scratch-orders/rows"))
	pod := seen["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
	require.Equal(t, pods().Images["db"], pod["image"])
	require.Equal(t, "example.org", pod["env"].([]any)[0].(map[string]any)["value"])
	labels := seen["metadata"].(map[string]any)["labels"].(map[string]any)
	require.Equal(t, []any{"psql", "demo", "orders"}, []any{labels["app"], labels[kube.DeploymentLabel], labels[dataLabel]})
	require.Nil(t, b.api.Get(livePod), "it is gone again")
	require.Empty(t, b.record().Backup, "it does not count yet")

	s, err := b.complete("r1", "", data)
	require.NoError(t, err)
	require.Equal(t, []any{"r1", "1.0.0", "1.1.0"}, []any{s.ID, s.From, s.To})
	require.Equal(t, installed.Record{Platform: "shop", Version: "1.0.0", Toward: "1.1.0", Backup: "r1", Style: contract.Graceful}, b.record())
	whole, err := b.repo().Get(t.Context(), "r1")
	require.NoError(t, err)
	require.JSONEq(t, `{"a":1}`, string(whole.Config))
	archive, err := b.repo().Archive(t.Context(), backup.ReleaseKey("r1"), *whole.Release)
	require.NoError(t, err)
	old, err := backup.Release(archive)
	require.NoError(t, err)
	require.Equal(t, "1.0.0", old.Version)

	b.write("slipway-data-orders/rows", "d\n")
	again, err := b.backUp("r2")
	require.NoError(t, err, "an upgrade that goes on has its backup")
	require.Equal(t, data, again)
	s, err = b.complete("r2", "", again)
	require.NoError(t, err)
	require.Equal(t, "r1", s.ID)
}

func TestABackupThatIsNone(t *testing.T) {
	for name, c := range map[string]struct {
		edit [2]string
		code fault.Code
		says string
	}{
		"the dump fails":        {[2]string{"[cat, rows]", "[cat, none]"}, CodeBackup, "none"},
		"the dump is empty":     {[2]string{"[cat, rows]", "['true']"}, CodeBackup, "the dump is empty"},
		"it does not restore":   {[2]string{"cat >new && mv new rows", "exit 3"}, CodeBackup, "exit status 3"},
		"it has lost rows":      {[2]string{"[cat, rows]", "[head, -n1, rows]"}, CodeBackup, "orders: 1"},
		"the check fails":       {[2]string{"echo $now']", "exit 4']"}, CodeBackup, "orders: 3"},
		"the check says naught": {[2]string{"echo $now']", "true']"}, CodeBackup, "printed nothing"},
		"it says too much":      {[2]string{"echo $now']", "cat rows']"}, CodeBackup, "more than one line"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.installs()
			b.release("new", "1.1.0", "upgradableFrom: [1.0.0]\n"+strings.Replace(dataSections, c.edit[0], c.edit[1], 1))
			_, err := b.backUp("r1")
			refused(t, err, c.code, c.says, "nothing of the platform was changed")
			all, err := b.repo().List(t.Context())
			require.NoError(t, err)
			require.Empty(t, all)
			left, err := filepath.Glob(filepath.Join(b.dir, "state/backups/*/data/*/*"))
			require.NoError(t, err)
			require.Empty(t, left, "nothing of it is left")
			require.Nil(t, b.api.Get(livePod))
		})
	}
}

func TestWhatABackupNeeds(t *testing.T) {
	b := newBench(t)
	require.NoError(t, installed.Record{Platform: "shop", Version: "1.0.0"}.Keep(t.Context(), b.client(), "demo"))
	_, err := b.complete("r1", "")
	refused(t, err, CodeNotKept, "no copy of the release", "slipway install")
	b.installs()
	require.NoError(t, installed.Record{Platform: "shop", Version: "0.9.0"}.Keep(t.Context(), b.client(), "demo"))
	_, err = b.complete("r1", "")
	refused(t, err, CodeNotKept, "has release 1.0.0 of shop, and 0.9.0 is installed")

	b.api.Delete("/api/v1/namespaces/shop")
	absent, err := b.backUp("r1")
	require.NoError(t, err)
	require.Equal(t, contract.BackedUp{Name: "orders", Absent: true}, absent)
	b.api.Set(t, "/api/v1/namespaces/shop", "metadata: {name: shop}")
	b.api.Set(t, livePod, "metadata: {name: slipway-data-orders, namespace: shop}")
	_, err = b.backUp("r1")
	refused(t, err, CodePod, "a pod shop/slipway-data-orders that is not Slipway's", "then upgrade again; nothing of the platform was changed")
	b.api.Set(t, livePod, "metadata: {labels: {slipway.sh/deployment: demo, slipway.sh/data: orders}}")
	_, err = b.backUp("r1")
	require.NoError(t, err, "what a run that was killed has left goes")
	_, err = backUp(t.Context(), b.env("r1", "new"), contract.BackupDataInput{PodInput: contract.PodInput{Fill: pods().Fill}, Data: "orders"})
	refused(t, err, CodePod, "no", "image named db")
}

func TestBackupsInTheState(t *testing.T) {
	b := newBench(t)
	repo := b.repo()
	_, err := repo.Get(t.Context(), "none")
	refused(t, err, contract.CodeNoBackup, "there is no backup none")
	_, err = repo.Get(t.Context(), "../r1")
	refused(t, err, contract.CodeNoBackup)
	for _, id := range []string{"r1", "r2", "r3"} {
		require.NoError(t, repo.Put(t.Context(), contract.Backup{ID: id, Reason: contract.ForUpgrade}))
	}
	require.NoError(t, repo.Put(t.Context(), contract.Backup{ID: "r4", Reason: contract.ForRollback}))
	removed, err := repo.Retain(t.Context(), 1, "r1")
	require.NoError(t, err)
	require.Equal(t, []string{"r2"}, removed, "never one that something rests on; each reason for itself")

	long := bytes.Repeat([]byte("0123456789abcdef"), 600_000) // 9.6 MB
	w := repo.Writer(t.Context(), backup.DataKey("r1", "orders"))
	for part := range bytes.SplitAfterSeq(long, []byte("f")) {
		_, err := w.Write(part)
		require.NoError(t, err)
	}
	blob, err := w.Close()
	require.NoError(t, err)
	require.Len(t, blob.Chunks, 3)
	got, err := io.ReadAll(repo.Reader(t.Context(), backup.DataKey("r1", "orders"), blob))
	require.NoError(t, err)
	require.True(t, bytes.Equal(long, got))

	piece := filepath.Join(b.dir, "state", backup.DataKey("r1", "orders"), "000001")
	text, err := os.ReadFile(piece)
	require.NoError(t, err)
	text[7] ^= 1
	require.NoError(t, os.WriteFile(piece, text, 0o600))
	_, err = io.ReadAll(repo.Reader(t.Context(), backup.DataKey("r1", "orders"), blob))
	refused(t, err, backup.CodeDamaged, "000001", "its sha256 is")
	require.NoError(t, os.Remove(piece))
	_, err = io.ReadAll(repo.Reader(t.Context(), backup.DataKey("r1", "orders"), blob))
	refused(t, err, backup.CodeDamaged, "it is not there")

	manifest := filepath.Join(b.dir, "state/backups/r3/backup.json")
	text, err = os.ReadFile(manifest)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(manifest, bytes.Replace(text, []byte(`"r3"`), []byte(`"r1"`), 1), 0o600))
	all, err := repo.List(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 3)
	require.Contains(t, all[1].Problem, "it is torn")
}
