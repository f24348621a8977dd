//go:build unix

package render

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Nothing waits for whoever writes to a pipe.
func TestLoadChartOpensNoPipe(t *testing.T) {
	for _, name := range []string{".helmignore", "values.yaml", "files/data"} {
		dir := aChart(t)
		file := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, unix.Mkfifo(file, 0o600))
		_, err := LoadChart(t.Context(), os.DirFS(dir), ".")
		require.EqualError(t, err, "cannot load "+name+": it is no regular file")
	}
}
