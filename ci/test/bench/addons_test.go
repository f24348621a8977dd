package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
)

const treeURL = "https://192.0.2.2:4443/tree/.git" // that of firstHalf

// known are what the names in the values of the release stand for.
func known(t *testing.T, r *platform.Release) map[string]any {
	t.Helper()
	settings := decode(t, []byte(addonsSettings))
	text, err := json.Marshal(settings)
	require.NoError(t, err)
	require.NoError(t, r.CheckSettings(text))
	out := map[string]any{
		"deployment": "bench", "domain": "slipway.test", "adminEmail": "admin@slipway.test", "storageClass": "local-path",
		"git.url": treeURL, "git.revision": "main", "git.path": "gitops",
		"settings.acme.server": settings["acme"].(map[string]any)["server"], "settings.acme.ca": settings["acme"].(map[string]any)["ca"],
	}
	for _, name := range []string{"pathRouting", "managedCluster", "nodeAddresses", "automaticCertificates"} {
		out["settings."+name] = settings[name]
	}
	for _, c := range r.Components {
		for _, name := range c.ImageNames() {
			out["images."+name] = referenceOf(name)
		}
	}
	return out
}

// values are those that a component's chart gets.
func values(t *testing.T, r *platform.Release, c platform.Component) map[string]any {
	t.Helper()
	filled, err := platform.FillValues(c.Values, known(t, r))
	require.NoError(t, err)
	return filled
}

// TestTheScriptInstallsTheReleaseOfAddons: every component, in the order of the release, each
// with what it is made of, and what it waits for.
func TestTheScriptInstallsTheReleaseOfAddons(t *testing.T) {
	want := load(t, addons())
	s := dry(t, addons(), "installed:")
	rest := s.did
	next := func(command string) {
		t.Helper()
		_, after, found := strings.Cut("\n"+rest, "\n"+command)
		require.True(t, found, "%q comes next, of:\n%s", command, rest)
		rest = after
	}
	for _, c := range want.Components {
		if !c.Enabled {
			require.NotContains(t, s.did, c.Name+"\n")
			continue
		}
		switch c.Kind {
		case platform.Manifests:
			require.NotEmpty(t, c.Bundle)
			if c.Path == "" {
				next("apply " + c.Bundle + "\n")
			} else {
				next("apply " + c.Name + "\n")
				requirePatched(t, want, c, filepath.Join(s.dir, c.Name))
			}
			next("kubectl wait crd --all --for=condition=Established")
		case platform.Adopted:
			next(fmt.Sprintf("helm template %s %s -n %s -f %s\n", c.Name, filepath.Join(directory(addons()), c.Path), c.Namespace, filepath.Join(s.dir, c.Name+".yaml")))
			next("apply " + c.Name + "-chart.yaml\n")
			rolled := rest
			for _, workload := range workloads(t, want, c) {
				require.Contains(t, rolled, "rollout "+workload+"\n")
			}
			next("app_is " + c.Name + "\n")
			requireAdopted(t, want, c, s)
		case platform.Chart:
			next(fmt.Sprintf("helm upgrade --install %s %s -n %s -f %s", c.Name, filepath.Join(directory(addons()), c.Path), c.Namespace, filepath.Join(s.dir, c.Name+".yaml")))
			requireValues(t, values(t, want, c), filepath.Join(s.dir, c.Name+".yaml"))
		case platform.AppSet:
			next("apply " + filepath.Base(c.Path) + "\n")
		default:
			t.Fatalf("the script does not know the kind of %s", c.Name)
		}
		for _, g := range c.Ready {
			if g.Condition != nil {
				next("wait externalsecrets.external-secrets.io -n argocd cluster --for=condition=" + g.Condition.Type)
				require.Equal(t, "external-secrets.io/v1/ExternalSecret argocd/cluster", g.Condition.Object)
				continue
			}
			if g.CEL != nil {
				looks := map[string]string{"external-secrets.io/v1/ExternalSecret argocd/cluster": "store_is_synced\n", "v1/Secret argocd/cluster": "store_is_read\n"}
				require.Contains(t, looks, g.CEL.Object)
				next(looks[g.CEL.Object])
				continue
			}
			require.NotEmpty(t, g.Rollout)
			_, name, _ := strings.Cut(g.Rollout, " ")
			require.Contains(t, s.did, "rollout deployment/"+filepath.Base(name)+"\n")
		}
	}
	sets, apps := brought(t, want)
	next("sets_are " + strings.Join(sets, " ") + "\n")
	next("apps_are argocd " + strings.Join(apps, " ") + "\n")
	for _, l := range want.Links {
		service, _, _ := strings.Cut(l.Service, ":")
		next("page " + l.URL("slipway.test", "bench") + " " + strings.Replace(service, "/", " ", 1) + "\n")
	}
	require.Empty(t, want.Checks, "the script has none")
}

// TestTheScriptLeavesToArgoCDWhatItHas: what was adopted is not installed again.
func TestTheScriptLeavesToArgoCDWhatItHas(t *testing.T) {
	s := dry(t, addons(), "store", "THERE=1")
	require.NotContains(t, s.did, "helm template")
	require.NotContains(t, s.did, "-chart.yaml")
	require.Contains(t, s.did, "rollout deployment/argocd-server\n")
	require.Contains(t, s.did, "app_is external-secrets\n")
}

// requirePatched finds the bundle's files and those of the release in a kustomization.
func requirePatched(t *testing.T, r *platform.Release, c platform.Component, dir string) {
	t.Helper()
	var k struct {
		Resources []string
		Patches   []struct{ Path string }
	}
	text, err := os.ReadFile(filepath.Join(dir, "kustomization.yaml"))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &k))
	require.Len(t, k.Resources, 1)
	require.Contains(t, k.Resources[0], c.Bundle+".y")
	require.FileExists(t, filepath.Join(dir, k.Resources[0]))
	files, err := fs.ReadDir(r.Files(), c.Path)
	require.NoError(t, err)
	require.Len(t, k.Patches, len(files))
	for _, p := range k.Patches {
		released, err := fs.ReadFile(r.Files(), c.Path+"/"+filepath.Base(p.Path))
		require.NoError(t, err)
		applied, err := os.ReadFile(filepath.Join(dir, p.Path))
		require.NoError(t, err)
		require.Equal(t, string(released), string(applied))
	}
}

func requireValues(t *testing.T, want map[string]any, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, want, decode(t, text))
}

// templates are the texts of a chart of the release.
func templates(t *testing.T, r *platform.Release, c platform.Component) string {
	t.Helper()
	var all strings.Builder
	require.NoError(t, fs.WalkDir(r.Files(), c.Path+"/templates", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(r.Files(), name)
		all.Write(text)
		return err
	}))
	return all.String()
}

// workloads are those of a chart, as kubectl rollout names them.
func workloads(t *testing.T, r *platform.Release, c platform.Component) (out []string) {
	t.Helper()
	for _, m := range regexp.MustCompile(`(?m)^kind: (Deployment|StatefulSet)\nmetadata:\n  name: (\S+)$`).FindAllStringSubmatch(templates(t, r, c), -1) {
		out = append(out, strings.ToLower(m[1])+"/"+m[2])
	}
	require.NotEmpty(t, out)
	return out
}

// requireAdopted finds the Application with which Argo CD has a chart, with the values that it
// was installed with, and its project, which allows what the chart has outside of namespaces.
func requireAdopted(t *testing.T, r *platform.Release, c platform.Component, s said) {
	t.Helper()
	want := values(t, r, c)
	requireValues(t, want, filepath.Join(s.dir, c.Name+".yaml"))
	app := s.object(t, "Application", "argocd", c.Name)
	require.Equal(t, map[string]any{
		"repoURL": treeURL, "targetRevision": "main", "path": c.Path,
		"helm": map[string]any{"releaseName": c.Name, "valuesObject": want},
	}, app.Spec["source"])
	require.Equal(t, c.Namespace, app.Spec["destination"].(map[string]any)["namespace"])
	require.Equal(t, []any{"ServerSideApply=true"}, app.Spec["syncPolicy"].(map[string]any)["syncOptions"])
	require.Equal(t, c.Name == r.GitOps.Engine, len(app.Metadata.Finalizers) == 0, "Argo CD cannot remove itself")
	project := s.object(t, "AppProject", "argocd", app.Spec["project"].(string))
	var needs, allowed []string
	for _, m := range regexp.MustCompile(`(?m)^kind: (Cluster\w+|\w+Class|\w+WebhookConfiguration|CustomResourceDefinition)$`).FindAllStringSubmatch(templates(t, r, c), -1) {
		needs = append(needs, m[1])
	}
	for _, k := range project.Spec["clusterResourceWhitelist"].([]any) {
		allowed = append(allowed, k.(map[string]any)["kind"].(string))
	}
	slices.Sort(needs)
	require.Equal(t, slices.Compact(needs), allowed)
	require.Equal(t, []any{treeURL}, project.Spec["sourceRepos"])
}

// object is one that the script makes.
func (s said) object(t *testing.T, kind, namespace, name string) object {
	t.Helper()
	i := slices.IndexFunc(s.objects, func(o object) bool {
		return o.Kind == kind && o.Metadata.Namespace == namespace && o.Metadata.Name == name
	})
	require.GreaterOrEqual(t, i, 0, "%s %s/%s", kind, namespace, name)
	return s.objects[i]
}

// brought are the ApplicationSets of the release, and the Applications that are there with
// them: those for the labels of the store, and the adopted ones.
func brought(t *testing.T, r *platform.Release) (sets, apps []string) {
	t.Helper()
	labels := map[string]string{"argocd.argoproj.io/secret-type": "cluster"}
	store, _ := r.Component("store")
	for key, value := range values(t, r, store)["config"].(map[string]any) {
		labels[key] = fmt.Sprint(value)
	}
	for _, c := range r.Components {
		if c.Kind == platform.Adopted {
			apps = append(apps, c.Name)
		}
		if c.Kind != platform.AppSet {
			continue
		}
		file, err := r.Files().Open(c.Path)
		require.NoError(t, err)
		for documents := yaml.NewDecoder(file); ; {
			var set struct {
				Metadata struct{ Name string }
				Spec     struct {
					Generators []struct {
						Clusters struct {
							Selector struct {
								MatchLabels map[string]string `yaml:"matchLabels"`
							}
						}
					}
					Template struct{ Metadata struct{ Name string } }
				}
			}
			if documents.Decode(&set) != nil {
				break
			}
			sets = append(sets, set.Metadata.Name)
			require.Len(t, set.Spec.Generators, 1)
			of := set.Spec.Generators[0].Clusters.Selector.MatchLabels
			if !slices.ContainsFunc(slices.Collect(maps.Keys(of)), func(key string) bool { return labels[key] != of[key] }) {
				apps = append(apps, strings.Replace(set.Spec.Template.Metadata.Name, "{{ .name }}", "bench", 1))
			}
		}
		require.NoError(t, file.Close())
	}
	slices.Sort(sets)
	slices.Sort(apps)
	require.Less(t, len(apps), len(sets), "some make none here")
	return sets, apps
}

// TestTheScriptsAccessIsTheRepositorys: what Argo CD is told of it, and what a push to it can
// bring about.
func TestTheScriptsAccessIsTheRepositorys(t *testing.T) {
	want := load(t, addons())
	s := dry(t, addons(), "store")
	require.Equal(t, map[string]any{"type": "git", "url": treeURL, "username": "argocd", "password": "the token"},
		s.object(t, "Secret", "argocd", "repository-platform").StringData)
	require.Equal(t, map[string]any{"192.0.2.2": "the CA of the repository\n"}, s.object(t, "ConfigMap", "argocd", "argocd-tls-certs-cm").Data)
	credentials, err := os.ReadFile(filepath.Join(s.dir, "credentials"))
	require.NoError(t, err)
	require.Equal(t, "https://argocd:the token@192.0.2.2:4443\n", string(credentials))

	project := s.object(t, "AppProject", "argocd", want.GitOps.Project.Name)
	require.Equal(t, []any{treeURL}, project.Spec["sourceRepos"])
	var namespaces, kinds []string
	for _, d := range project.Spec["destinations"].([]any) {
		namespaces = append(namespaces, d.(map[string]any)["namespace"].(string))
	}
	for _, k := range project.Spec["clusterResourceWhitelist"].([]any) {
		kinds = append(kinds, k.(map[string]any)["group"].(string)+"/"+k.(map[string]any)["kind"].(string))
	}
	require.Equal(t, want.Destinations(), namespaces)
	require.Equal(t, want.GitOps.Project.ClusterKinds, kinds)
}

// TestRepositoryIsServedOnce, for both who read it, with a configuration that suits the release.
func TestRepositoryIsServedOnce(t *testing.T) {
	r := &repository{dir: t.TempDir(), release: directory(addons())}
	require.NoError(t, r.Close(), "not served yet")
	require.NoError(t, r.serveAt(t.Context(), "127.0.0.1"))
	served := r.served
	require.NoError(t, r.serve(t.Context()))
	require.Same(t, served, r.served)
	text, err := os.ReadFile(r.config())
	require.NoError(t, err)
	c, err := config.Load(text, config.Options{DefaultProvider: "local"})
	require.NoError(t, err)
	require.Equal(t, served.URL, c.Git.URL)
	require.Equal(t, "slipway.test", c.Global.Domain, "that of install.sh")
	require.NoError(t, load(t, addons()).CheckSettings(c.Platform.Settings))
	require.NoError(t, r.Close())
}
