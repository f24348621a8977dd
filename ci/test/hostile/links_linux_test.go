package hostile

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// linked is a release of which each kind of file is used.
var linked = map[string]string{
	"platform.yaml": `apiVersion: slipway/v2
name: shop
version: 1.0.0
settings: settings.json
guidance: guidance.txt
approval: approval.txt
namespaces: [{name: shop}]
components:
  - {name: web, kind: manifests, path: web, namespace: shop}
  - {name: kustomized, kind: manifests, path: kustomized, namespace: shop}
  - {name: chart, kind: chart, path: charts/chart, namespace: shop, valuesFiles: [values.yaml]}
tests: [{name: a, suites: [smoke], component: web, path: tests/a.yaml, namespace: shop, deadline: 1m}]
`,
	"settings.json":                      `{"type": "object", "properties": {"theme": {"type": "string", "default": "dark", "description": "Colours."}}}`,
	"guidance.txt":                       "Look at it.\n",
	"approval.txt":                       "It costs money.\n",
	"values.yaml":                        "text: more\n",
	"web/web.yaml":                       "{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: shop}}\n",
	"kustomized/kustomization.yaml":      "resources: [base]\nconfigMapGenerator: [{name: made, files: [note.txt]}]\n",
	"kustomized/note.txt":                "note\n",
	"kustomized/base/kustomization.yaml": "resources: [base.yaml]\n",
	"kustomized/base/base.yaml":          "{apiVersion: v1, kind: ConfigMap, metadata: {name: base, namespace: shop}}\n",
	"charts/chart/Chart.yaml":            "{apiVersion: v2, name: chart, version: 1.0.0}\n",
	"charts/chart/values.yaml":           "text: plain\n",
	"charts/chart/values.schema.json":    `{"type": "object"}`,
	"charts/chart/.helmignore":           "*.txt\n",
	"charts/chart/templates/a.yaml":      "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {text: {{ .Values.text | quote }}}}\n",
	"charts/chart/crds/a.yaml":           "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: as.example.com}, spec: {group: example.com, scope: Namespaced, names: {kind: A, plural: as}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}\n",
	"charts/chart/charts/sub/Chart.yaml": "{apiVersion: v2, name: sub, version: 1.0.0}\n",
	"tests/a.yaml":                       "{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: shop}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: busybox, command: ['true']}]}}}}\n",
}

// links are cases of releases in which something else stands in the place of a file.
func links() []testCase {
	commands := []command{
		from([]string{"validate", "--platform", "release"}, nil, rules{}),
		from([]string{"platform", "render", "--platform", "release"}, nil, rules{}),
	}
	var out []testCase
	add := func(name, tries string, replace func(t *testing.T, s sandbox, release string)) {
		out = append(out, testCase{name: "link/" + name, tries: tries, commands: commands, make: func(t *testing.T, s sandbox) {
			for file, text := range linked {
				s.write(t, "release/"+file, []byte(text))
			}
			if replace != nil {
				replace(t, s, s.path("work/release"))
			}
		}})
	}
	add("none", "the release as it should be", nil)
	out[0].says = "valid:"
	put := func(at, to string) func(*testing.T, sandbox, string) {
		return func(t *testing.T, s sandbox, release string) {
			at := filepath.Join(release, at)
			require.NoError(t, os.RemoveAll(at))
			require.NoError(t, os.Symlink(s.fill(to), at))
		}
	}
	for file := range linked {
		add(file+" is a file of the user", "a link to a file of the user", put(file, "@SECRET@"))
	}
	for dir, to := range map[string]string{
		"web": "../beside", "kustomized": "../beside", "kustomized/base": "../../beside", "charts/chart": "../../beside", "charts/chart/templates": "../../../beside",
		"charts/chart/crds": "@ROOT@", "charts/chart/charts": "@ROOT@", "tests": "../beside", "charts": "/",
	} {
		add("folder "+dir, "a link to a folder of the user", func(t *testing.T, s sandbox, release string) {
			s.write(t, "beside/a.yaml", []byte("a: "+secretInFile+"\n"))
			put(filepath.Join(dir, "."), to)(t, s, release)
		})
	}
	for name, to := range map[string]string{"itself": "web.yaml", "a device that does not end": "/dev/zero", "what the process has": "/proc/self/environ", "the terminal": "/dev/tty", "its own folder": ".", "nothing": "not-there"} {
		add("manifest is "+name, "a link to "+name, put("web/web.yaml", to))
		add("template is "+name, "a link to "+name, put("charts/chart/templates/a.yaml", to))
	}
	for _, at := range []string{"web/web.yaml", "platform.yaml", "kustomized/note.txt", "charts/chart/values.yaml", "values.yaml", "guidance.txt"} {
		add("pipe "+at, "a pipe that nobody writes to", func(t *testing.T, _ sandbox, release string) {
			require.NoError(t, os.Remove(filepath.Join(release, at)))
			require.NoError(t, syscall.Mkfifo(filepath.Join(release, at), 0o644))
		})
	}
	add("socket", "a socket in the place of a manifest", func(t *testing.T, _ sandbox, release string) {
		require.NoError(t, os.Remove(filepath.Join(release, "web/web.yaml")))
		require.NoError(t, syscall.Mknod(filepath.Join(release, "web/web.yaml"), syscall.S_IFSOCK|0o644, 0))
	})
	add("names", "names of files that write to a terminal, and lead out where a slash is another one", func(t *testing.T, s sandbox, _ string) {
		for _, name := range []string{"web/\x1b[31m.yaml", "web/\u202e.yaml", `web/..\..\..\secret.yaml`, "web/" + strings.Repeat("n", 200) + ".yaml", "web/\xff.yaml", "web/a\nb.yaml"} {
			s.write(t, "release/"+name, []byte("not: [an object\n"))
		}
	})
	return out
}
