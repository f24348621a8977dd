// Package kubetest is an API server for tests that keeps some kinds of objects in
// memory. Applying merges maps and replaces lists; nothing has defaults, and nobody
// owns fields: an object names who has written to it.
package kubetest

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json" // whole numbers stay whole
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// API is the server. Objects are by the paths at which the API has them.
type API struct {
	URL string
	// Controller, if set, may change an object that has just been written, as its
	// controller would. It must not call the API.
	Controller func(path string, object map[string]any)
	// Forbidden is what reviews of rights say no to: "create secrets". Nothing is refused for it.
	Forbidden []string

	mu      sync.Mutex
	objects map[string]map[string]any
	kinds   []kind
	version int
	writes  []string
}

// Serve starts a server, which ends with the test.
func Serve(t *testing.T) *API {
	t.Helper()
	a := &API{objects: map[string]map[string]any{}, kinds: known()}
	s := httptest.NewServer(a)
	t.Cleanup(s.Close)
	a.URL = s.URL
	return a
}

// Define adds a kind, as a CustomResourceDefinition does.
func (a *API) Define(apiVersion, name string, namespaced bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kinds = append(a.kinds, kind{apiVersion, name, namespaced})
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
	plain, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = utiljson.Unmarshal(plain, &change)
	}
	if err != nil {
		t.Fatal(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.objects[path] = merge(a.objects[path], change)
}

// Delete removes the object at path, as somebody else would.
func (a *API) Delete(path string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.objects, path)
}

// Writes are the requests that have changed something, in their order: "PATCH /api/v1/…".
func (a *API) Writes() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.writes)
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.URL.Path == "/readyz" {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/version" {
		_ = json.NewEncoder(w).Encode(version.Info{Major: "1", Minor: "35", GitVersion: "v1.35.0"})
		return
	}
	if strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") {
		a.review(w, r)
		return
	}
	if d := a.discovery(r.URL.Path); d != nil {
		_ = json.NewEncoder(w).Encode(d)
		return
	}
	k, all := a.kindAt(r.URL.Path)
	if k == nil {
		refuse(w, r, http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	}
	dry, deletion := r.URL.Query().Get("dryRun") != "", metav1.DeleteOptions{}
	if r.Method == http.MethodDelete {
		var err error
		if deletion, err = deletionOf(r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		dry = len(deletion.DryRun) > 0
	}
	object, found := a.objects[r.URL.Path]
	switch {
	case all && r.Method == http.MethodGet:
		_ = json.NewEncoder(w).Encode(a.list(*k, r))
		return
	case r.Method == http.MethodGet, r.Method == http.MethodDelete:
		if !found {
			refuse(w, r, http.StatusNotFound, metav1.StatusReasonNotFound)
			return
		}
		if r.Method == http.MethodDelete && !meets(deletion, object) {
			refuse(w, r, http.StatusConflict, metav1.StatusReasonConflict)
			return
		}
		if r.Method == http.MethodDelete && !dry {
			a.writes = append(a.writes, r.Method+" "+r.URL.Path)
			a.remove(r.URL.Path)
			policy := deletion.PropagationPolicy
			a.dependents(object, policy != nil && *policy == metav1.DeletePropagationOrphan)
		}
	default:
		change, err := body(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		path := r.URL.Path
		if r.Method == http.MethodPost {
			meta, _ := change["metadata"].(map[string]any)
			name, _ := meta["name"].(string)
			path += "/" + name
			if _, taken := a.objects[path]; taken {
				refuse(w, r, http.StatusConflict, metav1.StatusReasonAlreadyExists)
				return
			}
		}
		after := change
		if r.Method == http.MethodPatch {
			after = merge(applyTo(object, change, r), change)
		}
		if !reflect.DeepEqual(object, after) {
			after = managed(after, change, r.URL.Query().Get("fieldManager"))
		}
		object = a.write(r.Method, path, object, after, dry)
	}
	_ = json.NewEncoder(w).Encode(k.complete(object))
}

// applyTo is what a patch is merged into: a ConfigMap or a note that Slipway applies loses the keys
// that are not applied any more.
func applyTo(object, change map[string]any, r *http.Request) map[string]any {
	applied := strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch")
	whole := strings.Contains(r.URL.Path, "/configmaps/") || change["type"] == "slipway.sh/note" && r.URL.Query().Get("fieldManager") == "slipway"
	if !applied || change["data"] == nil || !whole {
		return object
	}
	out := maps.Clone(object)
	delete(out, "data")
	return out
}

// deletionOf reads the options of a deletion as the API server does: from the body or, without one,
// from the query.
func deletionOf(r *http.Request) (o metav1.DeleteOptions, err error) {
	if r.ContentLength == 0 {
		policy := metav1.DeletionPropagation(r.URL.Query().Get("propagationPolicy"))
		return metav1.DeleteOptions{DryRun: r.URL.Query()["dryRun"], PropagationPolicy: &policy}, nil
	}
	options, err := body(r)
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(options, &o)
	}
	return o, err
}

// dependents deletes what an object that was deleted owns, as the collector of garbage does,
// or takes only the references away.
func (a *API) dependents(owner map[string]any, orphan bool) {
	meta, _ := owner["metadata"].(map[string]any)
	uid := meta["uid"]
	if uid == nil {
		return
	}
	for path, o := range maps.Clone(a.objects) {
		meta, _ := o["metadata"].(map[string]any)
		refs, _ := meta["ownerReferences"].([]any)
		owns := func(ref any) bool { m, _ := ref.(map[string]any); return m["uid"] == uid }
		switch {
		case !slices.ContainsFunc(refs, owns):
		case orphan:
			a.objects[path] = merge(o, map[string]any{"metadata": map[string]any{"ownerReferences": slices.DeleteFunc(slices.Clone(refs), owns)}})
		default:
			a.remove(path)
		}
	}
}

func meets(o metav1.DeleteOptions, object map[string]any) bool {
	meta, _ := object["metadata"].(map[string]any)
	uid, _ := meta["uid"].(string)
	return o.Preconditions == nil || o.Preconditions.UID == nil || string(*o.Preconditions.UID) == uid
}

// remove deletes an object, with a namespace what is in it, and with a definition the
// objects of its kind. One with finalizers is only marked.
func (a *API) remove(path string) {
	o, found := a.objects[path]
	if !found {
		return
	}
	meta, _ := o["metadata"].(map[string]any)
	if held, _ := meta["finalizers"].([]any); len(held) > 0 {
		a.objects[path] = merge(o, map[string]any{"metadata": map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z"}})
		return
	}
	if strings.HasPrefix(path, "/api/v1/namespaces/") && strings.Count(path, "/") == 4 {
		for other := range maps.Clone(a.objects) {
			if strings.Contains(other, strings.TrimPrefix(path, "/api/v1")+"/") {
				a.remove(other)
			}
		}
	}
	if name, is := strings.CutPrefix(path, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"); is {
		plural, group, _ := strings.Cut(name, ".")
		for other := range maps.Clone(a.objects) {
			if strings.HasPrefix(other, "/apis/"+group+"/") && strings.Contains(other, "/"+plural+"/") {
				a.remove(other)
			}
		}
	}
	delete(a.objects, path)
}

// write keeps an object as it is after a request; before is nil for a new object.
func (a *API) write(method, path string, before, after map[string]any, dry bool) map[string]any {
	if dry || reflect.DeepEqual(before, after) {
		return after
	}
	a.version++
	meta := map[string]any{"resourceVersion": strconv.Itoa(a.version)}
	if before == nil {
		meta["uid"] = "uid-" + strconv.Itoa(a.version)
	}
	after = merge(after, map[string]any{"metadata": meta})
	if a.Controller != nil {
		a.Controller(path, after)
	}
	a.objects[path] = after
	a.writes = append(a.writes, method+" "+path)
	if meta, _ := after["metadata"].(map[string]any); meta["deletionTimestamp"] != nil && meta["finalizers"] == nil {
		a.remove(path)
	}
	return after
}

func (a *API) list(k kind, r *http.Request) map[string]any {
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		selector = labels.Nothing()
	}
	items := []any{}
	for _, path := range slices.Sorted(maps.Keys(a.objects)) {
		at, all := a.kindAt(path)
		if all || at == nil || *at != k || !strings.HasPrefix(path, strings.TrimSuffix(r.URL.Path, k.plural())) {
			continue
		}
		o := k.complete(a.objects[path])
		meta, _ := o["metadata"].(map[string]any)
		set := labels.Set{}
		own, _ := meta["labels"].(map[string]any)
		for name, value := range own {
			set[name], _ = value.(string)
		}
		if selector.Matches(set) {
			items = append(items, o)
		}
	}
	return map[string]any{"apiVersion": k.apiVersion, "kind": k.name + "List", "metadata": map[string]any{}, "items": items}
}

// managed is an object that says who has written to it, unless the change itself says who
// has.
func managed(o, change map[string]any, manager string) map[string]any {
	said, _ := change["metadata"].(map[string]any)
	meta, _ := o["metadata"].(map[string]any)
	by, _ := meta["managedFields"].([]any)
	is := func(f any) bool { m, _ := f.(map[string]any); return m["manager"] == manager }
	if manager == "" || said["managedFields"] != nil || slices.ContainsFunc(by, is) {
		return o
	}
	by = append(slices.Clone(by), map[string]any{"manager": manager})
	return merge(o, map[string]any{"metadata": map[string]any{"managedFields": by}})
}

func body(r *http.Request) (out map[string]any, err error) {
	text, err := io.ReadAll(r.Body)
	if err == nil && r.Header.Get("Content-Type") == runtime.ContentTypeProtobuf {
		var o runtime.Object
		if o, err = runtime.Decode(scheme.Codecs.UniversalDeserializer(), text); err == nil {
			text, err = json.Marshal(o)
		}
	}
	if err == nil {
		err = utiljson.Unmarshal(text, &out)
	}
	return out, err
}

func refuse(w http.ResponseWriter, r *http.Request, code int, reason metav1.StatusReason) {
	w.WriteHeader(code)
	message := strings.ToLower(http.StatusText(code)) + ": " + r.URL.Path
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	})
}

func merge(into, change map[string]any) map[string]any {
	out := maps.Clone(into)
	if out == nil {
		out = map[string]any{}
	}
	for k, v := range change {
		if v == nil {
			delete(out, k)
			continue
		}
		if m, ok := v.(map[string]any); ok {
			old, _ := out[k].(map[string]any)
			v = merge(old, m)
		}
		out[k] = v
	}
	return out
}
