package acquire

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/fault"
)

func TestATagThatMovedIsTakenOnPurposeOnly(t *testing.T) {
	dir, host := newBundle(t), server(t, nil)
	push(t, host+"/web:1", platform(t, "linux", "amd64"))
	_, err := add(t, Options{Dir: dir}, host+"/web:1")
	require.NoError(t, err)
	before := content(t, dir)
	moved := platform(t, "linux", "amd64")
	push(t, host+"/web:1", moved)

	_, err = add(t, Options{Dir: dir}, host+"/web:1")
	require.ErrorIs(t, err, &fault.Fault{Code: CodeOther})
	require.ErrorContains(t, err, "and the bundle has sha256:")
	require.Equal(t, before, content(t, dir))

	_, err = add(t, Options{Dir: dir, Replace: true}, host+"/web:1")
	require.NoError(t, err)
	i, image := imageOf(t, dir, host+"/web:1")
	require.NoError(t, sameLayers(image, moved))
	require.Equal(t, host+"/web:1", i.Name)
	require.Len(t, content(t, dir), len(before), "the other one is gone, with its archive")

	_, err = add(t, Options{Dir: dir}, host+"/web:1="+layoutOf(t, map[string]any{"1": platform(t, "linux", "amd64")}))
	f, ok := errors.AsType[*fault.Fault](err)
	require.True(t, ok)
	require.Regexp(t, `slipway bundle add `+dir+` --force `+host+`/web:1=/\S+$`, f.Fix, "as it was given")

	// So is what one of the bundle's own images stood for.
	_, err = add(t, Options{Dir: dir}, "public.ecr.aws/docker/library/redis:8="+host+"/web:1")
	require.ErrorContains(t, err, "(as redis)")
	_, err = add(t, Options{Dir: dir, Replace: true}, "public.ecr.aws/docker/library/redis:8="+host+"/web:1")
	require.NoError(t, err)
	b, err := bundle.Read(dir)
	require.NoError(t, err)
	require.Contains(t, b.Images(), "redis", "which stays")
}

// TestAWrongImageIsReplaced: also where another reference was added of the same image, in
// whatever order.
func TestAWrongImageIsReplaced(t *testing.T) {
	wrong, right := platform(t, "linux", "amd64"), platform(t, "linux", "amd64")
	from := func(image v1.Image) string { return "=" + layoutOf(t, map[string]any{"": image}) }
	for _, order := range [][]string{{"podinfo:6", "web:1"}, {"web:1", "podinfo:6"}} {
		dir := newBundle(t)
		for _, ref := range order {
			_, err := add(t, Options{Dir: dir}, ref+from(wrong))
			require.NoError(t, err)
		}
		_, err := add(t, Options{Dir: dir, Replace: true}, "podinfo:6"+from(right))
		require.NoError(t, err)
		refs := map[string]bool{}
		for ref, want := range map[string]v1.Image{"docker.io/library/podinfo:6": right, "docker.io/library/web:1": wrong} {
			i, image := imageOf(t, dir, ref)
			require.NoError(t, sameLayers(image, want))
			require.Equal(t, ref, i.Name)
			require.Equal(t, []string{ref}, i.StandsFor)
			untagged, _, _ := strings.Cut(i.Ref, "@")
			require.NotContains(t, untagged, ":", "a node would give the tag to both")
			refs[i.Ref] = true
		}
		require.Len(t, refs, 2)
		_, err = add(t, Options{Dir: dir, Replace: true}, "web:1"+from(right))
		require.NoError(t, err)
		i, _ := imageOf(t, dir, "docker.io/library/podinfo:6")
		require.Equal(t, []string{"docker.io/library/podinfo:6", "docker.io/library/web:1"}, i.StandsFor)
		archives, err := fs.Glob(os.DirFS(dir), bundle.AddedDir+"/*.tar")
		require.NoError(t, err)
		require.Equal(t, []string{i.Archive}, archives, "the wrong image is gone")
	}
}
