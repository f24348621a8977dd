package platform_test

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	releases "github.com/slipway-sh/slipway/examples/platform"
	"github.com/slipway-sh/slipway/fault"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestVersions(t *testing.T) {
	for _, version := range releases.Versions() {
		dir, err := releases.Release(version)
		require.NoError(t, err)
		release, err := platform.Load(dir)
		require.NoError(t, err)
		require.Equal(t, version, release.Version, "the folder is named after the version")
		require.Equal(t, "reference", release.Name)
	}
	_, err := releases.Release("9.9.9")
	require.ErrorIs(t, err, &fault.Fault{Code: platform.CodeMissing})
	require.Equal(t, fault.Usage, fault.ClassOf(err))
	require.ErrorContains(t, err, `there is no release "9.9.9"`)
}

func TestDefaultConfigNamesARelease(t *testing.T) {
	require.Contains(t, releases.Versions(), config.Default().Platform.Release)
}

// TestApplications holds the root app against platform.yaml.
func TestApplications(t *testing.T) {
	dir, release := open(t)
	for name, choices := range map[string]map[string]bool{
		"default": nil, "with the toolbox": {"toolbox": true}, "without the guestbook": {"guestbook": false},
	} {
		t.Run(name, func(t *testing.T) {
			off, err := release.Off(choices)
			require.NoError(t, err)
			want, err := release.Apps(off)
			require.NoError(t, err)
			wanted := map[string]platform.Component{}
			for _, c := range want {
				wanted[c.Name] = c
			}
			got := renderAll(t, dir, "50", choices)["root-app"].objects
			require.Len(t, got, len(wanted))
			for _, app := range got {
				c, ok := wanted[app.GetName()]
				require.True(t, ok, app.GetName())
				require.Equal(t, "argoproj.io/v1alpha1 Application", app.GetAPIVersion()+" "+app.GetKind())
				require.Equal(t, "argocd", app.GetNamespace())
				require.Equal(t, strconv.Itoa(c.Wave), app.GetAnnotations()["argocd.argoproj.io/sync-wave"])
				require.Equal(t, []string{"resources-finalizer.argocd.argoproj.io"}, app.GetFinalizers())
				at := func(fields ...string) string {
					value, _, err := unstructured.NestedString(app.Object, fields...)
					require.NoError(t, err)
					return value
				}
				require.Equal(t, c.Namespace, at("spec", "destination", "namespace"))
				require.Equal(t, "https://kubernetes.default.svc", at("spec", "destination", "server"))
				require.Equal(t, c.Name, at("spec", "source", "helm", "releaseName"))
				require.Equal(t, c.Path, release.GitOps.Tree+"/"+at("spec", "source", "path"))
				require.Equal(t, "0123456789abcdef0123456789abcdef01234567", at("spec", "source", "targetRevision"))
				for _, field := range []string{"prune", "selfHeal"} {
					on, _, err := unstructured.NestedBool(app.Object, "spec", "syncPolicy", "automated", field)
					require.NoError(t, err)
					require.True(t, on, field)
				}
				given, _, err := unstructured.NestedStringMap(app.Object, "spec", "source", "helm", "valuesObject", "images")
				require.NoError(t, err)
				require.Len(t, given, len(c.Images), "an app gets its own images only")
			}
		})
	}
	waves := map[int]bool{}
	for _, c := range release.Components {
		if c.Kind == platform.App && c.Enabled {
			waves[c.Wave] = true
		}
	}
	require.Len(t, waves, 3)
}

// TestProject holds what the apps render against what their AppProject, which Slipway
// makes, will allow: their own namespaces, and the kinds that the release names.
func TestProject(t *testing.T) {
	dir, release := open(t)
	cluster, namespaced := map[string]bool{}, map[string]bool{}
	for _, scale := range []string{"50", "1000"} {
		for name, p := range renderAll(t, dir, scale, map[string]bool{"toolbox": true}) {
			for _, o := range p.objects {
				decode(t, o) // it knows every kind: those but PriorityClass have namespaces
				if name == "root-app" {
					project, _, err := unstructured.NestedString(o.Object, "spec", "project")
					require.NoError(t, err)
					require.Equal(t, release.GitOps.Project.Name, project)
					continue
				}
				require.Empty(t, o.GetNamespace(), "%s %s: the release's namespace, not one of its own", o.GetKind(), o.GetName())
				used := namespaced
				if o.GetKind() == "PriorityClass" {
					used = cluster
				}
				if p.component.Kind == platform.App {
					used[strings.TrimPrefix(o.GroupVersionKind().Group+"/"+o.GetKind(), "/")] = true
				}
			}
			if p.component.Kind == platform.App {
				require.NotEqual(t, release.Engine().Namespace, p.component.Namespace, "no app reaches Argo CD")
			}
		}
	}
	require.Equal(t, release.GitOps.Project.ClusterKinds, slices.Sorted(maps.Keys(cluster)), "no more than they need")
	require.Equal(t, release.GitOps.Project.Kinds, slices.Sorted(maps.Keys(namespaced)), "no more than they need")
	for _, kind := range release.GitOps.Project.Kinds {
		require.NotContains(t, kind, "Role", "an app gives nobody a right")
	}
}

// TestArgoCDChanges checks that the documents are objects, each once.
func TestArgoCDChanges(t *testing.T) {
	dir, release := open(t)
	files, err := fs.Glob(dir, release.Engine().Path+"/*.yaml")
	require.NoError(t, err)
	var names, gone []string
	for _, file := range files {
		data, err := fs.ReadFile(dir, file)
		require.NoError(t, err)
		for _, o := range objects(t, string(data)) {
			name := o.GetKind() + " " + o.GetName()
			if o.Object["$patch"] == "delete" {
				gone = append(gone, name)
				continue
			}
			names = append(names, name)
		}
		require.NotRegexp(t, regexp.MustCompile(`(?m)^\s*image:`), string(data), "images are Slipway's")
	}
	slices.Sort(names)
	require.Equal(t, []string{
		"ConfigMap argocd-cm", "ConfigMap argocd-cmd-params-cm", "Deployment argocd-applicationset-controller",
		"Deployment argocd-redis", "Deployment argocd-repo-server", "StatefulSet argocd-application-controller",
	}, names)
	require.Equal(t, []string{"ConfigMap argocd-tls-certs-cm", "ConfigMap argocd-ssh-known-hosts-cm"}, gone, "Slipway makes them")
}

// TestGitServer holds what the steps are told of the git server against its chart.
func TestGitServer(t *testing.T) {
	dir, release := open(t)
	server := release.GitServer()
	component, ok := release.Component(server.Component)
	require.True(t, ok)
	namespace, name, port, err := platform.ParseService(server.Service)
	require.NoError(t, err)
	require.Equal(t, component.Namespace, namespace)
	gitea := renderAll(t, dir, "50", nil)[component.Name]
	found := false
	for _, o := range gitea.objects {
		if o.GetKind() == "Service" && o.GetName() == name {
			ports, _, err := unstructured.NestedSlice(o.Object, "spec", "ports")
			require.NoError(t, err)
			found = slices.ContainsFunc(ports, func(p any) bool { return fmt.Sprint(p.(map[string]any)["port"]) == strconv.Itoa(port) })
		}
	}
	require.True(t, found, "the Service and its port")

	users := map[string]string{} // by Secret
	for _, s := range release.Secrets {
		keys := map[string]platform.SecretKey{}
		for _, k := range s.Keys {
			keys[k.Key] = k
		}
		if keys["password"].Generate == platform.Password {
			users[s.Namespace+"/"+s.Name] = keys["username"].Value
		}
	}
	owner, _, _ := strings.Cut(server.Repository, "/")
	require.Equal(t, owner, users[server.Accounts.Writer], "a repository is its owner's")
	require.NotEmpty(t, users[server.Accounts.Administrator])
	require.NotEmpty(t, users[server.Accounts.Reader])
	require.NotEqual(t, server.Accounts.Writer, server.Accounts.Reader, "Argo CD cannot write")
	prepare, err := fs.ReadFile(dir, component.Path+"/files/prepare.sh")
	require.NoError(t, err)
	for _, account := range []string{server.Accounts.Administrator, server.Accounts.Writer, server.Accounts.Reader} {
		_, secret, _ := strings.Cut(account, "/")
		at := regexp.MustCompile(`secret:\n\s+name: ` + secret + `\n\s+items:\n\s+- \{key: username, path: (\w+)/username\}`).FindStringSubmatch(gitea.manifest)
		require.NotNil(t, at, "%s is mounted", secret)
		require.Contains(t, string(prepare), "\naccount /etc/gitea/accounts/"+at[1], "and made an account of")
	}
	require.Len(t, release.Certificates, 1)
	for _, host := range server.Hosts {
		domain, isPublic := strings.CutPrefix(host, "gitea.")
		require.True(t, slices.Contains(release.Certificates[0].Hosts, host) || isPublic && slices.Contains(release.Certificates[0].Hosts, "*."+domain), host)
	}
	values, err := platform.FillValues(component.Values, known("50", ""))
	require.NoError(t, err)
	require.Equal(t, release.Certificates[0].Secret, component.Namespace+"/"+values["tls"].(map[string]any)["secretName"].(string))
}

// TestJobNameFollowsItsContent: a Job cannot be changed, so one that does
// something else must have another name.
func TestJobNameFollowsItsContent(t *testing.T) {
	dir, _ := open(t)
	job := func(values map[string]any) string {
		text, err := manifest(load(t, dir, "gitops/apps/database"), "database", "database", values)
		require.NoError(t, err)
		for _, o := range objects(t, text) {
			if o.GetKind() == "Job" {
				require.Equal(t, "1", o.GetAnnotations()["argocd.argoproj.io/sync-wave"])
				return o.GetName()
			}
		}
		t.Fatal("there is no Job")
		return ""
	}
	first := job(map[string]any{"images": images("postgresql"), "scale": "50"})
	require.Equal(t, first, job(map[string]any{"images": images("postgresql"), "scale": "1000"}), "it does the same at each scale")
	other := map[string]any{"postgresql": images("other")["other"]}
	require.NotEqual(t, first, job(map[string]any{"images": other, "scale": "50"}))
}

func TestStorageClass(t *testing.T) {
	dir, _ := open(t)
	text, err := manifest(load(t, dir, "charts/gitea"), "gitea", "gitea", giteaValues(t, "50", "fast"))
	require.NoError(t, err)
	require.Contains(t, text, "storageClassName: fast")

	root := rootValues("50", nil)
	root["storageClass"] = "fast"
	text, err = manifest(load(t, dir, "gitops/root-app"), "root-app", "argocd", root)
	require.NoError(t, err)
	require.Contains(t, text, `storageClass: fast`)
}

// What the user's configuration says of a component replaces what the platform does.
func TestTheUsersValuesWin(t *testing.T) {
	dir, _ := open(t)
	root := rootValues("50", map[string]bool{"guestbook": true})
	root["components"].(map[string]any)["guestbook"].(map[string]any)["values"] = map[string]any{"scale": "1000", "profiles": map[string]any{"1000": map[string]any{"replicas": 7}}}
	text, err := manifest(load(t, dir, "gitops/root-app"), "root-app", "argocd", root)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(text, `scale: "1000"`), "only there")
	require.Contains(t, text, "replicas: 7")
	require.Contains(t, text, "guestbook: slipway.local/guestbook@sha256:", "the rest stays")
}

// TestATreeOfTheUsers is read by HTTPS or SSH, from a folder.
func TestATreeOfTheUsers(t *testing.T) {
	dir, _ := open(t)
	root := load(t, dir, "gitops/root-app")
	for _, url := range []string{"https://git.example.org/team/platform.git", "ssh://git@git.example.org:2222/team/platform.git", "git@git.example.org:team/platform.git"} {
		values := rootValues("50", map[string]bool{"base": true})
		values["repository"] = map[string]any{"revision": "v1", "url": url, "path": "deploy"}
		text, err := manifest(root, "root", "argocd", values)
		require.NoError(t, err, url)
		source, _, err := unstructured.NestedMap(objects(t, text)[0].Object, "spec", "source")
		require.NoError(t, err)
		require.Equal(t, []any{url, "v1"}, []any{source["repoURL"], source["targetRevision"]})
		require.Regexp(t, `^deploy/apps/`, source["path"])
	}
}

func TestGuidanceOfTheGitServer(t *testing.T) {
	_, release := open(t)
	own, err := release.Guide(platform.GuidanceData{Components: []string{"gitea", "argocd"}})
	require.NoError(t, err)
	require.Contains(t, own, "gitea-admin")
	other, err := release.Guide(platform.GuidanceData{Components: []string{"argocd", "guestbook"}})
	require.NoError(t, err)
	require.NotContains(t, other, "gitea", "the git server is the user's")
	require.Contains(t, other, "the rows of the database")
}

// TestGoldens shows a change of what is installed in a review.
func TestGoldens(t *testing.T) {
	for _, version := range releases.Versions() {
		dir, release := openVersion(t, version)
		for _, scale := range []string{"50", "1000"} {
			parts := renderAll(t, dir, scale, map[string]bool{"toolbox": true})
			again := renderAll(t, dir, scale, map[string]bool{"toolbox": true})
			for name, p := range parts {
				require.Equal(t, p.manifest, again[name].manifest, "rendering is deterministic")
				golden := filepath.Join("testdata", release.Version, fmt.Sprintf("%s-%s.yaml", name, scale))
				got := []byte(p.manifest)
				if *update {
					require.NoError(t, os.MkdirAll(filepath.Dir(golden), 0o755))
					require.NoError(t, os.WriteFile(golden, got, 0o644))
					continue
				}
				want, err := os.ReadFile(golden)
				require.NoError(t, err)
				require.True(t, bytes.Equal(want, got), "%s differs; run go test ./examples/platform -update and look at the change", golden)
			}
		}
	}
}

// TestUpgrades: each release but the first can be reached from the first.
func TestUpgrades(t *testing.T) {
	var all []*platform.Release
	for _, version := range releases.Versions() {
		_, r := openVersion(t, version)
		all = append(all, r)
	}
	for _, r := range all[1:] {
		over, err := platform.Route(all, all[0].Version, r.Version)
		require.NoError(t, err)
		require.NotEmpty(t, over)
	}
}

func TestExampleConfigs(t *testing.T) {
	data, err := os.ReadFile("../config/local.yaml")
	require.NoError(t, err)
	cfg, err := config.Load(data, config.Options{Providers: []string{"local"}})
	require.NoError(t, err)
	defaults, err := config.Load([]byte("apiVersion: slipway.sh/v1\nplatform: {components: {toolbox: {enabled: false}}}\n"), config.Options{DefaultProvider: "local"})
	require.NoError(t, err)
	require.Equal(t, string(defaults.Canonical()), string(cfg.Canonical()), "the values in the file are the defaults")

	data, err = os.ReadFile("../config/invalid-three-faults.yaml")
	require.NoError(t, err)
	_, err = config.Load(data, config.Options{Providers: []string{"local"}})
	var invalid *config.Invalid
	require.ErrorAs(t, err, &invalid)
	var fields []string
	for _, p := range invalid.Problems {
		fields = append(fields, p.Field)
	}
	slices.Sort(fields)
	require.Equal(t, []string{"global.admin.email", "global.name", "provider"}, fields)
}
