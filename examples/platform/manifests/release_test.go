// Package manifests_test checks the platform of this folder: what its files say against
// each other, and against what there is to install it from.
package manifests_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/providers/local"
)

const version = "1.0.0"

// object is a document of the release, as its own type.
type object struct {
	component platform.Component
	kind      string
	meta      metav1.ObjectMeta
	pod       *corev1.PodSpec // nil for what has none
	service   *corev1.Service
	job       *batchv1.Job
	configMap *corev1.ConfigMap
	labels    map[string]string // of its pods
	selector  map[string]string // of what it selects
}

func open(t *testing.T) *platform.Release {
	t.Helper()
	r, err := platform.Load(os.DirFS(version))
	require.NoError(t, err)
	require.Equal(t, version, r.Version, "the folder is named after the version")
	return r
}

// objects are those of every component. What is misspelt in one is an error.
func objects(t *testing.T, r *platform.Release) []object {
	t.Helper()
	var out []object
	for _, c := range r.Components {
		if c.Kind == platform.Gate {
			continue
		}
		require.NoError(t, fs.WalkDir(r.Files(), c.Path, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := fs.ReadFile(r.Files(), name)
			require.NoError(t, err)
			for documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
				document, err := documents.Read()
				if errors.Is(err, io.EOF) {
					return nil
				}
				require.NoError(t, err)
				out = append(out, decode(t, c, document))
			}
		}))
	}
	return out
}

func decode(t *testing.T, c platform.Component, document []byte) object {
	t.Helper()
	var is metav1.PartialObjectMetadata
	require.NoError(t, yaml.Unmarshal(document, &is))
	o := object{component: c, kind: is.Kind, meta: is.ObjectMeta}
	strict := func(into any) { require.NoError(t, yaml.UnmarshalStrict(document, into), "%s", document) }
	switch is.APIVersion + " " + is.Kind {
	case "apps/v1 Deployment":
		var d appsv1.Deployment
		strict(&d)
		o.pod, o.labels, o.selector = &d.Spec.Template.Spec, d.Spec.Template.Labels, d.Spec.Selector.MatchLabels
		require.Subset(t, o.labels, o.selector)
	case "apps/v1 StatefulSet":
		var s appsv1.StatefulSet
		strict(&s)
		o.pod, o.labels, o.selector = &s.Spec.Template.Spec, s.Spec.Template.Labels, s.Spec.Selector.MatchLabels
		require.Subset(t, o.labels, o.selector)
	case "batch/v1 Job":
		o.job = new(batchv1.Job)
		strict(o.job)
		o.pod, o.labels = &o.job.Spec.Template.Spec, o.job.Spec.Template.Labels
	case "v1 ConfigMap":
		o.configMap = new(corev1.ConfigMap)
		strict(o.configMap)
	case "v1 Service":
		o.service = new(corev1.Service)
		strict(o.service)
		o.selector = o.service.Spec.Selector
	case "v1 ServiceAccount":
		var s corev1.ServiceAccount
		strict(&s)
		require.False(t, *s.AutomountServiceAccountToken, s.Name)
	case "networking.k8s.io/v1 NetworkPolicy":
		var p networkingv1.NetworkPolicy
		strict(&p)
		o.selector = p.Spec.PodSelector.MatchLabels
	case "policy/v1 PodDisruptionBudget":
		var b policyv1.PodDisruptionBudget
		strict(&b)
		o.selector = b.Spec.Selector.MatchLabels
	default:
		t.Fatalf("the tests do not know %s %s", is.APIVersion, is.Kind)
	}
	return o
}

// TestServicesAreThere: those that gates, hosts, links and checks name, and behind each one
// Pods. No two want a port of the local node, which has one address.
func TestServicesAreThere(t *testing.T) {
	r := open(t)
	all := objects(t, r)
	ports := map[string][]int32{}
	published := map[int32]string{6443: "the API server", 6444: "the node's health", 10250: "the kubelet"}
	for _, o := range all {
		if len(o.selector) > 0 {
			require.True(t, slices.ContainsFunc(all, func(w object) bool {
				return len(w.labels) > 0 && subset(w.labels, o.selector)
			}), "%s %s selects nothing", o.kind, o.meta.Name)
		}
		if o.service == nil {
			continue
		}
		for _, p := range o.service.Spec.Ports {
			ports["identity/"+o.meta.Name] = append(ports["identity/"+o.meta.Name], p.Port)
			if o.service.Spec.Type == corev1.ServiceTypeLoadBalancer {
				require.Empty(t, published[p.Port], o.meta.Name)
				published[p.Port] = o.meta.Name
			}
		}
	}
	there := func(name string) {
		t.Helper()
		namespace, service, port, err := platform.ParseService(name)
		require.NoError(t, err)
		require.Contains(t, ports[namespace+"/"+service], int32(port), name)
	}
	for _, c := range r.Components {
		for _, service := range c.Hosts {
			require.Contains(t, ports, service)
		}
		for _, a := range c.Ready {
			if a.HTTP != nil {
				there(a.HTTP.Service)
			}
			if a.Endpoint != "" {
				there(a.Endpoint)
			}
		}
	}
	for _, l := range r.Links {
		there(l.Service)
		_, service, port, err := platform.ParseService(l.Service)
		require.NoError(t, err)
		require.Equal(t, service, published[int32(port)], "links are for people")
	}
	for _, c := range r.Checks {
		there(c.Service)
	}
}

func subset(all, some map[string]string) bool {
	for k, v := range some {
		if all[k] != v {
			return false
		}
	}
	return true
}

// TestJobsComeAfterWhatTheyUse: and each is done once.
func TestJobsComeAfterWhatTheyUse(t *testing.T) {
	r := open(t)
	before := func(name string) []string {
		var out []string
		for todo := []string{name}; len(todo) > 0; todo = todo[1:] {
			c, ok := r.Component(todo[0])
			require.True(t, ok)
			out, todo = append(out, c.After...), append(todo, c.After...)
		}
		return out
	}
	for job, uses := range map[string]string{"databases": "postgres", "migrate": "postgres", "create-admin": "dex"} {
		require.Contains(t, before(job), uses)
		used, _ := r.Component(uses)
		require.NotEmpty(t, used.Ready, "%s says when it is healthy", uses)
	}
	require.Subset(t, before("console"), []string{"dex", "create-admin", "migrate"})
	jobs := 0
	for _, o := range objects(t, r) {
		if o.job == nil {
			continue
		}
		jobs++
		require.Equal(t, platform.Job, o.component.Kind, o.meta.Name)
		require.Nil(t, o.job.Spec.TTLSecondsAfterFinished, "it stays, so that one can see what it did")
	}
	require.Equal(t, 3, jobs)
}

// TestAGivenCertificateIsForWhatBrowsersSee: and for no more.
func TestAGivenCertificateIsForWhatBrowsersSee(t *testing.T) {
	require.Equal(t, []string{"dex.slipway.test", "console.slipway.test"}, open(t).Hosts("slipway.test", "x", nil))
}

// TestTheConfiguration: the one beside the release installs it, and publishes its ports.
func TestTheConfiguration(t *testing.T) {
	text, err := os.ReadFile("slipway.yaml")
	require.NoError(t, err)
	cfg, err := config.Load(text, config.Options{Providers: []string{local.Name}, Section: func(_ string, section json.RawMessage) []config.Problem {
		return local.Provider{}.Validate(section)
	}})
	require.NoError(t, err)
	require.True(t, cfg.ReleaseIsPath())
	require.Equal(t, version, path.Clean(cfg.Platform.Release))
	var published []int
	for _, o := range objects(t, open(t)) {
		if o.service != nil && o.service.Spec.Type == corev1.ServiceTypeLoadBalancer {
			published = append(published, int(o.service.Spec.Ports[0].Port))
		}
	}
	spec := local.Provider{}.Local(providers.Deployment{Section: cfg.Section(local.Name)})
	require.ElementsMatch(t, published, spec.Ports)
}

// TestItNeedsNothingOfOthers: an install of it as it is never waits for somebody. README.md
// says what may be required in a copy, and what the console does with it.
func TestItNeedsNothingOfOthers(t *testing.T) {
	require.Empty(t, open(t).Requires)
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(text), "```yaml\nrequires:\n")
	require.True(t, found)
	block, _, _ := strings.Cut(after, "```")

	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(version)))
	file := filepath.Join(dir, platform.File)
	own, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, append(own, "\nrequires:\n"+block...), 0o600))
	r, err := platform.Load(os.DirFS(dir))
	require.NoError(t, err)
	require.Equal(t, []platform.Requirement{
		{ConfigMap: "identity/branding", Keys: []string{"title"}}, {Secret: "identity/license", Keys: []string{"holder"}},
	}, r.Requires)
	optional := 0
	for _, o := range objects(t, r) {
		if o.pod == nil {
			continue
		}
		for _, c := range o.pod.Containers {
			for _, e := range c.Env {
				if e.ValueFrom == nil {
					continue
				}
				if ref := e.ValueFrom.ConfigMapKeyRef; ref != nil && ref.Name == "branding" && *ref.Optional && ref.Key == "title" {
					optional++
				}
				if ref := e.ValueFrom.SecretKeyRef; ref != nil && ref.Name == "license" && *ref.Optional && ref.Key == "holder" {
					optional++
				}
			}
		}
	}
	require.Equal(t, 2, optional)
}
