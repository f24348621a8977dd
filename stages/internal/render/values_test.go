package render_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/cli/values"
	"helm.sh/helm/v3/pkg/getter"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/render"
)

// TestValuesMeanWhatTheyMeanToHelm: whichever layer says something, a chart gets what helm
// template makes of the same layers.
func TestValuesMeanWhatTheyMeanToHelm(t *testing.T) {
	const chartOwn = "a: 1\nb: {x: 1, z: {deep: on}}\nc: [1]\n"
	for name, layers := range map[string][3]string{ // the release's file, its values, the user's
		"null in the file":             {"a: null\nb: {x: ~}", "{}", "{}"},
		"null in the values":           {"a: 2\nb: {x: 2}", "{a: null, b: {x: null}}", "{}"},
		"null of the user's":           {"a: 2", "{a: 3, b: {x: 3}}", "{a: null, b: {x: null}}"},
		"null of a whole mapping":      {"b: {x: 2}", "{}", "{b: null}"},
		"null, and a value again":      {"a: null", "{a: 5}", "{}"},
		"null deep below":              {"{}", "{b: {z: {deep: null}}}", "{b: {w: 1}}"},
		"null of what is nowhere else": {"q: null", "{r: null}", "{s: {t: null}}"},
		"a list in place of another":   {"c: [2, 3]", "{}", "{c: []}"},
		"text in place of a mapping":   {"b: text", "{}", "{}"},
		"a mapping in place of text":   {"a: {k: 1}", "{a: {l: 2}}", "{a: {k: 3}}"},
		"words":                        {"a: off", "{b: {x: no}}", "{c: [y, on, 'n']}"},
		"numbers":                      {"a: 0755", "{b: {x: 1_000}}", "{c: [2097152, 1.10, 1e3]}"},
	} {
		t.Run(name, func(t *testing.T) {
			files := fstest.MapFS{
				platform.File: {Data: []byte("apiVersion: slipway/v2\nname: s\nversion: 1.0.0\nnamespaces: [{name: shop}]\ncomponents:\n" +
					"  - {name: web, kind: chart, path: chart, namespace: shop, valuesFiles: [v.yaml], values: " + layers[1] + "}\n")},
				"v.yaml":           {Data: []byte(layers[0])},
				"chart/Chart.yaml": {Data: []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n")},
			}
			r, err := platform.Load(files)
			require.NoError(t, err)
			c, _ := r.Component("web")
			cfg, err := config.Load([]byte("apiVersion: slipway.sh/v1\nplatform: {components: {web: {values: "+layers[2]+"}}}\n"), config.Options{})
			require.NoError(t, err)
			got, err := render.Values(files, c, contract.ComponentInput{Values: cfg.Overrides()["web"]})
			require.NoError(t, err)

			o := values.Options{ValueFiles: []string{written(t, layers[0]), written(t, layers[1]), written(t, layers[2])}}
			want, err := o.MergeValues(getter.Providers{})
			require.NoError(t, err)
			effective := func(v map[string]any) string {
				ch, err := loader.LoadFiles([]*loader.BufferedFile{
					{Name: "Chart.yaml", Data: files["chart/Chart.yaml"].Data}, {Name: "values.yaml", Data: []byte(chartOwn)}})
				require.NoError(t, err)
				all, err := chartutil.CoalesceValues(ch, v)
				require.NoError(t, err)
				text, err := json.Marshal(all)
				require.NoError(t, err)
				return string(text)
			}
			require.Equal(t, effective(want), effective(got))
		})
	}
}

// written is a file with a text.
func written(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// TestNumbersOfEachLayer, and where a text names them, are as Helm has them.
func TestNumbersOfEachLayer(t *testing.T) {
	const big = "9007199254740992"
	files := fstest.MapFS{"v.yaml": {Data: []byte("file: " + big + "\nsmall: 2097152\n")}}
	settings := json.RawMessage(`{"id": ` + big + `, "small": 5}`)
	id, ok := platform.Setting(settings, "id")
	require.True(t, ok)
	small, _ := platform.Setting(settings, "small")
	in := contract.ComponentInput{Values: json.RawMessage(`{"user": ` + big + `}`),
		Fill: map[string]any{"settings.id": id, "settings.small": small}}
	got, err := render.Values(files, platform.Component{ValuesFiles: []string{"v.yaml"},
		Values: json.RawMessage(`{"own": ` + big + `, "set": "{settings.id}", "text": "id={settings.id}", "n": "{settings.small}"}`)}, in)
	require.NoError(t, err)
	require.Equal(t, map[string]any{
		"file": 9007199254740992.0, "own": 9007199254740992.0, "set": 9007199254740992.0, "user": 9007199254740992.0,
		"text": "id=" + big, "n": 5.0, "small": 2097152.0,
	}, got)
}
