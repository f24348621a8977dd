package backup_test

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/backup"
	"github.com/slipway-sh/slipway/stages/internal/state"
)

func repository(t *testing.T) *backup.Repository {
	t.Helper()
	backend := state.Backend{Volume: t.TempDir()}
	s, err := backend.Open(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	r, err := backup.Open(t.Context(), backend, s)
	require.NoError(t, err)
	return r
}

// release has the same files whatever the umask was when they were written.
func release(umask fs.FileMode) fstest.MapFS {
	return fstest.MapFS{
		"platform.yaml": {Data: []byte("name: shop\n"), Mode: 0o666 &^ umask},
		"run.sh":        {Data: []byte("#!/bin/sh\n"), Mode: 0o777 &^ umask},
	}
}

func TestTheSameFilesMakeTheSameArchive(t *testing.T) {
	r := repository(t)
	one, err := r.Pack(t.Context(), backup.TargetKey("r1", "sha256:a"), release(0o022))
	require.NoError(t, err)
	again, err := r.Pack(t.Context(), backup.TargetKey("r1", "sha256:a"), release(0o077))
	require.NoError(t, err)
	require.Equal(t, one, again)
	archive, err := r.Archive(t.Context(), backup.TargetKey("r1", "sha256:a"), one)
	require.NoError(t, err)
	files, err := bounded.Unpack(archive)
	require.NoError(t, err)
	for name, mode := range map[string]fs.FileMode{"platform.yaml": 0o644, "run.sh": 0o755} {
		info, err := fs.Stat(files, name)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode())
	}
}

// TestAReleaseThatIsKeptIsNotWrittenAgain: what says how to read it would be another one for
// a moment.
func TestAReleaseThatIsKeptIsNotWrittenAgain(t *testing.T) {
	r := repository(t)
	in := contract.Installed{Platform: "shop", Version: "1.0.0", Digest: "sha256:a", Config: []byte(`{"a":1}`)}
	require.NoError(t, r.KeepInstalled(t.Context(), 1, nil, in, release(0)))
	before, err := r.Installed(t.Context())
	require.NoError(t, err)
	in.Config = []byte(`{"a":2}`)
	require.NoError(t, r.KeepInstalled(t.Context(), 1, before, in, fstest.MapFS{}))
	after, err := r.Installed(t.Context())
	require.NoError(t, err)
	require.JSONEq(t, `{"a":2}`, string(after.Config))
	require.Equal(t, before.Release, after.Release)
	_, err = r.Archive(t.Context(), backup.InstalledKey(in.Digest), after.Release)
	require.NoError(t, err)
}
