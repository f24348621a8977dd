package platform_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/fault/faulttest"
)

// asked is a release that notes what is opened of it.
type asked struct {
	fs.FS
	names map[string]bool
}

func (a asked) Open(name string) (fs.File, error) {
	a.names[name] = true
	return a.FS.Open(name)
}

// FuzzLoad: a release is loaded or rejected with a code, is not loaded if it names a file outside it,
// and is the same when it is loaded again. The second file is one that platform.yaml may name.
func FuzzLoad(f *testing.F) {
	f.Add(good, "settings.schema.json", "{}")
	f.Add(good+"settings: settings.schema.json\n", "settings.schema.json", `{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}`)
	f.Add(good+"settings: settings.schema.json\n", "settings.schema.json", `{"$ref": "file:///etc/passwd"}`)
	f.Add(good+"settings: ../../etc/passwd\n", "a/../b", "x")
	f.Add(strings.ReplaceAll(good, "charts/gitea", "../charts/gitea"), "gitops/apps/web/Chart.yaml", "a: &a [*a]")
	f.Add(good, "gitops/apps/web/values.yaml", "\x00")
	for _, c := range faulttest.Cases(f, "testdata/broken") {
		f.Add(string(c.Text), "x", "y")
	}
	f.Fuzz(func(t *testing.T, text, name, content string) {
		files := tree(text)
		if fs.ValidPath(name) && name != "." && name != platform.File {
			files[name] = &fstest.MapFile{Data: []byte(content)}
		}
		fsys := asked{files, map[string]bool{}}
		faulttest.Bounded(t, func() {
			r, err := platform.Load(fsys)
			if err != nil {
				faulttest.Coded(t, err, fault.Usage)
				return
			}
			for name := range fsys.names {
				require.True(t, fs.ValidPath(name), "%q leads out of the release, which was loaded", name)
			}
			_, err = r.Apps(nil)
			require.NoError(t, err)
			digest, err := platform.Digest(fsys)
			require.NoError(t, err)
			again, err := platform.Open(fsys)
			require.NoError(t, err)
			require.Equal(t, r.Name+" "+r.Version, again.Name+" "+again.Version)
			same, err := platform.Digest(fsys)
			require.NoError(t, err)
			require.Equal(t, digest, same)
		})
	})
}
