package state_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/state"
)

// volume is a state with some values, which a run has the lock of.
func volume(t *testing.T, run string, values map[string]string) (state.Place, *store.Store, *state.Work) {
	t.Helper()
	p := state.Place{Volume: t.TempDir()}
	s := open(t, p.Volume)
	for key, value := range values {
		require.NoError(t, s.Put(t.Context(), key, []byte(value)))
	}
	hold(t, s, run)
	_, w := work(t, p, s, run)
	return p, s, w
}

func copied(t *testing.T, p state.Place, w *state.Work, have string) (string, contract.Copy) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "copy")
	require.NoError(t, p.Copy(t.Context(), w, out, have, contract.Copy{Run: "r9", Stored: contract.Stored{Cluster: true}}))
	text, err := os.ReadFile(filepath.Join(out, contract.CopyFile))
	require.NoError(t, err)
	var c contract.Copy
	require.NoError(t, json.Unmarshal(text, &c))
	return out, c
}

// all are the values of a store, by key.
func all(t *testing.T, s *store.Store) map[string]string {
	t.Helper()
	keys, err := s.List(t.Context(), "")
	require.NoError(t, err)
	out := map[string]string{}
	for _, key := range keys {
		data, err := s.Get(t.Context(), key)
		require.NoError(t, err)
		out[key] = string(data)
	}
	return out
}

// TestTheFirstIdentityStays: a late one of an earlier holder of the lock counts for nothing.
func TestTheFirstIdentityStays(t *testing.T) {
	_, s, _ := volume(t, "r9", nil)
	own, err := state.MakeIdentity(t.Context(), s, 5, "demo")
	require.NoError(t, err)
	require.NoError(t, state.TakeIdentity(t.Context(), s, 7, "other", "demo", time.Now()))
	require.NoError(t, s.Put(t.Context(), "deployment/000000000004.json", []byte(`{"id":"late"}`)))
	now, err := state.Identity(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, own, now)
}

// TestAStateIsRestoredFromACopy: of what has versions the newest is lower than that of any run,
// for in another volume the lock begins with its first generation.
func TestAStateIsRestoredFromACopy(t *testing.T) {
	p, s, w := volume(t, "r9", map[string]string{
		"runs/r1/report.json": "record", "runs/r1/steps/a.b/log.txt": "log",
		"secrets/certificates/000000000008.age": "c", "secrets/certificates/000000000009.age": "d", "cluster/000000000009.json": "{uid}",
		"state/000000000007.yaml": "platform: 1.0.0", "state/000000000009.yaml": "platform: 2.0.0",
		"terraform/000000000008.tfstate": "{}", "terraform/000000000009.tfstate": "{serial}", "latest/000000000009": "r1\n",
		"journal/a.b/000000000009.json": "attempt", "secrets/kubeconfig": "k", "secrets/identity": "i", "secrets/generated.age": "g",
		"installed/release.json": "{}", "unsaved/r3.tfstate": "u", "backups/r2/backup.json": "{}", "backups/r2/data/db/dump": "rows",
	})
	_, err := os.Stat(filepath.Join(p.Volume, "deployment"))
	require.ErrorIs(t, err, os.ErrNotExist)
	none := t.TempDir()
	require.NoError(t, p.Copy(t.Context(), w, none, "", contract.Copy{}))
	require.NoFileExists(t, filepath.Join(none, contract.CopyFile), "it has no identity")
	identity, err := state.MakeIdentity(t.Context(), s, 1, "demo")
	require.NoError(t, err)
	again, err := state.MakeIdentity(t.Context(), s, 1, "demo")
	require.NoError(t, err)
	require.Equal(t, identity, again)

	dir, c := copied(t, p, w, "")
	require.Equal(t, *identity, c.Identity)
	require.Equal(t, "r9", c.Run)
	require.EqualValues(t, 1, c.Generation)
	require.True(t, c.Stored.Cluster)
	require.Empty(t, c.LeftOut)
	for _, name := range []string{contract.CopyFile, contract.CopyStateFile, contract.CopyBackupsFile} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), name)
	}
	same, second := copied(t, p, w, c.Backups)
	require.NoFileExists(t, filepath.Join(same, contract.CopyBackupsFile), "it is there already")
	require.Equal(t, c.Backups, second.Backups)

	fresh, other, v := volume(t, "r10", nil)
	restored, err := fresh.Restore(t.Context(), v, dir)
	require.NoError(t, err)
	require.Equal(t, identity.ID, restored.ID)
	require.Equal(t, 1, restored.Restored)
	now := all(t, other)
	for key := range now {
		if strings.HasPrefix(key, "lock/") || strings.HasPrefix(key, "deployment/") {
			delete(now, key)
		}
	}
	require.Equal(t, map[string]string{
		"runs/r1/report.json": "record", "runs/r1/steps/a.b/log.txt": "log",
		"secrets/certificates/000000000000.age": "d", "cluster/000000000000.json": "{uid}",
		"state/000000000000.yaml": "platform: 2.0.0", "terraform/000000000000.tfstate": "{serial}", "latest/000000000000": "r1\n",
		"secrets/kubeconfig": "k", "secrets/identity": "i", "secrets/generated.age": "g",
		"installed/release.json": "{}", "unsaved/r3.tfstate": "u", "backups/r2/backup.json": "{}", "backups/r2/data/db/dump": "rows",
	}, now)
	run, err := state.Latest(t.Context(), other)
	require.NoError(t, err)
	require.Equal(t, "r1", run)
	require.NoError(t, state.PutLatest(t.Context(), v.Store, v.Generation, "r10"))
	run, err = state.Latest(t.Context(), other)
	require.NoError(t, err)
	require.Equal(t, "r10", run, "a run that comes after counts")

	_, err = fresh.Restore(t.Context(), v, t.TempDir())
	require.NoError(t, err, "there is a state: nothing is read")
	_, c = copied(t, fresh, v, "")
	require.Equal(t, 1, c.Restored)
	require.False(t, c.Older(&second), "though the generation of the lock is the first again")
}

// TestACopyOfManyRuns has the records of all of them, and the logs of the last ones.
func TestACopyOfManyRuns(t *testing.T) {
	values := map[string]string{}
	for n := range 25 {
		run := "runs/r" + string(rune('a'+n))
		values[run+"/report.json"], values[run+"/config.yaml"], values[run+"/steps/a.b/log.txt"] = "record", "c", "log"
	}
	p, s, w := volume(t, "r9", values)
	_, err := state.MakeIdentity(t.Context(), s, 1, "demo")
	require.NoError(t, err)
	dir, _ := copied(t, p, w, "")
	fresh, other, v := volume(t, "r10", nil)
	_, err = fresh.Restore(t.Context(), v, dir)
	require.NoError(t, err)
	now := all(t, other)
	require.Equal(t, "record", now["runs/ra/report.json"])
	require.Equal(t, "c", now["runs/ra/config.yaml"])
	require.NotContains(t, now, "runs/ra/steps/a.b/log.txt")
	require.NotContains(t, now, "runs/re/steps/a.b/log.txt")
	require.Equal(t, "log", now["runs/rf/steps/a.b/log.txt"])
}

// TestARestoreThatIsInterrupted, or that fails, is no state: the next one does it again.
func TestARestoreThatIsInterrupted(t *testing.T) {
	p, s, w := volume(t, "r9", map[string]string{"secrets/generated.age": "g", "latest/000000000009": "r1\n", "backups/r2/backup.json": "{}"})
	_, err := state.MakeIdentity(t.Context(), s, 1, "demo")
	require.NoError(t, err)
	dir, _ := copied(t, p, w, "")
	fresh, other, v := volume(t, "r10", nil)
	for _, name := range []string{contract.CopyStateFile, contract.CopyBackupsFile} {
		file := filepath.Join(dir, name)
		whole, err := os.ReadFile(file)
		require.NoError(t, err)
		for n := range len(whole) - 1 {
			require.NoError(t, os.WriteFile(file, whole[:n], 0o600))
			_, err := fresh.Restore(t.Context(), v, dir)
			require.ErrorIs(t, err, state.ErrBadCopy, n)
		}
		require.NoError(t, os.WriteFile(file, whole, 0o600))
	}
	require.Len(t, all(t, other), 1, "nothing but the lock")

	inTheWay := filepath.Join(fresh.Volume, "secrets")
	require.NoError(t, os.WriteFile(inTheWay, nil, 0o600))
	_, err = fresh.Restore(t.Context(), v, dir)
	require.Error(t, err)
	require.NotErrorIs(t, err, state.ErrBadCopy, "the copy is not to blame")
	half, err := state.Restoring(t.Context(), other)
	require.NoError(t, err)
	require.True(t, half)
	none, err := state.Identity(t.Context(), other)
	require.NoError(t, err)
	require.Nil(t, none)

	require.NoError(t, os.Remove(inTheWay))
	_, err = fresh.Restore(t.Context(), v, dir)
	require.NoError(t, err)
	now := all(t, other)
	require.Equal(t, "g", now["secrets/generated.age"])
	require.Equal(t, "{}", now["backups/r2/backup.json"])
	half, err = state.Restoring(t.Context(), other)
	require.NoError(t, err)
	require.False(t, half)
}

// TestOfABucketTheKeyIsCopied: an engine throws away nothing else of the state.
func TestOfABucketTheKeyIsCopied(t *testing.T) {
	p, s := machine(t, t.TempDir())
	hold(t, s, "r9")
	_, w := work(t, p, s, "r9")
	_, err := state.MakeIdentity(t.Context(), s, 1, "demo")
	require.NoError(t, err)
	_, c := copied(t, p, w, "")
	require.Empty(t, c.Files, "there is none yet")
	writeKubeconfig(t, p, canary)
	_, err = p.SealKubeconfig(t.Context(), s, 1, false)
	require.NoError(t, err)
	dir, c := copied(t, p, w, "")
	require.Equal(t, "identity", c.Files[contract.CopyIdentity].Name)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2)

	// A volume that has lost the key gets it back.
	second := state.Place{Volume: t.TempDir(), URL: p.URL, MakeKey: true, MadeKeyFile: filepath.Join(dir, "identity")}
	text, err := second.Kubeconfig(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, canary, string(text))
	require.FileExists(t, filepath.Join(second.Volume, "secrets/identity"))
	var hidden []string
	require.NoError(t, second.Secrets(func(text string) { hidden = append(hidden, text) }))
	require.Contains(t, strings.Join(hidden, "\n"), "AGE-SECRET-KEY-")
}

// TestAClusterIsLost with its volume, unless a destroy has emptied that, whatever ran since.
func TestAClusterIsLost(t *testing.T) {
	p, s, w := volume(t, "r1", nil)
	lost := func() bool {
		t.Helper()
		is, err := p.ClusterLost(t.Context(), s)
		require.NoError(t, err)
		return is
	}
	writeKubeconfig(t, p, "k")
	require.False(t, lost(), "the volume is not mounted")
	p.Node = t.TempDir()
	require.True(t, lost())
	text, err := (&report.Run{ID: "r1", Workflow: "destroy"}).Encode()
	require.NoError(t, err)
	require.NoError(t, state.Keep(t.Context(), s, "r1", map[string][]byte{report.RecordFile: text}))
	require.NoError(t, state.PutLatest(t.Context(), s, 1, "r1"))
	require.True(t, lost(), "a destroy that has removed no cluster is no reason")
	require.NoError(t, os.WriteFile(filepath.Join(p.Node, ".restoring"), nil, 0o600))
	require.False(t, lost(), "a restore has not ended")
	require.NoError(t, os.Remove(filepath.Join(p.Node, ".restoring")))
	require.NoError(t, os.MkdirAll(filepath.Join(p.Node, "pki"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(p.Node, "pki/ca.crt"), nil, 0o600))
	require.False(t, lost())

	require.NoError(t, os.RemoveAll(filepath.Join(p.Node, "pki")))
	require.NoError(t, p.ForgetCluster(t.Context(), w))
	require.NoError(t, p.ForgetCluster(t.Context(), w), "again")
	require.False(t, lost(), "a destroy has emptied it")
}

// TestTheAccessToAClusterIsForgotten in a bucket, too, and only under the lock.
func TestTheAccessToAClusterIsForgotten(t *testing.T) {
	p, s := machine(t, t.TempDir())
	writeKubeconfig(t, p, "k")
	_, err := p.SealKubeconfig(t.Context(), s, 1, false)
	require.NoError(t, err)
	hold(t, s, "r1")
	_, w := work(t, p, s, "r1")
	require.NoError(t, p.ForgetCluster(t.Context(), w))
	here, known, err := p.HasKubeconfig(t.Context(), s)
	require.NoError(t, err)
	require.False(t, here || known)

	writeKubeconfig(t, p, "of the next run")
	takeAway(t, s, "r2")
	require.ErrorIs(t, p.ForgetCluster(t.Context(), w), lost)
	require.FileExists(t, filepath.Join(p.Volume, "secrets/kubeconfig"))
}
