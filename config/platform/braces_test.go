package platform_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
)

// TestBracesThatAreText can be written, and whoever writes them otherwise is told how.
func TestBracesThatAreText(t *testing.T) {
	const text = "apiVersion: slipway/v2\nname: a\nversion: 1.0.0\nnamespaces: [{name: demo}]\nconfigMaps:\n  - name: conf\n    namespace: demo\n    data:\n      api: |\n" +
		"        paths: {\"/users/{id}/{domain}\": {get: {}}}\ncomponents:\n  - name: db\n    kind: chart\n    path: chart\n    namespace: demo\n    values:\n" +
		"      \"{key}\": x\n      plain: '{level} at {domain}'\n      quoted: \"{a.b}\"\n"
	files := fstest.MapFS{platform.File: {Data: []byte(text)}, "chart/Chart.yaml": {Data: []byte("name: x")}}
	_, err := platform.Load(files)
	for _, says := range []string{
		`line 9: configMaps[0].data.api: got "{id}"`, `or \{id} (in double quotes \\{id}) for the text {id}`,
		`line 18: components[0].values.plain: got "{level}"`, `or \{level} (in double quotes \\{level}) for the text {level}`,
		`line 19: components[0].values.quoted: got "{a.b}"`,
	} {
		require.ErrorContains(t, err, says)
	}
	require.NotContains(t, err.Error(), "key}")

	files[platform.File].Data = []byte(strings.NewReplacer(`{id}`, `\{id}`, `{level}`, `\{level}`, `"{a.b}"`, `"\\{a.b}"`).Replace(text))
	r, err := platform.Load(files)
	require.NoError(t, err)
	require.Equal(t, []string{"domain"}, r.ConfigMaps[0].Holes())
	require.Equal(t, []string{"domain"}, r.Components[0].Holes())
	known := map[string]any{"domain": "example.com"}
	data, err := platform.FillTexts(r.ConfigMaps[0].Data, known)
	require.NoError(t, err)
	require.Equal(t, "paths: {\"/users/{id}/example.com\": {get: {}}}\n", data["api"])
	values, err := platform.FillValues(r.Components[0].Values, known)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"{key}": "x", "plain": "{level} at example.com", "quoted": "{a.b}"}, values)
}

// TestBackslashesBeforeBraces: one makes text of a name, two are one.
func TestBackslashesBeforeBraces(t *testing.T) {
	for in, want := range map[string]string{
		`{domain}`: "D", `\{domain}`: "{domain}", `\\{domain}`: `\D`, `\\\{domain}`: `\{domain}`, `\\\\{domain}`: `\\D`,
		`\{x}`: "{x}", `{{x}} ${x} {{domain}} ${domain} {{{domain}}}`: `{{x}} ${x} {{domain}} ${domain} {{{domain}}}`,
		`[0-9]{3} \d{2,} \{a,b\} {"a": 1} \n\{`: `[0-9]{3} \d{2,} \{a,b\} {"a": 1} \n\{`, "PathPrefix(`/{tenant:[a-z]+}`)": "PathPrefix(`/{tenant:[a-z]+}`)",
		`$\{domain} {\{domain}`: `${domain} {{domain}`, `C:\\{domain}\x`: `C:\D\x`,
	} {
		require.Equal(t, want, platform.Fill(in, map[string]string{"domain": "D"}), in)
		raw, err := json.Marshal(map[string]string{"v": in})
		require.NoError(t, err)
		got, err := platform.FillValues(raw, map[string]any{"domain": "D"})
		require.NoError(t, err, in)
		require.Equal(t, want, got["v"], in)
	}
}
