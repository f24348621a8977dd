package copies

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/engine"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
)

const (
	firstID  = "aaaaaaaaaaaaaaaa"
	secondID = "bbbbbbbbbbbbbbbb"
)

// at is the folder of deployment demo on an engine, in a data folder of its own.
func at(t *testing.T, address, store string) *Folder {
	t.Helper()
	if os.Getenv(Env) == "" {
		t.Setenv(Env, t.TempDir())
	}
	f, err := Open("demo", engine.Location{Address: address}, store, "me")
	require.NoError(t, err)
	return f
}

// copied is a copy of a deployment as `slipway state copy` leaves it.
func copied(t *testing.T, dir, id string, restored int, generation int64, at time.Time, files map[string]string, backups string) {
	t.Helper()
	c := contract.Copy{Identity: contract.Identity{ID: id, Name: "demo", Restored: restored}, Run: "r1", Generation: generation, At: at, Backups: backups, Files: map[string]contract.CopiedFile{}}
	for name, text := range files {
		file := filepath.Base(name)
		c.Files[name] = contract.CopiedFile{Name: file}
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644))
	}
	text, err := json.Marshal(c)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, contract.CopyFile), text, 0o644))
}

func keep(t *testing.T, f *Folder, id string, restored int, generation int64, text string) {
	t.Helper()
	require.NoError(t, f.Keep(func(dir, _ string) error {
		copied(t, dir, id, restored, generation, time.Now(), map[string]string{contract.CopyStateFile: text}, "")
		return nil
	}))
}

// remove removes the copies, beside which there is nothing else.
func remove(t *testing.T, f *Folder) {
	t.Helper()
	left, err := f.Remove()
	require.NoError(t, err)
	require.Empty(t, left)
}

// holds is the state in the newest copy.
func holds(t *testing.T, f *Folder) string {
	t.Helper()
	k, err := f.Newest()
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(k.Dir, k.Files[contract.CopyStateFile].Name))
	require.NoError(t, err)
	return string(text)
}

func TestTheNewestCopyIsKept(t *testing.T) {
	f := at(t, "unix:///a", "")
	k, err := f.Newest()
	require.NoError(t, err)
	require.Nil(t, k)
	remove(t, f)

	keep(t, f, firstID, 0, 2, "two")
	require.Equal(t, "two", holds(t, f))
	keep(t, f, firstID, 0, 2, "two, later")
	require.Equal(t, "two, later", holds(t, f))
	keep(t, f, firstID, 0, 1, "one")
	require.Equal(t, "two, later", holds(t, f), "that of an earlier holder of the lock is left out")
	keep(t, f, firstID, 1, 1, "restored")
	require.Equal(t, "restored", holds(t, f), "in a state that was restored the lock begins anew")
	keep(t, f, secondID, 0, 1, "another deployment")
	require.Equal(t, "another deployment", holds(t, f))

	modes := map[string]fs.FileMode{}
	require.NoError(t, filepath.WalkDir(os.Getenv(Env), func(path string, e fs.DirEntry, err error) error {
		if info, err := e.Info(); err == nil && path != os.Getenv(Env) {
			modes[path] = info.Mode().Perm()
		}
		return err
	}))
	require.Len(t, modes, 3+2+4, "two folders of two files each, and those above; nothing of earlier copies")
	for path, mode := range modes {
		if info, err := os.Stat(path); runtime.GOOS != "windows" && err == nil {
			require.Equal(t, map[bool]fs.FileMode{true: 0o700, false: 0o600}[info.IsDir()], mode, path)
		}
	}
	remove(t, f)
	require.NoDirExists(t, f.dir)
}

// TestFoldersAreForTheirOwnerOnly, also those that were there.
func TestFoldersAreForTheirOwnerOnly(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes are others there")
	}
	f := at(t, "unix:///a", "")
	id := filepath.Join(f.own(), firstID)
	require.NoError(t, os.MkdirAll(id, 0o755))
	keep(t, f, firstID, 0, 1, "text")
	for dir := id; dir != os.Getenv(Env); dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o700), info.Mode().Perm(), dir)
	}
}

// TestACopyOfAnotherEngineBlocksNothing: neither one that cannot be read, nor a newer one of the
// same deployment, as where its cluster was restored here.
func TestACopyOfAnotherEngineBlocksNothing(t *testing.T) {
	here, there, bucket := at(t, "unix:///a", ""), at(t, "unix:///b", ""), at(t, "unix:///a", "s3://bucket")
	keep(t, there, firstID, 0, 9, "there")
	keep(t, bucket, secondID, 0, 1, "in the bucket")
	keep(t, here, firstID, 0, 1, "here")
	require.Equal(t, "here", holds(t, here))
	require.Equal(t, "there", holds(t, there))

	for _, other := range []*Folder{there, bucket} {
		k, err := other.Newest()
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(k.Dir, contract.CopyFile), []byte("{"), 0o600))
		_, err = other.Newest()
		require.ErrorIs(t, err, &fault.Fault{Code: contract.CodeCopy})
	}
	require.Equal(t, "here", holds(t, here))
	remove(t, here)
	k, err := here.Newest()
	require.NoError(t, err)
	require.Nil(t, k, "nothing is known of those of others")
	_, err = there.Newest()
	require.ErrorIs(t, err, &fault.Fault{Code: contract.CodeCopy}, "that one is still there")
}

// TestWhatSomebodyElseHasPutThereStays, and is named.
func TestWhatSomebodyElseHasPutThereStays(t *testing.T) {
	here, there := at(t, "unix:///a", ""), at(t, "unix:///b", "")
	keep(t, here, firstID, 0, 1, "here")
	keep(t, there, secondID, 0, 1, "there")
	aside, moved := filepath.Join(here.own(), firstID+".bak"), filepath.Join(here.own(), secondID)
	require.NoError(t, os.CopyFS(aside, os.DirFS(filepath.Join(here.own(), firstID))))
	require.NoError(t, os.CopyFS(moved, os.DirFS(filepath.Join(there.own(), secondID))))
	left, err := here.Remove()
	require.NoError(t, err)
	require.ElementsMatch(t, []string{aside, moved}, left)
	require.NoDirExists(t, filepath.Join(here.own(), firstID))
	require.FileExists(t, filepath.Join(aside, contract.CopyFile))
	require.FileExists(t, filepath.Join(moved, contract.CopyFile))
}

// TestWhereACopyWasTaken: that of this engine counts, and a destroy removes no other.
func TestWhereACopyWasTaken(t *testing.T) {
	here, there, bucket := at(t, "unix:///a", ""), at(t, "unix:///b", ""), at(t, "unix:///a", "s3://bucket?prefix=demo")
	keep(t, here, firstID, 0, 1, "here")
	keep(t, there, secondID, 0, 1, "there")
	k, err := here.Newest()
	require.NoError(t, err)
	require.Equal(t, firstID, k.ID)
	require.Empty(t, k.Engine)
	k, err = bucket.Newest()
	require.NoError(t, err)
	require.Nil(t, k, "it is of another state")
	for _, f := range []*Folder{here, there, bucket} {
		ids, err := f.IDs()
		require.NoError(t, err)
		require.Equal(t, []string{firstID, secondID}, ids, "wherever it is, it is the user's")
	}

	remove(t, here)
	k, err = here.Newest()
	require.NoError(t, err)
	require.Equal(t, secondID, k.ID)
	require.Equal(t, "unix:///b", k.Engine)
	require.Equal(t, "there", holds(t, there))
}

// TestAnEngineOfTheSameAddress on another machine is another one, wherever both machines have the
// user's data folder.
func TestAnEngineOfTheSameAddress(t *testing.T) {
	here, there := at(t, "unix:///a", ""), at(t, "unix:///a", "")
	keep(t, here, firstID, 0, 1, "of an earlier version, which knew no machines")
	here.engine.Machine, here.engine.Host, there.engine.Machine, there.engine.Host = "1", "laptop", "2", "desk"
	k, err := here.Newest()
	require.NoError(t, err)
	require.Empty(t, k.Engine)
	keep(t, here, firstID, 0, 1, "here")
	k, err = there.Newest()
	require.NoError(t, err)
	require.Equal(t, "unix:///a of machine laptop", k.Engine)
	remove(t, there)
	require.Equal(t, "here", holds(t, here))
}

// TestBackupsAreCopiedOnce: as long as they are the same.
func TestBackupsAreCopiedOnce(t *testing.T) {
	f := at(t, "unix:///a", "")
	var had []string
	keep := func(id, backups string) error {
		return f.Keep(func(dir, have string) error {
			had = append(had, have)
			files := map[string]string{contract.CopyStateFile: "s"}
			if backups != "" && backups != have {
				files[contract.CopyBackupsFile] = backups
			}
			copied(t, dir, id, 0, int64(len(had)), time.Now(), files, backups)
			return nil
		})
	}
	for _, backups := range []string{"", "x", "x", "y"} {
		require.NoError(t, keep(firstID, backups))
	}
	require.Equal(t, []string{"", "", "x", "x"}, had)
	k, err := f.Newest()
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(k.Dir, k.Files[contract.CopyBackupsFile].Name))
	require.NoError(t, err)
	require.Equal(t, "y", string(text))
}

// TestACopyComesBeforeItsBackups: until they are there, it has those of the copy before.
func TestACopyComesBeforeItsBackups(t *testing.T) {
	f := at(t, "unix:///a", "")
	now := time.Now()
	keep := func(id, state, backups string, file bool) {
		t.Helper()
		require.NoError(t, f.Keep(func(dir, _ string) error {
			copied(t, dir, id, 0, 1, now, map[string]string{contract.CopyStateFile: state, contract.CopyBackupsFile: backups}, backups)
			if !file {
				return os.Remove(filepath.Join(dir, contract.CopyBackupsFile))
			}
			return nil
		}))
	}
	has := func(state, backups string) {
		t.Helper()
		k, err := f.Newest()
		require.NoError(t, err)
		require.Equal(t, state, holds(t, f))
		require.Equal(t, backups, k.Backups)
		file, ok := k.Files[contract.CopyBackupsFile]
		require.Equal(t, backups != "", ok)
		if ok {
			text, err := os.ReadFile(filepath.Join(k.Dir, file.Name))
			require.NoError(t, err)
			require.Equal(t, backups, string(text))
		}
	}
	keep(firstID, "one", "x", false)
	has("one", "")
	keep(firstID, "one", "x", true)
	has("one", "x")
	keep(firstID, "two", "y", false)
	has("two", "x")
	keep(firstID, "two", "y", true)
	has("two", "y")
	now = now.Add(time.Second)
	keep(secondID, "three", "y", false)
	has("three", "")
}

func TestACopyThatFailsLeavesTheOneBefore(t *testing.T) {
	f := at(t, "unix:///a", "")
	keep(t, f, firstID, 0, 1, "first")
	require.EqualError(t, f.Keep(func(string, string) error { return errors.New("no space") }), "no space")
	require.ErrorContains(t, f.Keep(func(dir, _ string) error {
		copied(t, dir, "../../up", 0, 2, time.Now(), nil, "")
		return nil
	}), "no identity")
	require.Equal(t, "first", holds(t, f))
	entries, err := os.ReadDir(f.own())
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing is left of those that failed")

	k, err := f.Newest()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(k.Dir, contract.CopyFile), []byte("{"), 0o600))
	_, err = f.Newest()
	require.ErrorIs(t, err, &fault.Fault{Code: contract.CodeCopy})
	require.ErrorContains(t, err, k.Dir)
	keep(t, f, firstID, 0, 1, "again")
	require.Equal(t, "again", holds(t, f), "one that cannot be read is replaced")
	require.NoError(t, os.WriteFile(filepath.Join(k.Dir, contract.CopyFile), []byte("{"), 0o600))
	remove(t, f)
	require.NoDirExists(t, k.Dir)
}

func TestAnUnfinishedCopyIsSweptOnceNobodyTakesIt(t *testing.T) {
	f := at(t, "unix:///a", "")
	killed := func() string {
		require.NoError(t, os.MkdirAll(f.own(), 0o700))
		dir, err := os.MkdirTemp(f.own(), unfinished)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "state.tar"), []byte("secret"), 0o600))
		was := time.Now().Add(-time.Minute)
		require.NoError(t, os.Chtimes(dir, was, was))
		return dir
	}
	left := killed()
	require.NoError(t, f.Keep(func(dir, _ string) error {
		require.NoDirExists(t, left)
		copied(t, dir, firstID, 0, 1, time.Now(), map[string]string{contract.CopyStateFile: "first"}, "")
		was := time.Now().Add(-time.Minute)
		require.NoError(t, os.Chtimes(dir, was, was))
		f.sweep()
		require.DirExists(t, dir, "this one is being taken")
		return nil
	}))
	require.Equal(t, "first", holds(t, f))
	left = killed()
	remove(t, f)
	require.NoDirExists(t, left)
	require.NoDirExists(t, f.own())
}
