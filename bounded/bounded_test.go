package bounded_test

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/bounded"
)

func TestRead(t *testing.T) {
	for _, n := range []int{0, 1, bounded.Written} {
		got, err := bounded.Read(bytes.NewReader(make([]byte, n)), bounded.Written)
		require.NoError(t, err)
		require.Len(t, got, n)
	}
	for _, r := range []io.Reader{bytes.NewReader(make([]byte, bounded.Written+1)), zeros{}} {
		_, err := bounded.Read(r, bounded.Written)
		require.ErrorIs(t, err, bounded.ErrTooLarge)
		require.EqualError(t, err, "larger than what is read of such a file, 1 MiB")
	}
}

// zeros never ends.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestLongErrorsAreCut(t *testing.T) {
	require.NoError(t, bounded.Error(nil))
	require.Equal(t, io.EOF, bounded.Error(io.EOF))
	err := bounded.Error(fmt.Errorf("%s: %w", strings.Repeat("ü", 1<<20), io.EOF))
	require.ErrorIs(t, err, io.EOF)
	require.Less(t, len(err.Error()), 5000)
	require.True(t, utf8.ValidString(err.Error()))
}

func TestProblemsAreLinesOfWhichThereAreNotMany(t *testing.T) {
	var p bounded.Problems
	p.Add("%q, %s: %w", "a\nb", "c\r\nerror\x1b[2J\u202e\xff", io.EOF)
	require.EqualError(t, p[0], `"a\nb", c\r\nerror\x1b[2J\u202e`+"\ufffd: EOF")
	require.ErrorIs(t, p[0], io.EOF)
	for range 300 {
		p.Add("%s", strings.Repeat("x", 1<<16))
	}
	require.Len(t, p, 101)
	require.EqualError(t, p[100], "and more than these 100 problems")
	require.Less(t, len(p[1].Error()), 5000)
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "small"), []byte("text"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "large"), nil, 0o600))
	require.NoError(t, os.Truncate(filepath.Join(dir, "large"), 1<<40))
	for _, read := range []func(name string) ([]byte, error){
		func(name string) ([]byte, error) { return bounded.File(filepath.Join(dir, name), bounded.Written) },
		func(name string) ([]byte, error) { return bounded.FS(os.DirFS(dir), name, bounded.Written) },
	} {
		got, err := read("small")
		require.NoError(t, err)
		require.Equal(t, "text", string(got))
		_, err = read("large")
		require.ErrorIs(t, err, bounded.ErrTooLarge)
		require.ErrorContains(t, err, "large: larger than what is read of such a file, 1 MiB")
		_, err = read("none")
		require.ErrorIs(t, err, fs.ErrNotExist)
		_, err = read(".")
		require.Error(t, err)
	}
	_, err := bounded.FS(fstest.MapFS{}, "none", bounded.Written)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// whole matches what reads a file or a stream to its end.
var whole = regexp.MustCompile(`\b(os|fs)\.ReadFile\b|\bio\.ReadAll\((?:(?:io\.Limit|http\.MaxBytes)Reader\()?`)

var comment = regexp.MustCompile(`//.*`)

// own are folders and files that read without a limit what no other party writes.
func own() []string {
	return []string{
		"stages/infrastructure/machine.go", // the kernel's own files
		"stages/internal/state/",           // the volume of the engine; values of the store have a limit there
		"stages/internal/kube/",            // answers of the API server
		"stages/internal/readiness/",       // answers of the API server
		"pipeline/store/vault.go",          // what is in a value of the store, which has a limit
		"containers/session.go",            // answers of the engine, as its client reads them
		"bounded/bounded.go",
	}
}

// TestNothingIsReadWithoutALimit: code of the program reads whole files and streams with this
// package.
func TestNothingIsReadWithoutALimit(t *testing.T) {
	found, allowed := 0, map[string]bool{}
	require.NoError(t, filepath.WalkDir("..", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			_, module := os.Stat(filepath.Join(file, "go.mod"))
			if file != ".." && (module == nil || strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata") {
				return fs.SkipDir // another module: what builds, tests and examples
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		found++
		name := path.Clean(strings.TrimPrefix(filepath.ToSlash(file), "../"))
		for _, call := range whole.FindAllString(comment.ReplaceAllString(string(text), ""), -1) {
			if strings.HasSuffix(call, "Reader(") {
				continue
			}
			exception := ""
			for _, prefix := range own() {
				if strings.HasPrefix(name, prefix) {
					exception = prefix
				}
			}
			require.NotEmpty(t, exception, "%s: %s: read it with package bounded", name, call)
			allowed[exception] = true
		}
		return nil
	}))
	require.Greater(t, found, 400)
	for _, prefix := range own() {
		require.True(t, prefix == "bounded/bounded.go" || allowed[prefix], "%s: the exception is not needed", prefix)
	}
}
