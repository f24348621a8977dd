package platform_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/fault/faulttest"
)

var update = flag.Bool("update", false, "write the goldens anew")

// leastBroken is how many broken files there are at least.
const leastBroken = 270

// TestBroken loads the documents of testdata/broken as the platform.yaml of testdata/release: what
// is wrong with each stands beside it.
func TestBroken(t *testing.T) {
	cases := faulttest.Cases(t, "testdata/broken")
	require.GreaterOrEqual(t, len(cases), leastBroken)
	around, found := filesOf(t, "testdata/release"), map[string]string{}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			around[platform.File] = &fstest.MapFile{Data: c.Text}
			err := load(t, around)
			found[c.Name] = faulttest.Problems(err)
			if *update {
				return
			}
			require.Equal(t, c.Want, found[c.Name])
			for range 5 {
				require.EqualError(t, load(t, around), err.Error(), "in the same order each time")
			}
		})
	}
	if *update {
		faulttest.Update(t, "testdata/broken", found)
	}
}

// TestBroken_printed: what the author of a release sees.
func TestBroken_printed(t *testing.T) {
	release := filesOf(t, "testdata/release")
	release[platform.File] = &fstest.MapFile{Data: []byte("apiVersion: slipway/v2\nname: Shop\nversion: 1.0\ncomponent: []\n")}
	require.Equal(t, `error PLT-001: read the platform release's platform.yaml: 3 problems:
  line 2: name: got "Shop", want lower-case letters, digits and hyphens, 53 at most, starting with a letter
  line 3: version: got a number, want text (put it in quotes)
  line 4: component: got an unknown field, want "components"
correct what is listed in platform.yaml, then run the same command again
`, told(t, release))
	release[platform.File] = &fstest.MapFile{}
	require.Equal(t, `error PLT-001: read the platform release's platform.yaml: 4 problems:
  apiVersion: got nothing, want slipway/v2
  name: got nothing, want lower-case letters, digits and hyphens, 53 at most, starting with a letter
  version: got nothing, want a semantic version such as "1.0.0"
  components: got nothing, want at least one component
correct what is listed in platform.yaml, then run the same command again
`, told(t, release))
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

// load returns why a release is not loaded.
func load(t *testing.T, release fs.FS) error {
	t.Helper()
	_, err := platform.Load(release)
	f, ok := errors.AsType[*fault.Fault](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, platform.CodeInvalid, f.Code)
	require.Equal(t, fault.Usage, f.Class)
	return err
}

// told is what the author of a release sees.
func told(t *testing.T, release fs.FS) string {
	t.Helper()
	err := load(t, release)
	f, _ := errors.AsType[*fault.Fault](err)
	return fmt.Sprintf("error %s: %v\n%s\n", f.Code, err, f.Fix)
}
