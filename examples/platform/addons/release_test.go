// Package addons_test checks the platform of this folder: what its files say against each
// other, and against what there is to install it from.
package addons_test

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
			what, s := o.GetKind()+" "+o.GetName(), podTemplate(t, o).Spec
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
	inCluster, inNamespaces := map[string]bool{}, map[string]bool{}
	for _, c := range choices() {
		for _, a := range applications(t, r, cluster(t, r, c)) {
			require.Contains(t, r.Destinations(), a.namespace)
			for _, o := range a.objects {
				kind := strings.TrimPrefix(o.GroupVersionKind().Group+"/"+o.GetKind(), "/")
				if scoped.MatchString(o.GetKind()) {
					inCluster[kind] = true
					continue
				}
				inNamespaces[kind] = true
				if o.GetNamespace() != "" {
					require.Equal(t, a.namespace, o.GetNamespace(), o.GetName())
				}
			}
		}
	}
	require.Equal(t, r.GitOps.Project.ClusterKinds, slices.Sorted(maps.Keys(inCluster)), "no more than they need")
	require.Equal(t, r.GitOps.Project.Kinds, slices.Sorted(maps.Keys(inNamespaces)), "no more than they need")
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

// TestWhatIsAskedAndToldFitsTheSettings: neither names what they make nothing of.
func TestWhatIsAskedAndToldFitsTheSettings(t *testing.T) {
	r := open(t)
	const components = "argocd load-balancer certificate portal"
	for settings, want := range map[string][3]string{
		`{"pathRouting":true,"managedCluster":true,"automaticCertificates":false}`:  {"routing     paths of https://addons.test\n", "components  argocd portal\n", "https://addons.test."},
		`{"pathRouting":false,"managedCluster":false,"automaticCertificates":true}`: {"routing     hosts below addons.test\n", "components  " + components + "\n", "https://portal.addons.test."},
		`{"pathRouting":true,"managedCluster":false,"automaticCertificates":false}`: {"routing     paths of https://addons.test\n", "components  argocd load-balancer portal\n", "https://addons.test."},
	} {
		asked, err := r.Approve(platform.ApprovalData{GuidanceData: platform.GuidanceData{Domain: "addons.test", Components: strings.Fields(components), Settings: json.RawMessage(settings)}})
		require.NoError(t, err)
		require.Contains(t, asked, "\n  "+want[0])
		require.Contains(t, asked, "\n  "+want[1])
		told, err := r.Guide(platform.GuidanceData{Domain: "addons.test", Components: strings.Fields(components), Settings: json.RawMessage(settings)})
		require.NoError(t, err)
		require.Contains(t, told, "The portal is at "+want[2]+"\n")
	}
}
