package incontainer

import (
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/containers/lock"
	releases "github.com/slipway-sh/slipway/examples/platform"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/lint"
)

// TestTheExamplesImages are those of the lock, all of them found.
func TestTheExamplesImages(t *testing.T) {
	pins, err := lock.Load()
	require.NoError(t, err)
	refs := map[string]string{}
	for _, i := range pins.Images {
		refs[i.Name] = "slipway.local/" + i.Name + "@sha256:" + strings.Repeat("0", 64)
	}
	files, err := releases.Release("1.0.0")
	require.NoError(t, err)
	find := func(files fs.FS) []contract.ImageUse {
		t.Helper()
		r, err := platform.Load(files)
		require.NoError(t, err)
		s, err := stages.Rendering(contract.Inputs{Config: config.Default(), Release: r, Images: refs}, nil)
		require.NoError(t, err)
		s.Kubernetes = "1.35.4"
		has, err := Contents(t.Context(), r, s)
		require.NoError(t, err)
		require.Empty(t, has.Unread)
		require.NotEmpty(t, has.Policies)
		return has.Images
	}
	for _, c := range []struct {
		release fs.FS
		names   []string // that are found in what is rendered
	}{
		{files, []string{"gitea", "postgresql", "guestbook"}},
		{os.DirFS("../../examples/platform/manifests/1.0.0"), []string{"dex", "console", "postgresql"}},
	} {
		seen := map[string]bool{}
		for _, u := range find(c.release) {
			if u.File == platform.File {
				require.NotEmpty(t, refs[u.Image], u)
				continue
			}
			name, ok := strings.CutPrefix(u.Image, "slipway.local/")
			require.True(t, ok, u)
			name, _, _ = strings.Cut(name, "@")
			require.Equal(t, refs[name], u.Image)
			seen[name] = true
		}
		for _, name := range c.names {
			require.True(t, seen[name], name)
		}
	}

	broken := fstest.MapFS{}
	for _, from := range []fs.FS{files, os.DirFS(path.Join("../../examples/platform", "broken-image"))} {
		require.NoError(t, fs.WalkDir(from, ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := fs.ReadFile(from, name)
			broken[name] = &fstest.MapFile{Data: text}
			return err
		}))
	}
	require.Contains(t, find(broken), contract.ImageUse{
		Component: "guestbook", File: "gitops/apps/guestbook/templates/guestbook.yaml",
		Image: "slipway.local/no-such-image@sha256:" + strings.Repeat("0", 64), Kept: true, // Argo CD applies it
	})
}

// TestStepsOfPhases: those of every workflow and cluster are known, and the line of another one is
// named.
func TestStepsOfPhases(t *testing.T) {
	r, err := platform.Load(fstest.MapFS{"web.yaml": {Data: []byte("{}")}, platform.File: {Data: []byte(`apiVersion: slipway/v2
name: shop
version: 1.0.0
namespaces: [{name: shop}]
components: [{name: web, kind: manifests, path: web.yaml, namespace: shop}]
phases:
  - {name: Setup, steps: [preorchestrator/secrets, infrastructure/node, infrastructure/cluster-preflight]}
  - {name: Removal, steps: [infrastructure/node-remove, infrastructure/verify,
      orchestrator/synch]}
`)}})
	require.NoError(t, err)
	unknown := phases(r)
	require.Len(t, unknown, 1)
	require.Equal(t, "platform.yaml, line 9", unknown[0].Position())
	require.EqualError(t, unknown[0].Err, "orchestrator/synch is no step of Slipway's own; did you mean orchestrator/sync?")
	require.True(t, unknown[0].Wrong())
	r.Data = []platform.Data{{Name: "rows"}}
	r.Phases[1].Steps[2] = "preorchestrator/backup-rows"
	require.Empty(t, phases(r))
}

// TestTheExamplesAppsAreRenderedWithoutImages: what is looked for in a cluster has names.
func TestTheExamplesAppsAreRenderedWithoutImages(t *testing.T) {
	files, err := releases.Release("1.0.0")
	require.NoError(t, err)
	r, err := platform.Load(files)
	require.NoError(t, err)
	parts, err := lint.Apps(t.Context(), r, contract.RenderInput{Deployment: "demo", Kubernetes: "v1.35.4+k3s1", Apps: &contract.TreeValues{Domain: "example.org", Scale: "50"}}, tree)
	require.NoError(t, err)
	found := map[string]bool{}
	for _, p := range parts {
		require.NoError(t, p.Err, p.Component)
		found[p.Component+" in "+p.Namespace] = true
	}
	require.True(t, found["guestbook in guestbook"], found)
}
