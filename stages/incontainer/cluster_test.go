package incontainer

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/stages/contract"
)

// TestAClusterIsSavedAndRestored: onto an empty volume, and with force in the place of another.
func TestAClusterIsSavedAndRestored(t *testing.T) {
	if _, err := exec.LookPath("tar"); err != nil {
		t.Skip("there is no tar")
	}
	s := locked(t, "r1")
	put := func(s *State, name, text string) {
		t.Helper()
		file := filepath.Join(s.place.Node, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	put(s, "etcd/db", "first")
	put(s, "pki/ca.crt", "ca")
	opened(t, func(file string) error { return s.Open(t.Context(), file, "r1", "demo", "") })
	first := identity(t, s)
	out := filepath.Join(t.TempDir(), "out")
	require.ErrorIs(t, s.SaveCluster(t.Context(), "r2", "demo", out), &fault.Fault{Code: lock.CodeLost})
	require.NoError(t, s.SaveCluster(t.Context(), "r1", "demo", out))
	file := filepath.Join(out, contract.ClusterFile)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	refused := func(err error, says, fix string) {
		t.Helper()
		require.ErrorIs(t, err, &fault.Fault{Code: codeNoSave})
		require.Equal(t, fault.Usage, fault.ClassOf(err))
		require.ErrorContains(t, err, says)
		f, _ := errors.AsType[*fault.Fault](err)
		require.Contains(t, f.Fix, fix)
	}
	db := func(s *State) string {
		text, err := os.ReadFile(filepath.Join(s.place.Node, "etcd/db"))
		require.NoError(t, err)
		return string(text)
	}
	put(s, "etcd/db", "second")
	refused(s.RestoreCluster(t.Context(), lock.Holder{Run: "r1"}, "demo", file, false), "there is a cluster, whose data would be lost", "--restore FILE --force")
	refused(s.RestoreCluster(t.Context(), lock.Holder{Run: "r1"}, "other", file, true), "it is of deployment demo", "--name demo")
	torn := filepath.Join(t.TempDir(), "torn")
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(torn, whole[:len(whole)-9], 0o600))
	refused(s.RestoreCluster(t.Context(), lock.Holder{Run: "r1"}, "demo", torn, true), "not whole", "as it was saved")
	require.Equal(t, "second", db(s))
	require.NoError(t, s.RestoreCluster(t.Context(), lock.Holder{Run: "r1"}, "demo", file, true))
	require.Equal(t, "first", db(s))

	put(s, ".restoring", "")
	require.ErrorIs(t, s.SaveCluster(t.Context(), "r1", "demo", filepath.Join(t.TempDir(), "half")), &fault.Fault{Code: containers.CodeHalfRestored})
	refused(s.RestoreCluster(t.Context(), lock.Holder{Run: "r1"}, "demo", file, false), "data would be lost", "--restore FILE --force")
	require.NoError(t, s.RestoreCluster(t.Context(), lock.Holder{Run: "r1"}, "demo", file, true))
	require.NoFileExists(t, filepath.Join(s.place.Node, ".restoring"))

	fresh := locked(t, "r2")
	refused(fresh.RestoreCluster(t.Context(), lock.Holder{Run: "r2"}, "demo", torn, true), "not whole", "as it was saved")
	require.NoError(t, fresh.RestoreCluster(t.Context(), lock.Holder{Run: "r2"}, "demo", file, false), "nothing is known there")
	require.Equal(t, "first", db(fresh))
	require.Equal(t, first, identity(t, fresh))
	another := locked(t, "r3")
	opened(t, func(file string) error { return another.Open(t.Context(), file, "r3", "demo", "") })
	require.NotEqual(t, first, identity(t, another))
	refused(another.RestoreCluster(t.Context(), lock.Holder{Run: "r3"}, "demo", file, false), "of an earlier deployment", "--force")
	require.NoError(t, another.RestoreCluster(t.Context(), lock.Holder{Run: "r3"}, "demo", file, true))
}
