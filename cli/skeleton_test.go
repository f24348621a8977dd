package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/containers/lock"
)

// newRelease is a new platform release, and its files by path.
func newRelease(t *testing.T, name string) (*platform.Release, map[string][]byte) {
	t.Helper()
	dir, files := filepath.Join(t.TempDir(), "below", "shop"), map[string][]byte{}
	require.NoError(t, writeSkeleton(dir, name))
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[path], err = os.ReadFile(path)
		require.NotContains(t, string(files[path]), "__NAME__", path)
		return err
	}))
	r, err := platform.Load(os.DirFS(dir))
	require.NoError(t, err)
	return r, files
}

// TestANewReleaseIsValid for every name that a platform may have.
func TestANewReleaseIsValid(t *testing.T) {
	for _, name := range []string{"a", "shop", "sync", "my-platform-2", strings.Repeat("n", 53)} {
		require.Empty(t, platform.NamespaceWant(name), name)
		r, _ := newRelease(t, name)
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

// TestANewReleaseShowsEachPart that one begins with.
func TestANewReleaseShowsEachPart(t *testing.T) {
	r, _ := newRelease(t, "shop")
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

// TestImagesOfANewReleaseAreInEveryBundle: nothing has to be added to one.
func TestImagesOfANewReleaseAreInEveryBundle(t *testing.T) {
	pins, err := lock.Load()
	require.NoError(t, err)
	r, _ := newRelease(t, "shop")
	for _, c := range r.Components {
		require.NotEmpty(t, c.Images, c.Name)
		require.Empty(t, c.ImageReferences(), c.Name)
		for _, name := range c.Images {
			image, ok := pins.Image(name)
			require.True(t, ok && image.Workload && !image.OnDemand, name)
		}
	}
}

// TestNoSecretOfANewReleaseIsAnArgument of a program, which everybody on the node can read: only what the
// shell does itself gets one.
func TestNoSecretOfANewReleaseIsAnArgument(t *testing.T) {
	_, files := newRelease(t, "shop")
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

// TestANewReleaseNeedsADirectory and leaves a file alone.
func TestANewReleaseNeedsADirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("kept"), 0o600))
	require.Error(t, writeSkeleton(file, "shop"))
	require.Error(t, writeSkeleton(filepath.Join(file, "below"), "shop"))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "kept", string(text))
}
