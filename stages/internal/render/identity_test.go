package render_test

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/render"
)

// TestTheIdentityPlatform: the release of static manifests is rendered as its files have
// it, and what Slipway changes is what the release says.
func TestTheIdentityPlatform(t *testing.T) {
	r, err := platform.Load(os.DirFS("../../../examples/platform/manifests/1.0.0"))
	require.NoError(t, err)
	var kinds []string
	for _, c := range r.Components {
		if c.Kind == platform.Gate {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			objs, err := render.Manifests(t.Context(), r.Files(), nil, c)
			require.NoError(t, err)
			require.Equal(t, filed(t, r, c), objs)
			for _, o := range objs {
				kinds = append(kinds, o.GetKind())
				require.Empty(t, o.GetNamespace(), "the component has it")
			}

			refs := map[string]string{}
			for _, name := range c.Images {
				refs[name] = "registry.example.com/" + name + "@sha256:" + strings.Repeat("0", 64)
			}
			render.SetImages(objs, refs)
			require.Equal(t, slices.Sorted(maps.Values(refs)), render.Images(objs), "every image, and no other one, is by digest")

			hosts := map[string]string{}
			for host := range c.Hosts {
				hosts[platform.Fill(host, map[string]string{platform.FillDomain: "slipway.test"})] = "10.96.0.7"
			}
			render.AddHosts(objs, hosts)
			for _, o := range objs {
				if p := o.GetKind(); p != "Deployment" && p != "Job" && p != "StatefulSet" {
					continue
				}
				aliases, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "hostAliases")
				require.NoError(t, err)
				require.Len(t, aliases, len(c.Hosts), o.GetName())
			}
		})
	}
	slices.Sort(kinds)
	require.Equal(t, []string{
		"ConfigMap", "Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service", "ServiceAccount", "StatefulSet",
	}, slices.DeleteFunc(slices.Compact(kinds), func(k string) bool { return k == "Job" }), "no Secret among them: those are generated")
}

// filed are the objects of a component as they stand in its files.
func filed(t *testing.T, r *platform.Release, c platform.Component) []*unstructured.Unstructured {
	t.Helper()
	names := []string{c.Path}
	if info, err := fs.Stat(r.Files(), c.Path); err == nil && info.IsDir() {
		names, err = fs.Glob(r.Files(), path.Join(c.Path, "*"))
		require.NoError(t, err)
	}
	var out []*unstructured.Unstructured
	for _, name := range names {
		text, err := fs.ReadFile(r.Files(), name)
		require.NoError(t, err)
		objs, err := kube.Decode(text)
		require.NoError(t, err)
		out = append(out, objs...)
	}
	require.NotEmpty(t, out)
	return out
}

// TestPodsOfTheIdentityPlatformStartAgain: those of a server that reads a Secret or
// ConfigMap which Slipway makes.
func TestPodsOfTheIdentityPlatformStartAgain(t *testing.T) {
	r, err := platform.Load(os.DirFS("../../../examples/platform/manifests/1.0.0"))
	require.NoError(t, err)
	uses := map[string][]string{}
	for _, name := range []string{"postgres", "dex", "console"} {
		c, ok := r.Component(name)
		require.True(t, ok)
		objs, err := render.Manifests(t.Context(), r.Files(), nil, c)
		require.NoError(t, err)
		for _, o := range objs {
			uses[name] = append(uses[name], render.Uses(o)...)
		}
	}
	require.Equal(t, map[string][]string{
		"postgres": {"Secret/database-owner"},
		"dex":      {"ConfigMap/dex", "Secret/database-dex", "Secret/dex-client", "Secret/identity-tls"},
		"console": {
			"ConfigMap/branding", "ConfigMap/settings", "ConfigMap/slipway-ca",
			"Secret/cluster", "Secret/console", "Secret/database-console", "Secret/identity-tls", "Secret/license",
		},
	}, uses)
}
