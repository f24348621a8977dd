package platform_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	validator "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/config/document/documenttest"
	"github.com/slipway-sh/slipway/config/platform"
)

// schema is the one of platform.yaml, compiled by another library than the one that makes it.
func schema(t *testing.T) *validator.Schema {
	t.Helper()
	text, err := json.Marshal(platform.Schema(nil))
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
	for _, dir := range []string{"../../examples", "../../cli/skeleton/files"} {
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

// beyond are the broken files that a schema has nothing against, by what it does not see.
func beyond() map[string][]string {
	return map[string][]string{
		"other parts of the file": {
			"adopted-outside-the-tree", "after-cycle", "after-cycle-of-three", "after-cycle-through-apps", "after-cycle-through-the-engine",
			"after-cycle-of-an-appset-and-the-engine", "after-cycle-of-an-appset-and-the-git-server", "gitops-engine-is-a-job", "gitops-engine-is-an-appset", "after-itself", "after-unknown",
			"app-after-an-app", "app-in-the-engines-namespace", "gitops-project-namespace-of-the-engine", "app-outside-the-tree", "certificate-namespace-unknown", "certificate-twice", "check-component-unknown", "check-twice",
			"component-host-namespace-unknown", "component-namespace-unknown", "component-needs-itself", "component-needs-unknown", "component-twice", "configuration-not-in-order", "configuration-of-a-newer-release",
			"configuration-onto-what-moves", "configuration-twice", "configuration-two-onto-one",
			"config-map-namespace-unknown", "config-map-twice", "gate-condition-namespace-unknown", "gate-http-namespace-unknown",
			"gate-namespace-unknown", "gate-rollout-namespace-unknown", "gate-synced-no-app", "gate-synced-unknown", "gitops-engine-can-be-off",
			"gitops-engine-is-an-app", "gitops-engine-unknown", "gitops-server-unknown", "link-component-unknown", "link-twice", "namespace-twice",
			"phase-approval-twice", "phase-component-an-app", "phase-component-twice", "phase-component-unknown", "phase-step-of-a-component", "phase-step-twice", "phase-twice",
			"remove-order-an-app", "remove-order-twice", "remove-order-unknown",
			"test-component-unknown", "test-namespace-unknown", "test-twice", "workload-component-unknown", "workload-twice",
			"requires-a-generated-secret", "requires-namespace-unknown", "secret-copy-of-a-copy", "secret-copy-of-a-given-one", "secret-copy-of-nothing",
			"secret-key-twice", "secret-namespace-unknown", "secret-twice", "upgradable-from-itself", "yaml-two-documents",
		},
		"fields that go together": {
			"adopted-with-a-wave", "adopted-with-hosts", "adopted-without-gitops", "app-optional", "app-with-gates", "app-with-hosts",
			"app-with-values", "app-without-gitops", "appset-without-gitops", "chart-bundle", "chart-empty", "chart-wave",
			"component-namespace-missing", "component-node-of-a-gate", "component-path-missing", "component-required-and-off", "component-required-and-optional",
			"configuration-empty", "gate-nothing", "gate-two-in-one", "gate-with-a-path", "gate-without-gates", "gitops-server-without-certificate", "gitops-without-an-app",
			"job-without-path", "manifests-values", "manifests-values-files", "manifests-wave", "phase-approval-with-steps", "phase-of-nothing", "requires-both",
			"requires-neither", "secret-copy-without-from", "secret-from-of-a-password", "secret-give-of-a-literal", "secret-given-unknown", "secret-length-of-a-literal",
			"secret-literal-without-value", "secret-value-of-a-password", "test-namespace-missing", "test-namespace-without-path", "test-of-nothing", "test-two-gates-in-one",
		},
		"files": {
			"adopted-without-chart-yaml", "app-that-is-a-file", "chart-values-file-directory", "chart-values-file-not-for-every-scale", "chart-values-file-not-there",
			"chart-without-chart-yaml", "component-path-not-there", "component-path-without-manifests", "gitops-tree-is-a-file", "gitops-tree-not-there",
			"approval-unknown-field", "guidance-not-there", "guidance-syntax", "guidance-unknown-field", "job-not-there", "settings-elsewhere", "settings-not-a-schema",
			"settings-not-json", "settings-not-there", "test-path-not-there", "workload-check-not-there", "workload-path-without-manifests",
		},
		"what is in a text": {
			"adopted-values-unknown-name", "chart-values-file-unknown-name", "chart-values-tree-before-the-engine", "chart-values-unknown-name", "config-map-unknown-name", "gate-cel-number", "gate-cel-syntax",
			"gate-cel-unknown-variable", "gate-deadline-too-long", "gate-deadline-zero", "remove-finalizers-after", "gate-endpoint-port-too-high", "gitops-cluster-unknown-name",
			"link-unknown-name", "secret-literal-unknown-name", "test-deadline-zero", "workload-deadline-too-long",
		},
	}
}

// TestSchema_refuses what Load refuses, where a schema can say it.
func TestSchema_refuses(t *testing.T) {
	s := schema(t)
	var accepted, want []string
	for _, c := range documenttest.Cases(t, "testdata/broken") {
		if doc, ok := document(t, c.Text); ok && s.Validate(doc) == nil {
			accepted = append(accepted, c.Name)
		}
	}
	for _, names := range beyond() {
		want = append(want, names...)
	}
	require.ElementsMatch(t, want, accepted)
}
