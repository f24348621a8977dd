package platform_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
)

var update = flag.Bool("update", false, "write the goldens anew")

// leastBroken is how many broken files there are at least.
const leastBroken = 150

// TestBroken loads every file of testdata/broken as the platform.yaml of testdata/release:
// what its author is told is in the golden beside it.
func TestBroken(t *testing.T) {
	files, err := filepath.Glob("testdata/broken/*.yaml")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), leastBroken)
	around := filesOf(t, "testdata/release")
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			around[platform.File] = &fstest.MapFile{Data: text}
			got := told(t, around)
			golden := strings.TrimSuffix(file, ".yaml") + ".txt"
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), got)
			for range 5 {
				require.Equal(t, got, told(t, around), "in the same order each time")
			}
		})
	}
	goldens, err := filepath.Glob("testdata/broken/*.txt")
	require.NoError(t, err)
	require.Len(t, goldens, len(files), "a golden for each file, and no other")
}

// filesOf are the files of a directory.
func filesOf(t *testing.T, dir string) fstest.MapFS {
	t.Helper()
	out := fstest.MapFS{}
	from := os.DirFS(dir)
	require.NoError(t, fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(from, name)
		out[name] = &fstest.MapFile{Data: text}
		return err
	}))
	return out
}

// told is what the author of a release sees.
func told(t *testing.T, release fs.FS) string {
	t.Helper()
	_, err := platform.Load(release)
	f, ok := errors.AsType[*fault.Fault](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, platform.CodeInvalid, f.Code)
	require.Equal(t, fault.Usage, f.Class)
	return fmt.Sprintf("error %s: %v\n%s\n", f.Code, err, f.Fix)
}
