package docs_test

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	providers "github.com/slipway-sh/slipway/providers/all"
)

// frame is a release around an example: the fields that the example does not have, and the
// components that it refers to.
const frame = `
apiVersion: slipway/v2
name: shop
version: 2.0.0
namespaces: [{name: shop}]
components:
  - {name: database, kind: chart, path: charts/database, namespace: shop, images: [postgresql]}
  - {name: migrate, kind: job, path: jobs/migrate.yaml, namespace: shop}
  - {name: web, kind: manifests, path: manifests/web, namespace: shop}
`

// TestExamplesOfTheGuide: every block of YAML in docs/platforms.md is a configuration or
// part of a release, and valid.
func TestExamplesOfTheGuide(t *testing.T) {
	text, err := os.ReadFile("platforms.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(string(text), -1)
	require.Greater(t, len(blocks), 5)
	require.Len(t, blocks, strings.Count(string(text), "```yaml"))
	for _, b := range blocks {
		t.Run(strings.TrimSuffix(strings.SplitN(b[1], "\n", 2)[0], ":"), func(t *testing.T) {
			if strings.HasPrefix(b[1], "apiVersion: "+config.APIVersion+"\n") {
				_, err := config.Load([]byte(b[1]), providers.All().Options())
				require.NoError(t, err)
				return
			}
			_, err := platform.Load(whole(t, b[1]))
			require.NoError(t, err, b[1])
		})
	}
}

// whole is a release with the example in it, and the files that it names.
func whole(t *testing.T, example string) fstest.MapFS {
	t.Helper()
	release, part := map[string]any{}, map[string]any{}
	require.NoError(t, yaml.Unmarshal([]byte(frame), &release))
	require.NoError(t, yaml.UnmarshalStrict([]byte(example), &part))
	own, _ := part["components"].([]any)
	var names []string
	for _, c := range own {
		names = append(names, c.(map[string]any)["name"].(string))
	}
	for _, c := range release["components"].([]any) {
		if !slices.Contains(names, c.(map[string]any)["name"].(string)) {
			own = append(own, c)
		}
	}
	for key, value := range part {
		release[key] = value
	}
	release["components"] = own

	text, err := yaml.Marshal(release)
	require.NoError(t, err)
	files := fstest.MapFS{platform.File: {Data: text}}
	add := func(name, text string) { files[name] = &fstest.MapFile{Data: []byte(text)} }
	for _, c := range own {
		c := c.(map[string]any)
		at, _ := c["path"].(string)
		switch {
		case at == "":
		case path.Ext(at) != "":
			add(at, "")
		default:
			add(at+"/Chart.yaml", "")
		}
		list, _ := c["valuesFiles"].([]any)
		for _, name := range list {
			for _, profile := range config.Profiles() {
				add(platform.Fill(name.(string), map[string]string{platform.FillScale: profile.Name()}), "")
			}
		}
	}
	data, _ := part["data"].([]any)
	for _, d := range data {
		for _, field := range []string{"pod", "scratch"} {
			add(d.(map[string]any)[field].(string), "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: shop}\nspec: {containers: [{name: a, image: postgresql}]}\n")
		}
	}
	for _, key := range []string{"tests", "workloads"} {
		all, _ := part[key].([]any)
		for _, of := range all {
			for _, field := range []string{"path", "check"} {
				at, _ := of.(map[string]any)[field].(string)
				switch {
				case at == "":
				case path.Ext(at) != "":
					add(at, "")
				default:
					add(at+"/objects.yaml", "")
				}
			}
		}
	}
	for key, text := range map[string]string{"settings": "{}", "guidance": ""} {
		if name, ok := release[key].(string); ok {
			add(name, text)
		}
	}
	return files
}

// TestLinksOfThePages lead to files that are there.
func TestLinksOfThePages(t *testing.T) {
	for _, page := range []string{"platforms.md", "platform.md"} {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		links := regexp.MustCompile(`\]\(([^)#]+)`).FindAllStringSubmatch(string(text), -1)
		require.NotEmpty(t, links)
		for _, l := range links {
			_, err := os.Stat(l[1])
			require.NoError(t, err, "%s links to %s", page, l[1])
		}
	}
}
