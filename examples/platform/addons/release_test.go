// Package addons_test checks the platform of this folder: what its files say against each
// other, and against what there is to install it from.
package addons_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/providers/existing"
	"github.com/slipway-sh/slipway/providers/local"
	"github.com/slipway-sh/slipway/stages"
)

const version = "1.0.0"

func open(t *testing.T) *platform.Release {
	t.Helper()
	r, err := platform.Load(os.DirFS(version))
	require.NoError(t, err)
	require.Equal(t, version, r.Version, "the folder is named after the version")
	return r
}

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
	tpl, err := template.New("").Option("missingkey=error").Parse(text)
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

// TestTheLabelsDecideWhichAddonsThereAre, and the annotations what they are told.
func TestTheLabelsDecideWhichAddonsThereAre(t *testing.T) {
	r := open(t)
	for _, c := range choices() {
		t.Run(c.String(), func(t *testing.T) {
			all := applications(t, r, cluster(t, r, c))
			want := []string{"cert-manager-demo", "dex-demo", "portal-demo", "routes-demo", "traefik-demo", "workflows-demo"}
			if !c.managed {
				want = append(want, "load-balancer-demo")
			}
			if c.automatic {
				want = append(want, "certificate-demo")
			}
			require.ElementsMatch(t, want, slices.Collect(maps.Keys(all)))
			for _, a := range all {
				require.Equal(t, "https://git.example.com/team/addons.git", a.spec["source"].(map[string]any)["repoURL"])
				require.Equal(t, "main", a.spec["source"].(map[string]any)["targetRevision"])
				require.Equal(t, r.GitOps.Project.Name, a.spec["project"])
			}

			portal, issuer, rule := "https://portal.addons.test", "https://dex.addons.test", "Host(`argocd.addons.test`)"
			set := "routes-by-host"
			if c.path {
				portal, issuer, rule, set = "https://addons.test", "https://addons.test/dex", "Host(`addons.test`) && PathPrefix(`/argocd`)", "routes-by-path"
			}
			require.Equal(t, set, all["routes-demo"].set)
			route := byName(t, all["routes-demo"].objects, "IngressRoute", "argocd")
			rules, _, _ := unstructured.NestedSlice(route.Object, "spec", "routes")
			require.Equal(t, rule, rules[0].(map[string]any)["match"])
			require.Equal(t, c.path, rules[0].(map[string]any)["middlewares"] != nil)
			env := environment(t, byName(t, all["portal-demo"].objects, "Deployment", "portal"))
			require.Equal(t, portal, env["PUBLIC_URL"])
			require.Equal(t, issuer, env["ISSUER"])
			require.Equal(t, "traefik.traefik.svc:443", env["ISSUER_ADDRESS"])
			dex := byName(t, all["dex-demo"].objects, "ConfigMap", "dex")
			text, _, _ := unstructured.NestedString(dex.Object, "data", "config.yaml")
			require.Contains(t, text, "issuer: "+issuer+"\n")

			store := byName(t, all["traefik-demo"].objects, "TLSStore", "default")
			certificate, _, _ := unstructured.NestedString(store.Object, "spec", "defaultCertificate", "secretName")
			service := byName(t, all["traefik-demo"].objects, "Service", "traefik")
			class, _, _ := unstructured.NestedString(service.Object, "spec", "loadBalancerClass")
			require.Equal(t, c.managed, class == "")
			if !c.managed {
				require.Equal(t, class, environment(t, byName(t, all["load-balancer-demo"].objects, "Deployment", "load-balancer"))["CLASS"])
			}
			if !c.automatic {
				require.Equal(t, "tls-imported", certificate)
				return
			}
			wanted := byName(t, all["certificate-demo"].objects, "Certificate", "gateway")
			issued, _, _ := unstructured.NestedString(wanted.Object, "spec", "secretName")
			require.Equal(t, issued, certificate)
			hosts, _, _ := unstructured.NestedStringSlice(wanted.Object, "spec", "dnsNames")
			require.Equal(t, c.path, len(hosts) == 1, hosts)
		})
	}
}

// environment are the variables of a workload's only container.
func environment(t *testing.T, o unstructured.Unstructured) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, v := range template0(t, o).Spec.Containers[0].Env {
		out[v.Name] = v.Value
	}
	return out
}

func template0(t *testing.T, o unstructured.Unstructured) corev1.PodTemplateSpec {
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

// TestEveryWorkloadIsConfined to what the namespaces' pod security asks for, and more, and runs
// images that its component names.
func TestEveryWorkloadIsConfined(t *testing.T) {
	r := open(t)
	for _, n := range r.Namespaces {
		require.Equal(t, "restricted", n.Labels["pod-security.kubernetes.io/enforce"], n.Name)
	}
	pins, err := lock.Load()
	require.NoError(t, err)
	seen := map[string]bool{}
	for name, all := range everything(t, r) {
		for _, o := range all {
			if !slices.Contains([]string{"Deployment", "StatefulSet", "Job"}, o.GetKind()) {
				continue
			}
			seen[o.GetName()] = true
			what, s := o.GetKind()+" "+o.GetName(), template0(t, o).Spec
			require.True(t, *s.SecurityContext.RunAsNonRoot, what)
			require.Positive(t, *s.SecurityContext.RunAsUser, what)
			require.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, s.SecurityContext.SeccompProfile.Type, what)
			require.NotNil(t, s.AutomountServiceAccountToken, what)
			require.False(t, *s.EnableServiceLinks, what)
			for _, c := range s.Containers {
				require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem, what)
				require.False(t, *c.SecurityContext.AllowPrivilegeEscalation, what)
				require.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop, what)
				require.False(t, c.Resources.Requests.Memory().IsZero(), what)
				require.GreaterOrEqual(t, c.Resources.Limits.Memory().Cmp(*c.Resources.Requests.Memory()), 0, what)
				image := ""
				for _, i := range component(t, r, name).Images {
					if reference(i) == c.Image {
						image = i
					}
				}
				require.NotEmpty(t, image, "%s runs %s", what, c.Image)
				_, ok := pins.Image(image)
				require.True(t, ok, image)
			}
		}
	}
	require.Greater(t, len(seen), 12)
}

// TestAPushBringsNoMoreThanTheProjectSays.
func TestAPushBringsNoMoreThanTheProjectSays(t *testing.T) {
	r := open(t)
	scoped := regexp.MustCompile(`^(ClusterRole|ClusterRoleBinding|IngressClass|ClusterSecretStore|(Mutating|Validating)WebhookConfiguration)$`)
	kinds := map[string]bool{}
	for _, c := range choices() {
		for _, a := range applications(t, r, cluster(t, r, c)) {
			require.Contains(t, r.Destinations(), a.namespace)
			for _, o := range a.objects {
				if scoped.MatchString(o.GetKind()) {
					kinds[o.GroupVersionKind().GroupKind().Group+"/"+o.GetKind()] = true
				} else if o.GetNamespace() != "" {
					require.Equal(t, a.namespace, o.GetNamespace(), o.GetName())
				}
			}
		}
	}
	require.Equal(t, r.GitOps.Project.ClusterKinds, slices.Sorted(maps.Keys(kinds)), "no more than they need")
}

// TestWhatIsReplacedIsSoOnlyWhereItDiffers: any other change of its addon would replace it, too,
// and a Service would get another address.
func TestWhatIsReplacedIsSoOnlyWhereItDiffers(t *testing.T) {
	r := open(t)
	replaced := 0
	for _, a := range applications(t, r, cluster(t, r, choice{path: true, managed: true})) {
		options, _, err := unstructured.NestedStringSlice(a.spec, "syncPolicy", "syncOptions")
		require.NoError(t, err)
		for _, o := range a.objects {
			if strings.Contains(o.GetAnnotations()["argocd.argoproj.io/sync-options"], "Replace=true") {
				replaced++
				require.Contains(t, options, "ApplyOutOfSyncOnly=true", "%s of %s", o.GetKind(), a.name)
			}
		}
	}
	require.Positive(t, replaced)
}

// TestTheRemovalNamesEverySet that the release has.
func TestTheRemovalNamesEverySet(t *testing.T) {
	r := open(t)
	var have, named []string
	for _, c := range r.Components {
		if c.Kind == platform.AppSet {
			for _, s := range sets(t, r, c) {
				have = append(have, s.GetName())
			}
		}
	}
	for _, s := range r.Removal().Applications {
		named = append(named, s.Set)
		require.Positive(t, s.Limit(r.Removal()))
	}
	require.ElementsMatch(t, have, named)
	require.Equal(t, platform.RemoveKeep, r.Removal().CRDs)
	require.Equal(t, platform.RemoveDelete, r.Removal().Claims)
}

// TestThePhasesAreThoseOfTheFlow that users of such platforms know, and each component that is
// more than definitions is in one of them.
func TestThePhasesAreThoseOfTheFlow(t *testing.T) {
	r := open(t)
	var names, has []string
	for _, p := range r.Phases {
		names, has = append(names, p.Name), append(has, p.Components...)
	}
	require.Equal(t, []string{
		"User Approval", "Setup Configuration", "Cluster Bootstrap", "Addons Deployment", "Addon Configuration", "Monitoring and Verification",
		"Remove Addons", "CRD Cleanup",
	}, names)
	require.True(t, r.Phases[0].Approval)
	require.NotEmpty(t, r.Approval, "an install asks")
	for _, c := range r.Components {
		if !strings.HasSuffix(c.Name, "-definitions") {
			require.Contains(t, has, c.Name)
		}
	}

	// Each phase is in the report of a run of its workflow, on both kinds of clusters.
	cfg := config.Default()
	cfg.Git.URL = "https://git.example.com/team/addons.git"
	require.NoError(t, json.Unmarshal([]byte(`{"pathRouting": true, "managedCluster": true, "nodeAddresses": "", "automaticCertificates": false, "acme": {"server": "", "ca": ""}}`), &cfg.Platform.Settings))
	for _, provider := range []providers.Provider{local.Provider{}, existing.Provider{}} {
		steps, err := stages.Steps(provider, cfg, r)
		require.NoError(t, err)
		for i, p := range r.Phases {
			workflow := "install"
			if i >= len(names)-2 {
				workflow = "destroy"
			}
			in := slices.ContainsFunc(steps[workflow], func(s string) bool {
				_, name, _ := strings.Cut(s, "/")
				return slices.Contains(p.Steps, s) || slices.Contains(p.Components, name)
			})
			whole := provider.Name() == local.Name && p.Name == "CRD Cleanup" // the cluster goes as a whole
			require.Equal(t, !p.Approval && !whole, in, "%s with provider %s", p.Name, provider.Name())
			for _, s := range p.Steps {
				require.True(t, slices.Contains(steps["install"], s) || slices.Contains(steps["destroy"], s) || strings.HasSuffix(s, "-remove"), s)
			}
		}
	}
}

// TestSettingsThatAreMissingAreNamed.
func TestSettingsThatAreMissingAreNamed(t *testing.T) {
	r := open(t)
	require.NoError(t, r.CheckSettings(json.RawMessage(`{"pathRouting": true, "managedCluster": true, "nodeAddresses": "", "automaticCertificates": false, "acme": {"server": "", "ca": ""}}`)))
	err := r.CheckSettings(json.RawMessage(`{"pathRouting": true, "acme": {"server": "", "ca": ""}}`))
	require.ErrorContains(t, err, "managedCluster")
	require.ErrorContains(t, err, "automaticCertificates")
	require.Error(t, r.CheckSettings(json.RawMessage(`{"pathRouting": true, "managedCluster": true, "nodeAddresses": "", "automaticCertificates": true, "acme": {"server": "", "ca": ""}}`)), "no ACME server")
}
