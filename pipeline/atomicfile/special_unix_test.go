//go:build unix

package atomicfile_test

import (
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

// TestNothingIsPutInThePlaceOfWhatIsNoRegularFile with any of the functions, also behind a link.
func TestNothingIsPutInThePlaceOfWhatIsNoRegularFile(t *testing.T) {
	for what, make := range map[string]func(t *testing.T, file string){
		"a directory":               func(t *testing.T, file string) { require.NoError(t, os.Mkdir(file, 0o700)) },
		"a link that leads nowhere": func(t *testing.T, file string) { require.NoError(t, os.Symlink("nowhere", file)) },
		"a special file": func(t *testing.T, file string) {
			l, err := net.Listen("unix", file)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, l.Close()) })
		},
	} {
		t.Run(what, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "")
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
			file, link := filepath.Join(dir, "f"), filepath.Join(dir, "link")
			make(t, file)
			require.NoError(t, os.Symlink("f", link))
			before, err := os.Lstat(file)
			require.NoError(t, err)

			root, err := os.OpenRoot(dir)
			require.NoError(t, err)
			defer func() { require.NoError(t, root.Close()) }()
			d := atomicfile.Dir{Root: root}
			for _, err := range []error{
				atomicfile.Write(file, []byte("x"), 0o600), atomicfile.Write(link, []byte("x"), 0o600),
				atomicfile.Overwrite(file, []byte("x"), 0o600), atomicfile.Overwrite(link, []byte("x"), 0o600),
				d.Replace(t.Context(), "f", []byte("x"), 0o600), d.Replace(t.Context(), "link", []byte("x"), 0o600),
			} {
				require.ErrorIs(t, err, atomicfile.ErrSpecial)
			}
			require.ErrorContains(t, atomicfile.Write(file, nil, 0o600), file+" is "+what)
			after, err := os.Lstat(file)
			require.NoError(t, err)
			require.Equal(t, before.Mode(), after.Mode())
			names, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Len(t, names, 2, "nothing unfinished is left, and nothing at the end of the link")
		})
	}
}

// TestAPipeIsWrittenTo: it stays a pipe, and its reader gets what a file would have.
func TestAPipeIsWrittenTo(t *testing.T) {
	dir := t.TempDir()
	pipe, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.Symlink(pipe, link))
	_, err := atomicfile.Target(pipe)
	require.ErrorIs(t, err, atomicfile.ErrSpecial)
	require.True(t, atomicfile.IsStream(link))
	for _, write := range []func() error{
		func() error { return atomicfile.Write(pipe, []byte("text"), 0o600) },
		func() error { return atomicfile.Write(link, []byte("text"), 0o600) },
		func() error { return atomicfile.Overwrite(link, []byte("text"), 0o600) },
	} {
		r, err := os.OpenFile(pipe, os.O_RDWR, 0) // which waits for nobody
		require.NoError(t, err)
		require.NoError(t, write())
		got := make([]byte, 4)
		require.NoError(t, r.SetReadDeadline(time.Now().Add(10*time.Second)))
		_, err = io.ReadFull(r, got)
		require.NoError(t, err)
		require.Equal(t, "text", string(got))
		require.NoError(t, r.Close())
		info, err := os.Lstat(pipe)
		require.NoError(t, err)
		require.Equal(t, fs.ModeNamedPipe, info.Mode().Type())
	}
}

// TestStandardOutputIsWrittenTo: a file that the shell has opened keeps what was written before.
func TestStandardOutputIsWrittenTo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out")
	f, err := os.Create(file)
	require.NoError(t, err)
	own := os.Stdout
	os.Stdout = f
	t.Cleanup(func() { os.Stdout = own })
	_, err = f.WriteString("before ")
	require.NoError(t, err)
	require.NoError(t, atomicfile.Write(file, []byte("text"), 0o600))
	_, err = f.WriteString(" after")
	require.NoError(t, err)
	os.Stdout = own
	require.NoError(t, f.Close())
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "before text after", string(text))
}
