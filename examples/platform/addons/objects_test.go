package addons_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/config/platform"
)

// objects are those of YAML with several documents.
func objects(t *testing.T, text string) []unstructured.Unstructured {
	t.Helper()
	var out []unstructured.Unstructured
	for doc := range strings.SplitSeq("\n"+text, "\n---\n") {
		var o unstructured.Unstructured
		require.NoError(t, yaml.UnmarshalStrict([]byte(doc), &o.Object), doc)
		if len(o.Object) == 0 {
			continue
		}
		require.NotEmpty(t, o.GetKind(), doc)
		require.NotEmpty(t, o.GetName(), doc)
		out = append(out, o)
	}
	return out
}

// render is what a chart of the release makes, without a cluster, as Argo CD renders it.
func render(t *testing.T, dir, name, namespace string, values map[string]any) []unstructured.Unstructured {
	t.Helper()
	c, err := loader.LoadDir(path.Join(version, dir))
	require.NoError(t, err)
	install := action.NewInstall(&action.Configuration{})
	install.ClientOnly, install.DryRun, install.Replace = true, true, true
	install.ReleaseName, install.Namespace = name, namespace
	rendered, err := install.Run(c, values)
	require.NoError(t, err, dir)
	return objects(t, rendered.Manifest)
}

// choice are settings of a user.
type choice struct{ path, managed, automatic bool }

func (c choice) String() string {
	return fmt.Sprintf("path routing %v, managed cluster %v, automatic certificates %v", c.path, c.managed, c.automatic)
}

func choices() (out []choice) {
	for n := range 8 {
		out = append(out, choice{n&1 != 0, n&2 != 0, n&4 != 0})
	}
	return out
}

// known is what the names in the release's values stand for.
func known(r *platform.Release, c choice) map[string]any {
	out := map[string]any{
		"deployment": "demo", "domain": "addons.test", "adminEmail": "admin@addons.test", "storageClass": "standard",
		"git.url": "https://git.example.com/team/addons.git", "git.revision": "main", "git.path": "gitops",
		"settings.pathRouting": c.path, "settings.managedCluster": c.managed, "settings.automaticCertificates": c.automatic,
		"settings.nodeAddresses": "192.0.2.7", "settings.acme.server": "https://acme.example.com/dir", "settings.acme.ca": "",
	}
	for _, component := range r.Components {
		for _, name := range component.Images {
			out["images."+name] = reference(name)
		}
	}
	return out
}

func reference(image string) string {
	return "slipway.local/" + image + "@sha256:" + fmt.Sprintf("%064x", []byte(image))[:64]
}

func component(t *testing.T, r *platform.Release, name string) platform.Component {
	t.Helper()
	c, ok := r.Component(name)
	require.True(t, ok, name)
	return c
}

// byName finds an object.
func byName(t *testing.T, all []unstructured.Unstructured, kind, name string) unstructured.Unstructured {
	t.Helper()
	i := slices.IndexFunc(all, func(o unstructured.Unstructured) bool { return o.GetKind() == kind && o.GetName() == name })
	require.GreaterOrEqual(t, i, 0, "%s %s", kind, name)
	return all[i]
}

// filled is a text that is a template, filled in as the operator and Argo CD do it.
func filled(t *testing.T, text string, data any) string {
	t.Helper()
	tpl, err := template.New("").Option("missingkey=error").Funcs(sprig.TxtFuncMap()).Parse(text)
	require.NoError(t, err, text)
	var out bytes.Buffer
	require.NoError(t, tpl.Execute(&out, data), text)
	return out.String()
}

// each fills in all texts of a value.
func each(t *testing.T, v any, data any) any {
	t.Helper()
	switch v := v.(type) {
	case string:
		return filled(t, v, data)
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			out[k] = each(t, e, data)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = each(t, e, data)
		}
		return out
	}
	return v
}

// cluster is the cluster's Secret as the operator makes it of the store: what Argo CD's
// generator knows of it.
func cluster(t *testing.T, r *platform.Release, c choice) map[string]any {
	t.Helper()
	store := component(t, r, "store")
	values, err := platform.FillValues(store.Values, known(r, c))
	require.NoError(t, err)
	all := render(t, store.Path, store.Name, store.Namespace, values)
	var config corev1.Secret
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(byName(t, all, "Secret", "config").Object, &config))
	external := byName(t, all, "ExternalSecret", "cluster")
	require.Equal(t, "argocd", external.GetNamespace())
	made, _, err := unstructured.NestedMap(external.Object, "spec", "target", "template")
	require.NoError(t, err)
	digests := func(stored map[string]string) (ofConfig, ofStore any) {
		annotations := each(t, made, stored).(map[string]any)["metadata"].(map[string]any)["annotations"].(map[string]any)
		return annotations["config_digest"], annotations["store_digest"]
	}
	configured, read := digests(config.StringData)
	require.Equal(t, configured, read)
	changed := maps.Clone(config.StringData)
	changed["domain"] = "changed.test"
	configured, read = digests(changed)
	require.NotEqual(t, configured, read, "a gate waits while the operator has read what somebody has changed")
	made = each(t, made, config.StringData).(map[string]any)
	data := made["data"].(map[string]any)
	require.Equal(t, "cluster", made["metadata"].(map[string]any)["labels"].(map[string]any)["argocd.argoproj.io/secret-type"])
	require.True(t, json.Valid([]byte(data["config"].(string))))
	return map[string]any{"name": data["name"], "server": data["server"], "metadata": made["metadata"]}
}

// application is one that an ApplicationSet makes.
type application struct {
	set       string
	component platform.Component
	name      string
	spec      map[string]any
	namespace string
	objects   []unstructured.Unstructured
}

// applications are those that the sets of the release make for a cluster, by name.
func applications(t *testing.T, r *platform.Release, cluster map[string]any) map[string]application {
	t.Helper()
	labels := cluster["metadata"].(map[string]any)["labels"].(map[string]any)
	out := map[string]application{}
	for _, c := range r.Components {
		if c.Kind != platform.AppSet {
			continue
		}
		for _, set := range sets(t, r, c) {
			generators, _, _ := unstructured.NestedSlice(set.Object, "spec", "generators")
			require.Len(t, generators, 1)
			selected, _, err := unstructured.NestedStringMap(generators[0].(map[string]any), "clusters", "selector", "matchLabels")
			require.NoError(t, err)
			if slices.ContainsFunc(slices.Collect(maps.Keys(selected)), func(k string) bool { return labels[k] != selected[k] }) {
				continue
			}
			made, _, _ := unstructured.NestedMap(set.Object, "spec", "template")
			made = each(t, made, cluster).(map[string]any)
			a := application{set: set.GetName(), component: c, name: made["metadata"].(map[string]any)["name"].(string), spec: made["spec"].(map[string]any)}
			require.NotContains(t, out, a.name)
			a.namespace, _, _ = unstructured.NestedString(a.spec, "destination", "namespace")
			source := a.spec["source"].(map[string]any)
			helm := source["helm"].(map[string]any)
			a.objects = render(t, source["path"].(string), helm["releaseName"].(string), a.namespace, helm["valuesObject"].(map[string]any))
			out[a.name] = a
		}
	}
	return out
}

func sets(t *testing.T, r *platform.Release, c platform.Component) []unstructured.Unstructured {
	t.Helper()
	text, err := fs.ReadFile(r.Files(), c.Path)
	require.NoError(t, err)
	all := objects(t, string(text))
	for _, o := range all {
		require.Equal(t, "ApplicationSet", o.GetKind())
	}
	return all
}

// environment are the variables of a workload's only container.
func environment(t *testing.T, o unstructured.Unstructured) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, v := range podTemplate(t, o).Spec.Containers[0].Env {
		out[v.Name] = v.Value
	}
	return out
}

// podTemplate is that of a workload, in which every field is known.
func podTemplate(t *testing.T, o unstructured.Unstructured) corev1.PodTemplateSpec {
	t.Helper()
	var out corev1.PodTemplateSpec
	raw, ok, err := unstructured.NestedMap(o.Object, "spec", "template")
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(raw, &out, true), o.GetName())
	return out
}

// everything are the objects of what is adopted and of all addons.
func everything(t *testing.T, r *platform.Release) map[string][]unstructured.Unstructured {
	t.Helper()
	out := map[string][]unstructured.Unstructured{}
	for _, c := range []choice{{path: true, automatic: true}, {managed: true, automatic: true}} {
		for _, a := range applications(t, r, cluster(t, r, c)) {
			out[a.component.Name] = append(out[a.component.Name], a.objects...)
		}
	}
	for _, c := range r.Components {
		if !c.HasChart() {
			continue
		}
		values, err := platform.FillValues(c.Values, known(r, choice{}))
		require.NoError(t, err)
		out[c.Name] = append(out[c.Name], render(t, c.Path, c.Name, c.Namespace, values)...)
	}
	return out
}
