package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

func openDir(t *testing.T, dir string) (*Store, *directory) {
	t.Helper()
	s, err := Open(t.Context(), "file://"+dir, Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s, s.b.(*directory)
}

// TestDirectory_syncs: content is synced before it gets its name, the directory
// after that, and so is every directory that was made.
func TestDirectory_syncs(t *testing.T) {
	dir := t.TempDir()
	s, d := openDir(t, dir)
	var log []string
	d.files.Sync = func(f *os.File) error {
		name, err := filepath.Rel(dir, f.Name())
		require.NoError(t, err)
		if base := filepath.Base(name); strings.HasPrefix(base, atomicfile.Unfinished) {
			name = filepath.Join(filepath.Dir(name), "unfinished")
		}
		value, err := os.ReadFile(filepath.Join(dir, "a/b/k"))
		if errors.Is(err, fs.ErrNotExist) {
			value = []byte("nothing")
		}
		log = append(log, name+" while there is "+string(value))
		return f.Sync()
	}
	take := func() []string { defer func() { log = nil }(); return log }

	require.NoError(t, s.Create(t.Context(), "a/b/k", []byte("1")))
	require.Equal(t, []string{
		"a while there is nothing", ". while there is nothing", "a/b/unfinished while there is nothing", "a/b while there is 1",
	}, take())
	require.NoError(t, s.Put(t.Context(), "a/b/k", []byte("2")))
	require.Equal(t, []string{"a/b/unfinished while there is 1", "a/b while there is 2"}, take())
	require.NoError(t, s.Delete(t.Context(), "a/b/k"))
	require.Equal(t, []string{"a/b while there is nothing"}, take())

	d.files.Sync = func(*os.File) error { return syscall.EIO }
	require.ErrorIs(t, s.Put(t.Context(), "a/b/k", []byte("3")), &fault.Fault{Code: CodeUnreachable})
	require.ErrorIs(t, s.Create(t.Context(), "a/b/k", []byte("3")), &fault.Fault{Code: CodeUnreachable})
	d.files.Sync = nil
	_, err := s.Get(t.Context(), "a/b/k")
	require.ErrorIs(t, err, fs.ErrNotExist, "a file that could not be synced is not renamed")
	left, err := os.ReadDir(filepath.Join(dir, "a/b"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestDirectory_killed kills processes that write and create without pause:
// values stay whole, and nothing unfinished is listed.
func TestDirectory_killed(t *testing.T) {
	const variable = "SLIPWAY_TEST_STORE"
	if dir := os.Getenv(variable); dir != "" {
		s, _ := openDir(t, dir)
		for n := 0; ; n++ {
			value := []byte(strings.Repeat(fmt.Sprintf("%08d", n), 1<<13))
			if err := errors.Join(s.Put(t.Context(), "a/put", value), s.Create(t.Context(), fmt.Sprintf("a/c%d-%d", os.Getpid(), n), value)); err != nil {
				fmt.Println(err)
				return
			}
			fmt.Println("written", n)
		}
	}
	dir := t.TempDir()
	s, _ := openDir(t, dir)
	for round := range 10 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestDirectory_killed$")
		cmd.Env = append(os.Environ(), variable+"="+dir)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		written := 0
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if _, err := fmt.Sscanf(lines.Text(), "written %d", &written); err == nil && written > round {
				break
			}
		}
		require.NoError(t, cmd.Process.Kill())
		require.Error(t, cmd.Wait(), "it was killed")
		require.Greater(t, written, round)
		keys, err := s.List(t.Context(), "")
		require.NoError(t, err)
		require.Greater(t, len(keys), written)
		for _, key := range keys {
			value, err := s.Get(t.Context(), key)
			require.NoError(t, err)
			require.Equal(t, strings.Repeat(string(value[:8]), 1<<13), string(value), key)
		}
	}
}

// TestDirectory_unfinished: what a killed writer has left is no value.
func TestDirectory_unfinished(t *testing.T) {
	dir := t.TempDir()
	s, _ := openDir(t, dir)
	require.NoError(t, s.Put(t.Context(), "a/k", nil))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a", atomicfile.Unfinished+"x"), nil, 0o600))
	keys, err := s.List(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, []string{"a/k"}, keys)
}

// TestDirectory_damaged: anything else than a value is an error or left out.
func TestDirectory_damaged(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	s, _ := openDir(t, dir)
	require.NoError(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("x"), 0o600))
	require.NoError(t, os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "link")))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "away")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "directory"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o600))
	large, err := os.Create(filepath.Join(dir, "large"))
	require.NoError(t, err)
	require.NoError(t, errors.Join(large.Truncate(MaxBytes+1), large.Close()))

	damaged := &fault.Fault{Code: CodeDamaged}
	for _, key := range []string{"link", "pipe", "large"} {
		_, err := s.Get(t.Context(), key)
		require.ErrorIs(t, err, damaged, key)
	}
	for _, key := range []string{"directory", "file/below"} {
		_, err := s.Get(t.Context(), key)
		require.ErrorIs(t, err, fs.ErrNotExist, key)
		require.NoError(t, s.Delete(t.Context(), key))
	}
	require.ErrorIs(t, s.Put(t.Context(), "file/below", nil), damaged)
	require.ErrorIs(t, s.Create(t.Context(), "file/below", nil), damaged)
	require.Error(t, s.Put(t.Context(), "directory", nil))
	require.Error(t, s.Put(t.Context(), "away/k", nil), "it leads out of the store")
	_, err = s.Get(t.Context(), "away/secret")
	require.Error(t, err)
	require.NoFileExists(t, filepath.Join(outside, "k"))
	keys, err := s.List(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, []string{"file", "large"}, keys)

	_, err = Open(t.Context(), "file://"+filepath.Join(dir, "file"), Options{})
	require.ErrorIs(t, err, damaged)
	require.Equal(t, fault.Preflight, fault.ClassOf(err))
}

// stuck is a backend that does not respond.
type stuck struct{ backend }

func (stuck) get(ctx context.Context, _ string) ([]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestStore_doesNotWaitForever(t *testing.T) {
	s := &Store{b: stuck{}, limit: time.Millisecond, location: "s3://b"}
	_, err := s.Get(t.Context(), "k")
	require.ErrorIs(t, err, &fault.Fault{Code: CodeUnreachable})
	require.Equal(t, fault.Timeout, fault.ClassOf(err))
	require.ErrorContains(t, err, "no answer in time (1ms)")

	s.limit = time.Hour
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = s.Get(ctx, "k")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, fault.Bug, fault.ClassOf(err), "the caller's deadline has no code")
}

func TestStore_faults(t *testing.T) {
	bucket, dir := &Store{location: "s3://b"}, &Store{location: "file:///d", local: true}
	for _, c := range []struct {
		s    *Store
		err  error
		code fault.Code
		fix  string
	}{
		{dir, &fs.PathError{Op: "open", Path: "x", Err: syscall.EACCES}, CodeRefused, "credentials that may list, read, write and delete in file:///d"},
		{dir, &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, CodeFull, "free space in file:///d"},
		{dir, syscall.EROFS, CodeFull, "make it writable"},
		{dir, syscall.EIO, CodeUnreachable, "its disk"},
		{bucket, &kindError{Refused, errors.New("x")}, CodeRefused, "s3://b"},
		{bucket, &kindError{NoBucket, errors.New("x")}, CodeNoBucket, "make s3://b"},
		{bucket, &kindError{Other, errors.New("x")}, CodeUnreachable, "check that this machine can reach"},
		{bucket, bounded.ErrTooLarge, CodeDamaged, "move it away"},
	} {
		f, ok := errors.AsType[*fault.Fault](c.s.fail("read k", c.err))
		require.True(t, ok)
		require.Equal(t, c.code, f.Code, c.err)
		require.Contains(t, f.Fix, c.fix)
		require.Equal(t, fault.Step, f.Class)
	}
}
