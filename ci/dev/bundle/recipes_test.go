package main

import (
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/dev/build/gotool"
	"github.com/slipway-sh/slipway/ci/dev/bundle/rootfs"
	"github.com/slipway-sh/slipway/containers/lock"
)

// TestAnImageIsWhatTheLockSays: its commands are those of the modules that the lock names.
func TestAnImageIsWhatTheLockSays(t *testing.T) {
	l, err := lock.Load()
	require.NoError(t, err)
	r, err := loadRecipes()
	require.NoError(t, err)
	packages := map[string]string{}
	for _, c := range r.Commands {
		packages[c.Name] = c.Package
	}
	require.Len(t, r.Images, len(l.Images))
	for _, i := range l.Images {
		image, ok := r.Images[i.Name]
		require.True(t, ok, i.Name)
		for command := range image.Programs {
			require.Contains(t, packages, command)
		}
		if i.OnDemand && len(i.Modules) > 0 && i.Name != "gitea" { // which has another path since
			require.Equal(t, packages[i.Name], path.Join(i.Modules[0].Path, i.Modules[0].Package), i.Name)
		}
	}
}

// TestAnAddonIsItsProgram: it runs as nobody, and its files are there for it.
func TestAnAddonIsItsProgram(t *testing.T) {
	l, err := lock.Load()
	require.NoError(t, err)
	r, err := loadRecipes()
	require.NoError(t, err)
	b := &builder{recipes: r, built: map[string]string{"traefik": "/store/traefik"}, layers: map[string]*rootfs.Layer{"git": {}}}
	image, ok := l.Image("traefik")
	require.True(t, ok)
	made, err := b.define(t.Context(), image)
	require.NoError(t, err)
	require.Equal(t, "65534:65534", made.config.User)
	require.Equal(t, []string{"/usr/local/bin/traefik"}, made.config.Entrypoint)
	require.Equal(t, "/store/traefik", made.files[0].Source)
	require.Equal(t, "tmp", made.files[3].Path)
	require.Equal(t, "dtrwxrwxrwx", "d"+made.files[3].Mode.String())
	_, err = b.define(t.Context(), lock.Image{Name: "nothing"})
	require.ErrorContains(t, err, "which nothing builds")
}

// TestVersionsAreLinked: each command says its own version, and that of the node is Kubernetes'.
func TestVersionsAreLinked(t *testing.T) {
	l, err := lock.Load()
	require.NoError(t, err)
	r, err := loadRecipes()
	require.NoError(t, err)
	all, _, err := r.commands(t.Context(), "/source", l, "arm64", []string{slipway, "dex"})
	require.NoError(t, err)
	by := map[string]gotool.Command{}
	for _, c := range all {
		require.NotContains(t, c.LDFlags, "{")
		by[c.Name] = c
	}
	require.NotContains(t, by, "dex")
	require.Contains(t, by["slipway-node"].LDFlags, "k8s.io/component-base/version.gitVersion=v"+l.Versions()["kubectl"])
	require.Equal(t, "/source/containers/node", by["slipway-node"].Module)
	require.Equal(t, "/source/ci/dev/bundle/tools/helm", by["helm"].Module)
	require.False(t, by["pause"].Sources("main.go"))
	require.True(t, by["pause"].Sources("pause/main.go"))
	require.Len(t, all, len(r.Commands)-1)
}
