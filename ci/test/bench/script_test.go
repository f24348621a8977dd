package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// TestTheScriptsValuesSuitTheCharts: what the script writes down, and Slipway
// derives, is what the schemas of the platform's charts accept.
func TestTheScriptsValuesSuitTheCharts(t *testing.T) {
	for _, r := range []release{reference(), minor(), major()} {
		platform := filepath.Join("..", "..", "..", r.dir)
		for file, chart := range map[string]string{
			"$tmp/values.yaml":                "charts/gitea",
			"$tmp/tree/root-app/slipway.yaml": "gitops/root-app",
		} {
			t.Run(r.dir+"/"+chart, func(t *testing.T) {
				values := decode(t, []byte(written(t, file, filepath.Base(r.dir))))
				text, err := os.ReadFile(filepath.Join(platform, chart, "values.yaml"))
				require.NoError(t, err)
				defaults := decode(t, text)
				if components, has := values["components"]; has {
					require.Equal(t, defaults["components"], components, "the apps of the release")
					require.Equal(t, defaults["platform"], values["platform"])
				}
				merged := over(defaults, values)
				schema, err := jsonschema.NewCompiler().Compile(filepath.Join(platform, chart, "values.schema.json"))
				require.NoError(t, err)
				require.NoError(t, schema.Validate(merged))
				merged["scale"] = "small"
				require.ErrorContains(t, schema.Validate(merged), "scale")
			})
		}
	}
}

// written is the here-document that reference.sh writes to a file, with every
// variable set: images to references by digest, those that the release decides to what the
// script says of that, others to a word.
func written(t *testing.T, file, version string) string {
	t.Helper()
	text, err := os.ReadFile("reference.sh")
	require.NoError(t, err)
	document := regexp.MustCompile(`(?s)\ncat >"` + regexp.QuoteMeta(file) + `" <<END\n(.*?\n)END\n`).FindSubmatch(text)
	require.NotNil(t, document, "reference.sh writes %s", file)
	said := map[string]string{"version": version, "welcome": ""}
	of := regexp.MustCompile(`(?s)\n` + regexp.QuoteMeta(version) + `\)(.*?);;`).FindSubmatch(text)
	require.NotNil(t, of, "reference.sh knows %s", version)
	for _, set := range regexp.MustCompile(`(?m)^\t(\w+)='?([^'\n]*)'?$`).FindAllSubmatch(of[1], -1) {
		said[string(set[1])] = string(set[2])
	}
	return os.Expand(string(document[1]), func(name string) string {
		if image, ok := strings.CutPrefix(name, "image_"); ok {
			return "slipway.local/" + image + "@sha256:" + strings.Repeat("0", 64)
		}
		if value, ok := said[name]; ok {
			return value
		}
		return name
	})
}

// decode reads YAML as JSON's types.
func decode(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var raw any
	require.NoError(t, yaml.Unmarshal(text, &raw))
	b, err := json.Marshal(raw)
	require.NoError(t, err)
	var values map[string]any
	require.NoError(t, json.Unmarshal(b, &values))
	return values
}

// over lays values over defaults, as Helm does.
func over(defaults, values map[string]any) map[string]any {
	for name, value := range values {
		below, isMap := defaults[name].(map[string]any)
		if above, ok := value.(map[string]any); ok && isMap {
			value = over(below, above)
		}
		defaults[name] = value
	}
	return defaults
}
