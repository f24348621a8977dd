package nodedata

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
)

// data is a volume with a cluster, and with what is not saved.
func data(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("tar"); err != nil {
		t.Skip("there is no tar")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"etcd/member/snap/db": "rows", "pki/ca.crt": "authority", "volumes/pvc-1/data/x": "theirs", "pods.json": "{}",
		"volumes/pvc-1/" + headerFile: "of a pod",
		"containerd/images":           "large", "kubelet/pods/1": "p", "logs/etcd.log": "l", "lock": "held by",
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o750))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o640))
	}
	require.NoError(t, os.Symlink("x", filepath.Join(dir, "volumes/pvc-1/data/link")))
	require.NoError(t, os.Link(filepath.Join(dir, "volumes/pvc-1/data/x"), filepath.Join(dir, "volumes/pvc-1/data/same")))
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(filepath.Join(dir, "volumes/pvc-1/data/x"), 999, 998))
	}
	return dir
}

func saved(t *testing.T, dir string) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, Save(t.Context(), dir, Header{Version: Version, Deployment: "demo", ID: "d1", At: time.Unix(0, 0).UTC()}, &b))
	return b.Bytes()
}

func file(t *testing.T, content []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "saved")
	require.NoError(t, os.WriteFile(name, content, 0o600))
	return name
}

// tree are the files below a directory with owner, mode and content.
func tree(t *testing.T, dir string) map[string]any {
	t.Helper()
	out := map[string]any{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := e.Info()
		require.NoError(t, err)
		name, _ := filepath.Rel(dir, path)
		stat := info.Sys().(*syscall.Stat_t)
		content := ""
		switch {
		case info.Mode().IsRegular():
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			content = string(text)
		case info.Mode()&fs.ModeSymlink != 0:
			content, err = os.Readlink(path)
			require.NoError(t, err)
		}
		out[name] = []any{info.Mode(), stat.Uid, stat.Gid, content}
		return nil
	}))
	return out
}

func requireEmpty(t *testing.T, want bool, dir string) {
	t.Helper()
	is, err := Empty(dir)
	require.NoError(t, err)
	require.Equal(t, want, is)
}

// TestWhatIsSavedIsRestored as it was, in the place of what there is.
func TestWhatIsSavedIsRestored(t *testing.T) {
	dir := data(t)
	name := file(t, saved(t, dir))
	h, err := Check(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, Header{Version: 1, Deployment: "demo", ID: "d1", At: time.Unix(0, 0).UTC()}, h)

	want := tree(t, dir)
	for gone := range want {
		top, _, _ := strings.Cut(gone, string(filepath.Separator))
		if top == "containerd" || top == "kubelet" || top == "logs" || gone == "." {
			delete(want, gone)
		}
	}
	empty := t.TempDir()
	requireEmpty(t, true, empty)
	require.NoError(t, os.WriteFile(filepath.Join(empty, lockFile), []byte("held by"), 0o640))
	require.NoError(t, Restore(t.Context(), empty, name))
	requireEmpty(t, false, empty)
	now := tree(t, empty)
	delete(now, ".")
	require.Equal(t, want, now)
	a, err := os.Stat(filepath.Join(empty, "volumes/pvc-1/data/x"))
	require.NoError(t, err)
	b, err := os.Stat(filepath.Join(empty, "volumes/pvc-1/data/same"))
	require.NoError(t, err)
	require.True(t, os.SameFile(a, b))

	require.NoError(t, os.WriteFile(filepath.Join(dir, "etcd/newer"), nil, 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, unfinished, "etcd/half"), 0o700)) // of one that was interrupted
	require.NoError(t, Restore(t.Context(), dir, name))
	now = tree(t, dir)
	delete(now, ".")
	require.Equal(t, want, now, "nothing is left of what was there")
}

// TestARestoreThatIsInterrupted leaves what no node starts on, from the first rename to the last
// one, and is done again.
func TestARestoreThatIsInterrupted(t *testing.T) {
	dir := data(t)
	name := file(t, saved(t, dir))
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "etcd")))
	half := func(want bool) {
		t.Helper()
		is, err := HalfRestored(dir)
		require.NoError(t, err)
		require.Equal(t, want, is)
	}
	ended := filepath.Join(t.TempDir(), "ended")
	require.NoError(t, os.WriteFile(ended, []byte("PK"), 0o600))
	require.Error(t, Restore(t.Context(), dir, ended))
	half(false)
	require.FileExists(t, filepath.Join(dir, "pki/ca.crt"), "nothing was replaced")

	cut := errors.New("killed")
	moved := func(old, now string) error {
		if now == filepath.Join(dir, "pki") {
			half(true)
			requireEmpty(t, false, dir)
			return cut
		}
		return os.Rename(old, now)
	}
	require.ErrorIs(t, restore(t.Context(), dir, name, moved), cut)
	require.DirExists(t, filepath.Join(dir, "etcd"))
	require.NoDirExists(t, filepath.Join(dir, "pki"))
	half(true)
	require.NoError(t, Restore(t.Context(), dir, name))
	half(false)
	require.FileExists(t, filepath.Join(dir, "pki/ca.crt"))
}

func plain(t *testing.T, compressed []byte) []byte {
	t.Helper()
	d, err := zstd.NewReader(nil)
	require.NoError(t, err)
	defer d.Close()
	out, err := d.DecodeAll(compressed, nil)
	require.NoError(t, err)
	return out
}

// TestAFileThatIsNotWholeIsNoSave, nor is one of something else.
func TestAFileThatIsNotWholeIsNoSave(t *testing.T) {
	whole := saved(t, data(t))
	for n := 0; n < len(whole); n += 7 {
		_, err := Check(t.Context(), file(t, whole[:n]))
		require.Error(t, err, "the first %d bytes", n)
		altered := bytes.Clone(whole)
		altered[n] ^= 1
		if _, err := Check(t.Context(), file(t, altered)); err == nil {
			require.Equal(t, plain(t, whole), plain(t, altered), "byte %d says nothing", n)
		}
	}
	dir := data(t)
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "etcd")))
	require.ErrorContains(t, Save(t.Context(), dir, Header{}, &bytes.Buffer{}), "no such file")
	_, err := Check(t.Context(), file(t, []byte("PK")))
	require.Error(t, err)
	var b bytes.Buffer
	require.NoError(t, Save(t.Context(), data(t), Header{Version: 2}, &b))
	_, err = Check(t.Context(), file(t, b.Bytes()))
	require.ErrorContains(t, err, "it has version 2; this program knows 1")
}

// TestTheVolumeOfTheNodeIsTakenAlone: a node that runs has it.
func TestTheVolumeOfTheNodeIsTakenAlone(t *testing.T) {
	dir := t.TempDir()
	release, err := Alone(t.Context(), dir)
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(dir, lockFile))
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errors.New("enough"))
	defer cancel()
	_, err = Alone(ctx, dir)
	require.EqualError(t, err, "enough")
	if !testing.Short() {
		_, err = Alone(t.Context(), dir)
		require.ErrorIs(t, err, &fault.Fault{Code: codeNodeRuns})
		require.Equal(t, fault.Locked, fault.ClassOf(err))
	}
	release()
	release, err = Alone(t.Context(), dir)
	require.NoError(t, err)
	release()
}
