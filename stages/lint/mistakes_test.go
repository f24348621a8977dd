package lint

import (
	"fmt"
	"os"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	releases "github.com/slipway-sh/slipway/examples/platform"
	"github.com/slipway-sh/slipway/stages/internal/render"
)

func configMap(name string) string {
	return "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + "}}\n"
}

const misspelt = `: spec.replcias: got an unknown field, want "replicas"`

// TestMistakesHaveTheirLines, in files, lists, and what kustomizations are made of.
func TestMistakesHaveTheirLines(t *testing.T) {
	const web = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  replcias: 2\n"
	for what, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"documents": {
			map[string]string{"a/a.yaml": "# first\n---\n" + configMap("a") + "--- # second\n\n" + web + "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: b},\n data: {a: b,\n  port: 80}}\n", "a/b.json": "{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\",\n\"metadata\": {\"name\": \"c\"},\n\"dat\": {}}"},
			[]string{"a/a.yaml, 15: ConfigMap b: data.port: got a number, want text (put it in quotes)", `a/b.json, 3: ConfigMap c: dat: got an unknown field, want "data"`, "a/a.yaml, 11: Deployment web" + misspelt},
		},
		"a list": {
			map[string]string{"a/a.yaml": "apiVersion: v1\nkind: List\nitems:\n" +
				"- apiVersion: v1\n  kind: Pod\n  metadata: {name: a}\n  spec:\n    containers:\n    - name: a\n    - name: b\n      port: 80\n    - 1\n"},
			[]string{`a/a.yaml, 11: Pod a: spec.containers[1].port: got an unknown field, want "ports"`, "a/a.yaml, 12: Pod a: spec.containers[2]: got a number, want a mapping"},
		},
		"the same twice": {
			map[string]string{"a/a.yaml": web + "---\n" + web},
			[]string{"a/a.yaml, 6: Deployment web" + misspelt, "a/a.yaml, 13: Deployment web" + misspelt},
		},
		"an anchor": {
			map[string]string{"a/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels: &l {a: 1}\n  annotations:\n    *l\n"},
			[]string{"a/a.yaml, 5: ConfigMap a: metadata.annotations.a: got a number, want text (put it in quotes)", "a/a.yaml, 5: ConfigMap a: metadata.labels.a: got a number, want text (put it in quotes)"},
		},
		"a kustomization": {
			map[string]string{
				"a/kustomization.yaml":    "resources: [../base]\nnamePrefix: shop-\npatches:\n- path: patch.yaml\n- patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, dat: {}}'\n",
				"a/patch.yaml":            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n\n  pased: true\n",
				"base/kustomization.yaml": "resources: [web.yaml, b.yaml]\n", "base/web.yaml": web, "base/b.yaml": configMap("b"),
			},
			[]string{
				`, 0: ConfigMap shop-b: dat: got an unknown field, want "data"`,
				`a/patch.yaml, 6: Deployment shop-web: spec.pased: got an unknown field, want "paused"`,
				"base/web.yaml, 6: Deployment shop-web" + misspelt,
			},
		},
		"mended by a patch": {
			map[string]string{"a/kustomization.yaml": "resources: [web.yaml]\npatches: [{patch: '{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replcias: null}}'}]\n", "a/web.yaml": web},
			nil,
		},
	} {
		t.Run(what, func(t *testing.T) {
			release := fstest.MapFS{}
			for name, text := range c.files {
				release[name] = &fstest.MapFile{Data: []byte(text)}
			}
			objs, err := render.Manifests(t.Context(), release, nil, platform.Component{Path: "a"})
			require.NoError(t, err)
			var got []string
			for _, m := range mistakesOf(release, "a", objs) {
				got = append(got, fmt.Sprintf("%s, %d: %v", m.File, m.Line, m.Err))
			}
			require.ElementsMatch(t, c.want, got)
			for range 3 {
				var again []string
				for _, m := range mistakesOf(release, "a", objs) {
					again = append(again, fmt.Sprintf("%s, %d: %v", m.File, m.Line, m.Err))
				}
				require.Equal(t, got, again)
			}
		})
	}
}

// TestArgoCDHasNoMistakes: the reference platform changes its own manifests.
func TestArgoCDHasNoMistakes(t *testing.T) {
	dir, err := releases.Release("1.0.0")
	require.NoError(t, err)
	r, err := platform.Load(dir)
	require.NoError(t, err)
	objs, err := render.Manifests(t.Context(), dir, os.DirFS("../internal/render/testdata/bundle"), *r.Engine())
	require.NoError(t, err)
	require.NotEmpty(t, objs)
	require.Empty(t, mistakesOf(dir, r.Engine().Path, objs))
}
