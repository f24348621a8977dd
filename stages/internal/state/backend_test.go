package state_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/internal/state"
)

// machine is the place of a deployment seen from a machine of its own: bucket is
// the directory that stands for the bucket.
func machine(t *testing.T, bucket string) (state.Backend, *store.Store) {
	t.Helper()
	p := state.Backend{Volume: t.TempDir(), URL: "file://" + bucket, MakeKey: true}
	s, err := p.Open(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return p, s
}

func writeKubeconfig(t *testing.T, p state.Backend, text string) {
	t.Helper()
	file := filepath.Join(p.Volume, "secrets/kubeconfig")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
}

const canary = "c4nary-kubeconfig"

// TestKubeconfigIsSealed: another machine reads the kubeconfig with the key, and
// not without; in the bucket it is never readable.
func TestKubeconfigIsSealed(t *testing.T) {
	bucket := t.TempDir()
	first, s := machine(t, bucket)
	_, err := first.Kubeconfig(t.Context(), s)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, first.RestoreKubeconfig(t.Context(), s), "there is none yet")
	require.NoError(t, first.CheckSecrets(t.Context(), s))

	writeKubeconfig(t, first, canary)
	changed, err := first.SealKubeconfig(t.Context(), s, 1, true)
	require.NoError(t, err)
	require.True(t, changed)
	known, err := first.HasKubeconfig(t.Context(), s)
	require.NoError(t, err)
	require.False(t, known, "it was looked only, and another engine knows nothing of the volume")
	for _, want := range []bool{true, false} {
		changed, err = first.SealKubeconfig(t.Context(), s, 1, false)
		require.NoError(t, err)
		require.Equal(t, want, changed)
	}
	text, err := os.ReadFile(filepath.Join(bucket, "secrets/kubeconfig/000000000001.age"))
	require.NoError(t, err)
	require.NotContains(t, string(text), canary)
	require.NoFileExists(t, filepath.Join(bucket, "secrets/identity"), "the key stays on the volume")

	t.Run("without the key", func(t *testing.T) {
		second, s := machine(t, bucket)
		known, err := second.HasKubeconfig(t.Context(), s)
		require.NoError(t, err)
		require.True(t, known)
		missing := &fault.Fault{Code: store.CodeBadKey}
		require.ErrorIs(t, second.CheckSecrets(t.Context(), s), missing)
		require.ErrorIs(t, second.RestoreKubeconfig(t.Context(), s), missing)
		_, err = second.Kubeconfig(t.Context(), s)
		require.ErrorIs(t, err, missing)
		require.NoFileExists(t, filepath.Join(second.Volume, "secrets/identity"), "no other key is made")
		second.MakeKey = false
		f, _ := errors.AsType[*fault.Fault](second.CheckSecrets(t.Context(), s))
		require.ErrorIs(t, f, missing)
		require.Contains(t, f.Fix, "give the key that the deployment was installed with", "a new one would not do")
		_, empty := machine(t, t.TempDir())
		f, _ = errors.AsType[*fault.Fault](second.CheckSecrets(t.Context(), empty))
		require.Contains(t, f.Fix, "make one with age-keygen")
	})
	t.Run("with another key", func(t *testing.T) {
		second, s := machine(t, bucket)
		_, text, err := store.NewVaultKey()
		require.NoError(t, err)
		second.KeyFile = filepath.Join(t.TempDir(), "key")
		require.NoError(t, os.WriteFile(second.KeyFile, text.Reveal(), 0o400))
		err = second.CheckSecrets(t.Context(), s)
		require.ErrorIs(t, err, &fault.Fault{Code: store.CodeBadKey})
		require.Equal(t, fault.Preflight, fault.ClassOf(err))
	})
	t.Run("with the key", func(t *testing.T) {
		second, s := machine(t, bucket)
		second.KeyFile = filepath.Join(first.Volume, "secrets/identity")
		require.NoError(t, second.CheckSecrets(t.Context(), s))
		require.NoError(t, second.RestoreKubeconfig(t.Context(), s))
		text, err := os.ReadFile(filepath.Join(second.Volume, "secrets/kubeconfig"))
		require.NoError(t, err)
		require.Equal(t, canary, string(text))
		writeKubeconfig(t, second, "newer")
		require.NoError(t, second.RestoreKubeconfig(t.Context(), s))
		got, err := second.Kubeconfig(t.Context(), s)
		require.NoError(t, err)
		require.Equal(t, "newer", string(got), "what is here stays")
	})
}

// TestTheVolumeIsClosed: what looks for a key or a kubeconfig there leaves nothing
// open.
func TestTheVolumeIsClosed(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("there is no /proc")
	}
	first, s := machine(t, t.TempDir())
	writeKubeconfig(t, first, canary)
	_, err := first.SealKubeconfig(t.Context(), s, 1, false)
	require.NoError(t, err)
	second := first
	second.Volume, second.KeyFile = t.TempDir(), filepath.Join(first.Volume, "secrets/identity")
	require.NoError(t, second.RestoreKubeconfig(t.Context(), s))

	open, err := filepath.Glob("/proc/self/fd/*")
	require.NoError(t, err)
	for _, fd := range open {
		at, _ := os.Readlink(fd) // one that is closed since is nobody's
		require.NotEqual(t, first.Volume, at)
		require.NotEqual(t, second.Volume, at)
	}
}

func TestTheVolumeNeedsNoKey(t *testing.T) {
	p := state.Backend{Volume: t.TempDir()}
	s := open(t, p.Volume)
	require.NoError(t, p.CheckSecrets(t.Context(), s))
	writeKubeconfig(t, p, canary)
	changed, err := p.SealKubeconfig(t.Context(), s, 1, false)
	require.NoError(t, err)
	require.False(t, changed)
	known, err := p.HasKubeconfig(t.Context(), s)
	require.NoError(t, err)
	require.True(t, known)
	require.NoFileExists(t, filepath.Join(p.Volume, "secrets/identity"))
}

func TestPurge_bucket(t *testing.T) {
	p, s := machine(t, t.TempDir())
	writeKubeconfig(t, p, canary)
	_, err := p.SealKubeconfig(t.Context(), s, 1, false)
	require.NoError(t, err)
	hold(t, s, "r1")
	ctx, w := work(t, p, s, "r1")
	for _, key := range []string{"journal/a.b.json", "state.yaml", "terraform/terraform.tfstate", "runs/r1/report.json", "secrets/ca.age", "secrets/ca/000000000009.age"} {
		require.NoError(t, s.Put(t.Context(), key, []byte("x")))
	}
	require.NoError(t, state.Purge(ctx, p, w))
	keys, err := s.List(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, []string{"lock/000000000001.json", "runs/r1/report.json", "secrets/ca/000000000009.age"}, keys, "the last one is of a later holder of the lock")
	require.NoDirExists(t, filepath.Join(p.Volume, "secrets"))
}

// TestPublish: the files of a step get to the bucket, and of a huge one the end.
func TestPublish(t *testing.T) {
	p, s := machine(t, t.TempDir())
	dir := filepath.Join(p.Volume, "runs/r1/steps/a.b")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "more"), 0o755))
	for name, text := range map[string]string{"log.txt": "said", "more/x.json": "{}", ".tmp-1": "unfinished"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	huge := filepath.Join(dir, "huge.txt")
	require.NoError(t, os.WriteFile(huge, []byte("begin"), 0o644))
	require.NoError(t, os.Truncate(huge, store.MaxBytes+5))
	f, err := os.OpenFile(huge, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString("the end")
	require.NoError(t, err)
	require.NoError(t, f.Close())

	require.NoError(t, p.Publish(t.Context(), s, dir))
	keys, err := s.List(t.Context(), "runs/r1/steps/")
	require.NoError(t, err)
	require.Equal(t, []string{"runs/r1/steps/a.b/huge.txt", "runs/r1/steps/a.b/log.txt", "runs/r1/steps/a.b/more/x.json"}, keys)
	got, err := s.Get(t.Context(), "runs/r1/steps/a.b/huge.txt")
	require.NoError(t, err)
	require.Len(t, got, store.MaxBytes)
	require.Contains(t, string(got[:40]), "12 bytes left out\n")
	require.Equal(t, "the end", string(got[len(got)-7:]))
}
