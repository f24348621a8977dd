package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Data of etcd 3.4, tried with 3.7.3: it panics once it has answered for a moment.
func TestDataOfAnotherEtcdIsLeftAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	require.NoError(t, ownEtcd(dir), "a new cluster")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "member"), 0o700))
	require.NoError(t, ownEtcd(dir), "its own")

	require.NoError(t, os.WriteFile(filepath.Join(dir, "series"), []byte("3.6\n"), 0o600))
	require.ErrorContains(t, ownEtcd(dir), "etcd 3.6 made the data of this cluster, and etcd 3.7 cannot read it")
	require.NoError(t, os.Remove(filepath.Join(dir, "series")))
	require.ErrorContains(t, ownEtcd(dir), "etcd 3.4 made the data")
	require.NoFileExists(t, filepath.Join(dir, "series"), "nothing has changed")
}

func TestSeriesIsThatOfTheModule(t *testing.T) {
	mod, err := os.ReadFile("../../ci/dev/bundle/tools/etcd/go.mod")
	require.NoError(t, err)
	require.Contains(t, string(mod), "go.etcd.io/etcd/server/v3 v"+etcdSeries+".")
}
