package platform_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	validator "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault/faulttest"
)

// schema is that of platform.yaml for editors, which the tests of docs generate from the types.
func schema(t *testing.T) *validator.Schema {
	t.Helper()
	text, err := os.ReadFile("../../docs/platform.schema.json")
	require.NoError(t, err)
	doc, err := validator.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	c := validator.NewCompiler()
	c.AssertFormat()
	require.NoError(t, c.AddResource(platform.SchemaID, doc))
	s, err := c.Compile(platform.SchemaID)
	require.NoError(t, err)
	return s
}

// document is a file as editors see it; not ok if they cannot read it.
func document(t *testing.T, text []byte) (doc any, ok bool) {
	t.Helper()
	js, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, false
	}
	doc, err = validator.UnmarshalJSON(bytes.NewReader(js))
	require.NoError(t, err)
	return doc, true
}

// TestSchema_accepts what Load accepts.
func TestSchema_accepts(t *testing.T) {
	s := schema(t)
	texts := map[string][]byte{"good": []byte(good)}
	for _, dir := range []string{"../../examples", "../../cli/skeleton"} {
		before := len(texts)
		require.NoError(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.Name() == platform.File {
				texts[name], err = os.ReadFile(name)
				texts[name] = bytes.ReplaceAll(texts[name], []byte("__NAME__"), []byte("shop"))
			}
			return err
		}))
		require.Greater(t, len(texts), before, dir)
	}
	for what, more := range map[string]string{
		"a gate":     "{name: seen, kind: gate, ready: [{cel: {object: v1/Node n, expression: 'true'}, deadline: 1h30m}, {rollout: apps/v1/StatefulSet demo/db}, {job: demo/x.y}]}",
		"a job":      "{name: fill, kind: job, path: jobs/fill.yaml, namespace: demo, after: [web], optional: true}",
		"a chart":    "{name: db, kind: chart, path: ., namespace: demo, valuesFiles: ['values/{scale}.yaml'], values: {a: {b: ['{domain}', 1]}}}",
		"an appset":  "{name: addons, kind: appset, path: appsets, namespace: demo, empty: true}]\ngitops: {engine: cd}\nlinks: [",
		"an adopted": "{name: eso, kind: adopted, path: gitops/eso, namespace: demo, values: {a: b}, valuesFiles: [values.yaml], node: {label: storage=fast}, required: true}]\ngitops: {engine: cd}\nlinks: [",
		"images":     "{name: cd, kind: manifests, path: a, namespace: demo, node: {label: storage=fast}, images: [redis, 'redis:8.2', 'localhost:5000/a/b_c', 'ghcr.io/dexidp/dex:v2.45.0@sha256:" + strings.Repeat("0", 64) + "']}",
		"hosts":      "{name: cd, kind: manifests, bundle: argocd, namespace: demo, hosts: {'git-{domain}': demo/git, git.test: demo/git}}",
		"not an app": "{name: cd, kind: manifests, path: a/b.yaml, namespace: kube-system, wave: 0, empty: false, required: true, enabled: true}",
		"tests":      "{name: a, kind: manifests, path: a, namespace: demo}]\ntests: [{name: web, path: a, namespace: demo}, {name: open, suites: [smoke, full, own], component: a, ready: [{synced: a}], images: [busybox], deadline: 30s}]\nworkloads: [{name: a, path: a, check: b.yaml, namespace: demo, images: [busybox]}]\nlinks: [",
		"phases":     "{name: web, kind: manifests, path: a, namespace: demo}]\nphases: [{name: User Approval, approval: true}, {name: Bootstrap, steps: [preorchestrator/secrets, preorchestrator/backup-rows], components: [web]}, {name: Addons, components: [web]}]\nlinks: [",
	} {
		texts[what] = []byte("apiVersion: slipway/v2\nname: a\nversion: 1.0.0-rc.1\ncomponents: [" + more + "]\n")
	}
	for what, text := range texts {
		doc, ok := document(t, text)
		require.True(t, ok, what)
		require.NoError(t, s.Validate(doc), what)
	}
}

// TestSchema_refuses unknown fields, other types and other values than the fixed ones.
func TestSchema_refuses(t *testing.T) {
	s := schema(t)
	cases := map[string][]byte{}
	for _, c := range faulttest.Cases(t, "testdata/broken") {
		cases[c.Name] = c.Text
	}
	for _, name := range []string{
		"component-kind-missing", "component-kind-unknown", "component-kind-upper-case", "api-version-missing", "api-version-newer", "secret-generate-unknown",
		"type-components-mapping", "type-enabled-text", "type-version-number", "type-wave-text", "version-missing",
	} {
		doc, ok := document(t, cases[name])
		require.True(t, ok, name)
		require.Error(t, s.Validate(doc), name)
	}
}
