package main

import (
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/dev/build/oci"
	"github.com/slipway-sh/slipway/containers/lock"
)

// TestAnAddonIsWhatTheLockSays: its command is the one of the module that the lock names, and
// its image has that program, and runs as nobody.
func TestAnAddonIsWhatTheLockSays(t *testing.T) {
	l, err := lock.Load()
	require.NoError(t, err)
	b := &builder{built: map[string]string{}}
	all := addonCommands("", nil, func(...string) []string { return nil })
	for _, c := range all {
		b.built[c.Name] = "/store/" + c.Name
	}
	images := b.addons(oci.File{Path: "tmp", Dir: true})
	require.Len(t, images, len(all))
	for _, c := range all {
		i, ok := l.Image(c.Name)
		require.True(t, ok, c.Name)
		require.True(t, i.OnDemand, c.Name)
		require.Equal(t, c.Package, path.Join(i.Modules[0].Path, i.Modules[0].Package))
		image := images[c.Name]
		require.Equal(t, "65534:65534", image.config.User)
		require.Equal(t, []string{"/" + image.files[0].Path}, image.config.Entrypoint)
		require.Equal(t, "/store/"+c.Name, image.files[0].Source)
		require.Equal(t, "tmp", image.files[1].Path)
	}
}
