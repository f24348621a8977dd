// Package kubetest is an API server for tests that keeps a few kinds of objects in
// memory. Applying merges maps and replaces lists; nothing has defaults, and nobody
// owns fields.
package kubetest

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// API is the server. Objects are by the paths at which the API has them.
type API struct {
	URL string

	mu      sync.Mutex
	objects map[string]map[string]any
	version int
}

// Serve starts a server with ConfigMaps, Services and Deployments, which ends with the test.
func Serve(t *testing.T) *API {
	t.Helper()
	a := &API{objects: map[string]map[string]any{}}
	s := httptest.NewServer(a)
	t.Cleanup(s.Close)
	a.URL = s.URL
	return a
}

// Get is the object at path, such as /api/v1/namespaces/a/configmaps/b; nil when there is none.
func (a *API) Get(path string) map[string]any {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.objects[path]
}

// Set merges YAML into the object at path, as somebody else would.
func (a *API) Set(t *testing.T, path, text string) {
	t.Helper()
	var change map[string]any
	if err := yaml.Unmarshal([]byte(text), &change); err != nil {
		t.Fatal(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.objects[path] = merge(a.objects[path], change)
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if d := discovery(r.URL.Path); d != nil {
		_ = json.NewEncoder(w).Encode(d)
		return
	}
	object, found := a.objects[r.URL.Path]
	switch {
	case r.Method == http.MethodPatch:
		var change map[string]any
		if err := json.NewDecoder(r.Body).Decode(&change); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		after := merge(object, change)
		if !reflect.DeepEqual(object, after) && r.URL.Query().Get("dryRun") == "" {
			a.version++
			after = merge(after, map[string]any{"metadata": map[string]any{"resourceVersion": strconv.Itoa(a.version)}})
			a.objects[r.URL.Path] = after
		}
		object = after
	case !found:
		w.WriteHeader(http.StatusNotFound)
		object = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "reason": "NotFound"}
	case r.Method == http.MethodDelete:
		delete(a.objects, r.URL.Path)
	}
	_ = json.NewEncoder(w).Encode(object)
}

func merge(into, change map[string]any) map[string]any {
	out := maps.Clone(into)
	if out == nil {
		out = map[string]any{}
	}
	for k, v := range change {
		if m, ok := v.(map[string]any); ok {
			old, _ := out[k].(map[string]any)
			v = merge(old, m)
		}
		out[k] = v
	}
	return out
}

func discovery(path string) any {
	list := func(gv string, kinds ...string) any {
		l := metav1.APIResourceList{GroupVersion: gv}
		for _, k := range kinds {
			l.APIResources = append(l.APIResources, metav1.APIResource{
				Name: strings.ToLower(k) + "s", Namespaced: true, Kind: k, Verbs: metav1.Verbs{"get", "list", "patch", "delete"},
			})
		}
		return l
	}
	switch path {
	case "/api":
		return metav1.APIVersions{Versions: []string{"v1"}}
	case "/apis":
		v := metav1.GroupVersionForDiscovery{GroupVersion: "apps/v1", Version: "v1"}
		return metav1.APIGroupList{Groups: []metav1.APIGroup{{Name: "apps", Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}}}
	case "/api/v1":
		return list("v1", "ConfigMap", "Service")
	case "/apis/apps/v1":
		return list("apps/v1", "Deployment")
	}
	return nil
}
