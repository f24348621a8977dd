package render_test

import (
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/internal/render"
)

// listener counts the connections to an address that nobody should ask.
func listener(t *testing.T) (string, *atomic.Int64) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	var asked atomic.Int64
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // closed
			}
			asked.Add(1)
			_ = c.Close()
		}
	}()
	return l.Addr().String(), &asked
}

const builtin = "apiVersion: builtin\nmetadata: {name: x}\n"

// TestAKustomizationRunsAndFetchesNothing, whatever stands in it: with kustomize's own git,
// HTTP client and plugins.
func TestAKustomizationRunsAndFetchesNothing(t *testing.T) {
	host, asked := listener(t)
	marker := filepath.Join(t.TempDir(), "ran")
	run := "file:///nonexist?ref=" + strings.ReplaceAll(url.QueryEscape("--upload-pack=touch "+marker+";"), "+", "%20")
	address := "http://" + host + "/x.yaml"
	names := map[string]string{
		"command": run, "command in braces": run + "&x={", "address": address, "address in braces": address + "?a={",
		"address with a line break": address + "?a=\nb", "upper case": "HTTP://" + host + "/x.yaml?{", "forced": "git::" + address,
		"repository": "http://" + host + "/a/b.git//c?ref={", "SSH": "git@" + host + ":a/b{.git",
	}
	fields := map[string]string{
		"resource": "resources: [%q]", "component": "components: [%q]", "base": "bases: [%q]", "definition": "crds: [%q]",
		"configuration": "configurations: [%q]", "generator": "generators: [%q]", "transformer": "transformers: [%q]",
		"validator": "validators: [%q]", "patch": "patches: [{path: %q}]", "older patch": "patchesStrategicMerge: [%q]",
		"JSON patch": "patchesJson6902: [{path: %q, target: {kind: ConfigMap, name: a, version: v1}}]", "replacement": "replacements: [{path: %q}]",
		"schema": "openapi: {path: %q}", "environment": "configMapGenerator: [{name: x, env: %q}]",
		"environments": "configMapGenerator: [{name: x, envs: [%q]}]", "file": "configMapGenerator: [{name: x, files: [%q]}]",
		"Secret": "secretGenerator: [{name: x, files: [%q]}]", "upper case": "RESOURCES: [%q]",
		"chart": "helmCharts: [{name: x, repo: %q}]", "older chart": "helmChartInflationGenerator: [{chartName: x, helmBin: %q}]",
		"charts": "helmGlobals: {chartHome: %q}",
	}
	for what, config := range map[string]string{
		"ConfigMap": "kind: ConfigMapGenerator\nfiles: [%q]", "ConfigMap's key": "kind: ConfigMapGenerator\nfiles: [%q]",
		"environments": "kind: SecretGenerator\nEnvs: [%q]", "patch": "kind: PatchTransformer\npath: %q",
		"patches": "kind: PatchStrategicMergeTransformer\npaths: [%q]", "JSON patch": "kind: PatchJson6902Transformer\ntarget: {name: a}\npath: %q",
		"replacement": "kind: ReplacementTransformer\nreplacements: [{Path: %q}]", "value": "kind: ValueAddTransformer\nvalue: x\ntargetFilePath: %q",
		"chart": "kind: HelmChartInflationGenerator\nname: x\nrepo: %q",
	} {
		for _, list := range []string{"generators", "transformers", "validators"} {
			fields[what+" inline among "+list] = list + ":\n- |\n  " + strings.ReplaceAll(builtin+config, "\n", "\n  ")
			fields[what+" in a file of "+list] = "FILE " + list + "\n" + builtin + config
		}
	}
	for field, text := range fields {
		for what, name := range names {
			text := fmt.Sprintf(text, name)
			release := map[string]string{"web/web.yaml": configMap("a"), "web/base/web.yaml": configMap("b"), "web/kustomization.yaml": "resources: [web.yaml, base]"}
			if list, config, ok := strings.Cut(strings.TrimPrefix(text, "FILE "), "\n"); ok && strings.HasPrefix(text, "FILE ") {
				release["web/base/config.yaml"] = config
				text = list + ": [config.yaml]"
			}
			release["web/base/kustomization.yaml"] = text + "\n"
			_, err := render.Manifests(t.Context(), files(release), nil, platform.Component{Path: "web"})
			require.ErrorContains(t, err, "web/base/", "%s as %s", what, field)
			require.NoFileExists(t, marker, "%s as %s", what, field)
			require.Zero(t, asked.Load(), "%s as %s", what, field)
		}
	}
}

// TestFilesOfAReleaseThatAreCalledLikeAddresses are files: kustomize would ask the address or
// clone the repository, though the file is there.
func TestFilesOfAReleaseThatAreCalledLikeAddresses(t *testing.T) {
	host, asked := listener(t)
	release := files(map[string]string{
		"web/http:/" + host + "/web.yaml":                     configMap("a"),
		"web/http:/" + host + "/a/b.git/c/kustomization.yaml": "resources: [b.yaml]",
		"web/http:/" + host + "/a/b.git/c/b.yaml":             configMap("b"),
		"web/kustomization.yaml":                              "resources: ['http://" + host + "/web.yaml', 'http://" + host + "/a/b.git/c']",
	})
	objs, err := render.Manifests(t.Context(), release, nil, platform.Component{Path: "web"})
	require.NoError(t, err)
	require.Equal(t, []string{"ConfigMap/a", "ConfigMap/b"}, named(objs))
	require.Zero(t, asked.Load())
}

// TestPluginsOfAKustomization are refused, also those that are kustomize's own.
func TestPluginsOfAKustomization(t *testing.T) {
	for _, field := range []string{"generators", "transformers", "validators"} {
		for what, list := range map[string]string{"inline": "\n- |\n  {apiVersion: builtin, kind: PrefixTransformer, metadata: {name: r}, prefix: p-}", "in a file": " [web.yaml]"} {
			release := files(map[string]string{"web/web.yaml": configMap("a"), "web/kustomization.yaml": "resources: [web.yaml]\n" + field + ":" + list})
			_, err := render.Manifests(t.Context(), release, nil, platform.Component{Path: "web"})
			require.ErrorContains(t, err, "web/kustomization.yaml has generators, transformers or validators", "%s %s", field, what)
		}
	}
}

// unread is a release of which one file must not be opened.
type unread struct {
	fs.FS
	t    *testing.T
	name string
}

func (u unread) Open(name string) (fs.File, error) {
	require.NotEqual(u.t, u.name, name, "opened")
	return u.FS.Open(name)
}

// TestAKustomizationReadsWhatItNames: a large file beside it takes no memory, and one that it
// names is refused.
func TestAKustomizationReadsWhatItNames(t *testing.T) {
	large := strings.Repeat("#", 17<<20)
	release := map[string]string{"web/web.yaml": configMap("a"), "web/large.bin": large, "web/kustomization.yaml": "resources: [web.yaml]"}
	objs, err := render.Manifests(t.Context(), unread{files(release), t, "web/large.bin"}, nil, platform.Component{Path: "web"})
	require.NoError(t, err)
	require.Len(t, objs, 1)
	release["web/kustomization.yaml"] = "configMapGenerator: [{name: a, files: [large.bin]}]"
	_, err = render.Manifests(t.Context(), files(release), nil, platform.Component{Path: "web"})
	require.ErrorContains(t, err, "web/large.bin: larger than what is read of such a file, 16 MiB")
	_, err = render.Manifests(t.Context(), files(release), nil, platform.Component{Path: "web/large.bin"})
	require.ErrorContains(t, err, "web/large.bin: larger than what is read of such a file, 16 MiB", "nor as a manifest")
	part := strings.Repeat("#", 12<<20)
	release = map[string]string{"web/a": part, "web/b": part, "web/c": part, "web/kustomization.yaml": "configMapGenerator: [{name: a, files: [a, b, c]}]"}
	_, err = render.Manifests(t.Context(), files(release), nil, platform.Component{Path: "web"})
	require.ErrorContains(t, err, "larger than 32 MiB together")
}

// TestAliasesInAKustomization that have no end, or no end that anyone would wait for, are
// refused; others stand for what they name.
func TestAliasesInAKustomization(t *testing.T) {
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	many := object + "x0: &x0 [a,a,a,a,a,a,a,a,a,a]\n"
	for i := range 8 {
		alias := fmt.Sprintf("*x%d", i)
		many += fmt.Sprintf("x%d: &x%d [%s]\n", i+1, i+1, strings.Join(slices.Repeat([]string{alias}, 10), ","))
	}
	for text, says := range map[string]string{
		object + "x: &x [*x]\n": "the alias *x stands for a value that it is part of",
		configMap("b") + "ignored: a\n---\n" + object + "x: &x {y: *x}\n": "the alias *x stands for a value that it is part of",
		many: "stand for more than 16 MiB",
		object + "s: &x " + strings.Repeat("a", 1<<20) + "\nl: [" + strings.Repeat("*x,", 100) + "]\n": "stand for more than 16 MiB",
	} {
		for field, kustomization := range map[string]string{
			"resources":  "resources: [a.yaml]",
			"patches":    "resources: [web.yaml]\npatches: [{path: a.yaml}]",
			"components": "components: [.]",
		} {
			release := map[string]string{"web/web.yaml": configMap("a"), "web/a.yaml": text, "web/kustomization.yaml": kustomization}
			if field == "components" {
				release["web/kustomization.yaml"] = "components: [part]"
				release["web/part/kustomization.yaml"] = "{apiVersion: kustomize.config.k8s.io/v1alpha1, kind: Component, resources: [a.yaml]}"
				release["web/part/a.yaml"] = text
			}
			_, err := render.Manifests(t.Context(), files(release), nil, platform.Component{Path: "web"})
			require.ErrorContains(t, err, "/a.yaml: line ", field)
			require.ErrorContains(t, err, says, field)
		}
	}
	_, err := render.Manifests(t.Context(), files(map[string]string{"web/web.yaml": many}), nil, platform.Component{Path: "web"})
	require.ErrorContains(t, err, "stand for more than 16 MiB", "without a kustomization")
	objs, err := render.Manifests(t.Context(), files(map[string]string{
		"web/web.yaml":           "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: &n a, labels: {a: *n, b: *n}}\n",
		"web/kustomization.yaml": "resources: [web.yaml]",
	}), nil, platform.Component{Path: "web"})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "a", "b": "a"}, objs[0].GetLabels())
}

// TestAKustomizationEnds, also where each of its directories has the next one twice, or
// itself.
func TestAKustomizationEnds(t *testing.T) {
	release := fstest.MapFS{}
	for i := range 40 {
		release[fmt.Sprintf("k%d/kustomization.yaml", i)] = &fstest.MapFile{Data: fmt.Appendf(nil, "resources: [../k%d, ../k%d]\n", i+1, i+1)}
	}
	release["k40/kustomization.yaml"] = &fstest.MapFile{Data: []byte("resources: []\n")}
	_, err := render.Manifests(t.Context(), release, nil, platform.Component{Path: "k0"})
	require.ErrorContains(t, err, "k0 is made of more than 500 kustomizations")
	release["k40/kustomization.yaml"] = &fstest.MapFile{Data: []byte("resources: [../k30]\n")}
	_, err = render.Manifests(t.Context(), release, nil, platform.Component{Path: "k30"})
	require.ErrorContains(t, err, "cycle detected: candidate root '/release/k30' contains visited root")
	objs, err := render.Manifests(t.Context(), files(map[string]string{"web/kustomization.yaml": "resources: []"}), nil, platform.Component{Path: "web"})
	require.NoError(t, err, "without anything, as kustomize takes it")
	require.Empty(t, objs)
}

// TestEveryFieldOfAKustomizationIsKnown: what kustomize adds may name files or run programs.
// Look at it, and at rewrite, before you change a list.
func TestEveryFieldOfAKustomizationIsKnown(t *testing.T) {
	for of, known := range map[reflect.Type]string{
		reflect.TypeFor[types.Kustomization](): "TypeMeta MetaData OpenAPI NamePrefix NameSuffix Namespace CommonLabels Labels CommonAnnotations PatchesStrategicMerge PatchesJson6902 " +
			"Patches Images ImageTags Replacements Replicas Vars SortOptions Resources Components Crds Bases ConfigMapGenerator SecretGenerator HelmGlobals HelmCharts " +
			"HelmChartInflationGenerator GeneratorOptions Configurations Generators Transformers Validators BuildMetadata",
		reflect.TypeFor[types.GeneratorArgs]():    "Namespace Name Behavior KvPairSources Options",
		reflect.TypeFor[types.ConfigMapArgs]():    "GeneratorArgs",
		reflect.TypeFor[types.SecretArgs]():       "GeneratorArgs Type",
		reflect.TypeFor[types.KvPairSources]():    "LiteralSources FileSources EnvSources EnvSource",
		reflect.TypeFor[types.Patch]():            "Path Patch Target Options",
		reflect.TypeFor[types.ReplacementField](): "Replacement Path",
		reflect.TypeFor[types.Replacement]():      "Source Targets SourceValue",
	} {
		var fields []string
		for i := range of.NumField() {
			fields = append(fields, of.Field(i).Name)
		}
		require.Equal(t, strings.Fields(known), fields, of.Name())
	}
}
