package skeleton_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/skeleton"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/containers/lock"
)

func load(t *testing.T, name string) (*platform.Release, map[string][]byte) {
	t.Helper()
	files, err := skeleton.Release(name)
	require.NoError(t, err)
	tree := fstest.MapFS{}
	for path, text := range files {
		require.NotContains(t, string(text), "__NAME__", path)
		tree[path] = &fstest.MapFile{Data: text}
	}
	r, err := platform.Load(tree)
	require.NoError(t, err)
	return r, files
}

// TestReleaseIsValid for every name that a platform may have.
func TestReleaseIsValid(t *testing.T) {
	for _, name := range []string{"a", "shop", "sync", "my-platform-2", strings.Repeat("n", 53)} {
		require.Empty(t, platform.NamespaceWant(name), name)
		r, _ := load(t, name)
		require.Equal(t, name, r.Name)
		require.Equal(t, name, r.Namespaces[0].Name)
		require.Equal(t, "restricted", r.Namespaces[0].Labels["pod-security.kubernetes.io/enforce"])
		require.NoError(t, r.CheckSettings(nil))
		require.NoError(t, r.CheckGiven([]string{"webPassword"}))
		guide, err := r.Guide(platform.GuidanceData{Platform: name, Version: r.Version, Deployment: "d", Links: []platform.GuidanceLink{{Name: "Web", URL: "http://web.x.test"}}})
		require.NoError(t, err)
		require.Contains(t, guide, "Web is at http://web.x.test.")
		require.Contains(t, guide, "kubectl get secret -n "+name+" web")
	}
}

// TestReleaseShowsEachPart that one begins with.
func TestReleaseShowsEachPart(t *testing.T) {
	r, _ := load(t, "shop")
	kinds := map[platform.Kind]platform.Component{}
	for _, c := range r.Components {
		kinds[c.Kind] = c
	}
	require.NotNil(t, kinds[platform.Manifests].Ready[0].HTTP)
	require.NotEmpty(t, kinds[platform.Chart].Holes())
	require.Equal(t, []string{"web", "hello"}, kinds[platform.Job].After)
	require.NotEmpty(t, r.Secrets)
	require.NotEmpty(t, r.ConfigMaps[0].Holes())
	require.NotEmpty(t, r.Links)
	require.NotEmpty(t, r.Checks)
	require.Equal(t, []string{"webPassword"}, r.Gives())
}

// TestImagesAreInEveryBundle: nothing has to be added to one.
func TestImagesAreInEveryBundle(t *testing.T) {
	pins, err := lock.Load()
	require.NoError(t, err)
	r, _ := load(t, "shop")
	for _, c := range r.Components {
		require.NotEmpty(t, c.Images, c.Name)
		require.Empty(t, c.ImageReferences(), c.Name)
		for _, name := range c.Images {
			image, ok := pins.Image(name)
			require.True(t, ok && image.Workload && !image.OnDemand, name)
		}
	}
}

// TestNoSecretIsAnArgument of a program, which everybody on the node can read: only what the
// shell does itself gets one.
func TestNoSecretIsAnArgument(t *testing.T) {
	_, files := load(t, "shop")
	seen := 0
	for path, text := range files {
		for line := range strings.Lines(string(text)) {
			for part := range strings.SplitSeq(line, "|") {
				if strings.Contains(part, "$PASSWORD") || strings.Contains(part, "$key") || strings.Contains(part, "$hash") {
					seen++
					require.Regexp(t, `^\s*(\w+=\$\()?(printf|echo) `, part, path)
				}
			}
		}
	}
	require.Equal(t, 4, seen)
}

func TestWrite(t *testing.T) {
	_, files := load(t, "shop")
	empty := t.TempDir()
	for what, dir := range map[string]string{"a new one": filepath.Join(t.TempDir(), "below", "shop"), "an empty one": empty} {
		require.NoError(t, skeleton.Write(dir, "shop"), what)
		n := 0
		require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			n++
			name, err := filepath.Rel(dir, path)
			require.NoError(t, err)
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, string(files[filepath.ToSlash(name)]), string(text), name)
			return nil
		}))
		require.Equal(t, len(files), n, "%s: these files and no other", what)
		_, err := platform.Load(os.DirFS(dir))
		require.NoError(t, err, what)
	}
}

// TestWriteNeedsADirectory and leaves a file alone.
func TestWriteNeedsADirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("kept"), 0o600))
	require.Error(t, skeleton.Write(file, "shop"))
	require.Error(t, skeleton.Write(filepath.Join(file, "below"), "shop"))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "kept", string(text))
}
