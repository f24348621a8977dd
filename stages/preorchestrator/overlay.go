package preorchestrator

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// readManifests decodes every .yaml of dir in fsys, in the order of the names.
func readManifests(fsys fs.FS, dir string) ([]*unstructured.Unstructured, error) {
	names, err := fs.Glob(fsys, path.Join(dir, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s holds no .yaml file", dir)
	}
	var out []*unstructured.Unstructured
	for _, name := range names {
		b, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		objs, err := kube.Decode(b)
		if err != nil {
			return nil, fmt.Errorf("decode %s: %w", name, err)
		}
		out = append(out, objs...)
	}
	return out, nil
}

// merge changes base by the documents of overlay: one that names an object of
// base is merged into it, as a strategic merge patch where the kind is one of
// Kubernetes' own; the others are added.
func merge(base, overlay []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	out := slices.Clone(base)
	for _, patch := range overlay {
		i := slices.IndexFunc(out, func(o *unstructured.Unstructured) bool {
			return o.GroupVersionKind().GroupKind() == patch.GroupVersionKind().GroupKind() && o.GetName() == patch.GetName()
		})
		if i < 0 {
			out = append(out, patch)
			continue
		}
		merged, err := mergeOne(out[i], patch)
		if err != nil {
			return nil, fmt.Errorf("merge into %s %s: %w", patch.GetKind(), patch.GetName(), err)
		}
		out[i] = merged
	}
	return out, nil
}

func mergeOne(o, patch *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	typed, err := scheme.Scheme.New(patch.GroupVersionKind())
	if err != nil { // not one of Kubernetes' own kinds
		return &unstructured.Unstructured{Object: mergeMaps(o.Object, patch.Object)}, nil
	}
	m, err := strategicpatch.StrategicMergeMapPatch(o.DeepCopy().Object, patch.DeepCopy().Object, typed)
	if err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: m}, nil
}

// mergeMaps is a JSON merge patch.
func mergeMaps(into, patch map[string]any) map[string]any {
	out := maps.Clone(into)
	for k, v := range patch {
		old, isMap := out[k].(map[string]any)
		if change, ok := v.(map[string]any); ok && isMap {
			v = mergeMaps(old, change)
		}
		if v == nil {
			delete(out, k)
		} else {
			out[k] = v
		}
	}
	return out
}

// settings are what adapt needs to know.
type settings struct {
	labels map[string]string
	image  func(short string) (string, error)
	// gitHost is the git server's host as Argo CD reaches it, and gitIP its
	// address when the cluster's DNS does not know the host; else empty.
	gitHost, gitIP string
	// proxy is what Argo CD reaches sources outside the cluster through.
	proxy contract.Proxy
}

// adapt makes Argo CD's objects ours: images by digest and never pulled twice,
// no dex, nothing that another step owns, the redis password from its Secret,
// everything in Argo CD's namespace and labelled.
func adapt(objs []*unstructured.Unstructured, s settings) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, o := range objs {
		if dropped(o) {
			continue
		}
		o = o.DeepCopy()
		if !clusterScoped(o.GroupVersionKind()) {
			o.SetNamespace(argo.Namespace)
		}
		o.SetLabels(labels.Merge(o.GetLabels(), s.labels))
		var err error
		switch o.GetKind() {
		case "Deployment", "StatefulSet":
			err = adaptWorkload(o, s)
		case "AppProject":
			err = adaptProject(o, s.gitHost)
		}
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
		out = append(out, o)
	}
	return out, configure(out)
}

// ConfigMaps of Argo CD that its programs read when they start.
const (
	argoConfig = "argocd-cm"
	argoParams = "argocd-cmd-params-cm"
)

// repoServer is the repository server's fully qualified name: for a short one, gRPC's
// resolver also sends queries to name servers outside the cluster, which on an isolated
// site time out.
const repoServer = "argocd-repo-server." + argo.Namespace + ".svc.cluster.local:8081"

// configure completes the parameters and has the pods start again when what they
// read at their start changes.
func configure(objs []*unstructured.Unstructured) error {
	config := map[string]any{}
	for _, o := range objs {
		if o.GetKind() != "ConfigMap" || o.GetName() != argoConfig && o.GetName() != argoParams {
			continue
		}
		data, _, err := unstructured.NestedStringMap(o.Object, "data")
		if err != nil {
			return fmt.Errorf("ConfigMap %s: %w", o.GetName(), err)
		}
		if o.GetName() == argoParams {
			if data == nil {
				data = map[string]string{}
			}
			if data["repo.server"] == "" {
				data["repo.server"] = repoServer
			}
			if err := unstructured.SetNestedStringMap(o.Object, data, "data"); err != nil {
				return fmt.Errorf("ConfigMap %s: %w", o.GetName(), err)
			}
		}
		config[o.GetName()] = data
	}
	b, err := json.Marshal(config)
	if err != nil {
		return fmt.Errorf("encode the configuration: %w", err)
	}
	sum := sha256.Sum256(b)
	for _, o := range objs {
		if o.GetKind() != "Deployment" && o.GetKind() != "StatefulSet" || o.GetName() == argoRedis {
			continue
		}
		err := unstructured.SetNestedField(o.Object, hex.EncodeToString(sum[:]), "spec", "template", "metadata", "annotations", configNote)
		if err != nil {
			return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

// configNote is the annotation of pods that holds the digest of their
// configuration.
const configNote = "slipway.sh/config"

// dropped reports whether o is left out: dex is not used, and step tls writes the
// ConfigMap of the certificates.
func dropped(o *unstructured.Unstructured) bool {
	if strings.Contains(o.GetName(), "dex-server") {
		return true
	}
	return o.GetKind() == "ConfigMap" && o.GetName() == argoTLSCerts
}

func clusterScoped(k schema.GroupVersionKind) bool {
	switch k.Kind {
	case "Namespace", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "PriorityClass", "StorageClass":
		return true
	}
	return false
}

func adaptWorkload(o *unstructured.Unstructured, s settings) error {
	pod, found, err := unstructured.NestedMap(o.Object, "spec", "template", "spec")
	if err != nil || !found {
		return errors.Join(errors.New("it has no pod template"), err)
	}
	for _, field := range []string{"initContainers", "containers"} {
		list, _, err := unstructured.NestedSlice(pod, field)
		if err != nil {
			return fmt.Errorf("read %s: %w", field, err)
		}
		var kept []any
		for _, e := range list {
			c, ok := e.(map[string]any)
			if !ok {
				return fmt.Errorf("%s has an entry that is not a container", field)
			}
			if c["name"] == "secret-init" { // makes the redis password, which step secrets has made
				continue
			}
			short, err := imageOf(c)
			if err != nil {
				return err
			}
			if c["image"], err = s.image(short); err != nil {
				return err
			}
			c["imagePullPolicy"] = "IfNotPresent"
			if _, given := c["command"]; short == "redis" && !given {
				c["command"] = []any{"redis-server"}
			}
			kept = append(kept, c)
		}
		if len(kept) == 0 {
			delete(pod, field)
			continue
		}
		pod[field] = kept
	}
	if o.GetName() == "argocd-repo-server" {
		if err := addProxy(pod, s.proxy, s.gitHost); err != nil {
			return err
		}
		if s.gitIP != "" {
			pod["hostAliases"] = []any{map[string]any{"ip": s.gitIP, "hostnames": []any{s.gitHost}}}
		}
	}
	return unstructured.SetNestedMap(o.Object, pod, "spec", "template", "spec")
}

func imageOf(container map[string]any) (string, error) {
	ref, _ := container["image"].(string)
	name, _, _ := strings.Cut(ref, "@")
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		name = name[:i]
	}
	switch path.Base(name) { // the upstream images' own names are the short ones
	case "argocd", "redis":
		return path.Base(name), nil
	}
	return "", fmt.Errorf("container %v has the image %q, which no short name stands for", container["name"], ref)
}

// adaptProject lets a project read from the git server under the host that Argo
// CD uses.
func adaptProject(o *unstructured.Unstructured, gitHost string) error {
	repos, _, err := unstructured.NestedStringSlice(o.Object, "spec", "sourceRepos")
	if err != nil {
		return fmt.Errorf("read sourceRepos: %w", err)
	}
	for i, r := range repos {
		if rest, ok := strings.CutPrefix(r, "https://"+giteaHost+"/"); ok {
			repos[i] = "https://" + gitHost + "/" + rest
		}
	}
	if len(repos) == 0 {
		return nil
	}
	return unstructured.SetNestedStringSlice(o.Object, repos, "spec", "sourceRepos")
}

// inCluster is what is never asked of a proxy: names of the cluster and private
// networks.
const inCluster = "localhost,127.0.0.1,.svc,.cluster.local,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16"

// addProxy has a pod's containers reach the outside through the deployment's
// proxies.
func addProxy(pod map[string]any, proxy contract.Proxy, gitHost string) error {
	if proxy == (contract.Proxy{}) {
		return nil
	}
	none := inCluster + "," + gitHost
	if proxy.NoProxy != "" {
		none += "," + proxy.NoProxy
	}
	containers, _, err := unstructured.NestedSlice(pod, "containers")
	if err != nil {
		return fmt.Errorf("read containers: %w", err)
	}
	for _, e := range containers {
		c, ok := e.(map[string]any)
		if !ok {
			return errors.New("containers has an entry that is not a container")
		}
		env, _ := c["env"].([]any)
		for _, v := range []struct{ name, value string }{
			{"HTTP_PROXY", proxy.HTTP}, {"HTTPS_PROXY", proxy.HTTPS}, {"NO_PROXY", none},
		} {
			if v.value != "" {
				env = append(env, map[string]any{"name": v.name, "value": v.value})
			}
		}
		c["env"] = env
	}
	return unstructured.SetNestedSlice(pod, containers, "containers")
}
