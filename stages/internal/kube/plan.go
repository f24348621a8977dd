package kube

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json" // whole numbers stay whole
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/stages/internal/plan"
)

// guarded refuses requests that would change the cluster once it is not certain any more that
// the step's run has the deployment's lock. For a plan it sends none.
type guarded struct {
	next http.RoundTripper
	plan *plan.Step
}

// RoundTrip implements http.RoundTripper.
func (g guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	if g.plan != nil {
		return g.planned(r)
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return g.next.RoundTrip(r)
	}
	if r.Method != http.MethodDelete && r.URL.Query().Get("dryRun") == metav1.DryRunAll { // a deletion says it in its body
		return g.next.RoundTrip(r)
	}
	if err := lock.Guard(r.Context()); err != nil {
		return nil, err
	}
	return g.next.RoundTrip(r)
}

// comes reports whether a step would make the object at a path of the API.
func (g guarded) comes(path string) bool {
	o, known := g.plan.At(path)
	return known && o.After != nil
}

// notThere is why an object of a plan is as the step would send it.
const notThere = "its namespace is not there yet: nobody has checked it"

// planned answers a request of a step that is planned. A write is sent as a dry run, and the
// plan gets the object as it is and as it would be; whoever reads it later in the same plan
// finds it as it would be.
func (g guarded) planned(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions {
		if r.Method != http.MethodGet || r.URL.Query().Has("watch") {
			return g.next.RoundTrip(r)
		}
		o, known := g.plan.At(r.URL.Path)
		if !known && keeps(r.URL.Path) { // whether it is edited matters, too
			is, err := g.read(r, r.URL.Path)
			if err != nil || is == nil {
				return g.next.RoundTrip(r)
			}
			g.plan.Put(r.URL.Path, is, is, "")
			o, known = g.plan.At(r.URL.Path)
		}
		if known {
			return answer(r, o.After)
		}
		return g.next.RoundTrip(r)
	}
	at := r.URL.Path
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		_ = r.Body.Close()
	}
	sent := sentObject(r, body)
	if r.Method == http.MethodPost {
		name, _, _ := unstructured.NestedString(sent, "metadata", "name")
		if name == "" {
			return nil, plan.Later("%s %s", r.Method, at)
		}
		at = path.Join(at, name)
	}
	before, err := g.read(r, at)
	if err != nil {
		return nil, err
	}
	apply := strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch")
	if apply && before != nil && r.URL.Query().Get("fieldManager") == FieldManager &&
		isApplied(&unstructured.Unstructured{Object: before}, &unstructured.Unstructured{Object: sent}) {
		g.plan.Put(at, before, before, "")
		return answer(r, before)
	}
	dry, err := dryRun(r, body)
	if err != nil {
		return nil, err
	}
	resp, err := g.next.RoundTrip(dry)
	if err != nil {
		return nil, err
	}
	made := r.Method == http.MethodPost || r.Method == http.MethodPut || apply
	refuses, err := takesNoDryRuns(resp)
	switch {
	case err != nil:
		return nil, err
	case refuses != "" && r.Method == http.MethodDelete:
		g.plan.Put(at, before, nil, "")
		return answer(r, before)
	case refuses != "": // nobody knows what the write would make of the object
		after := before
		if before == nil || !apply && r.Method != http.MethodPatch {
			after = sent
		}
		g.plan.Doubt(at, before, after, refuses)
		return answer(r, after)
	case resp.StatusCode == http.StatusNotFound && made && before == nil && g.comes(namespaceOf(at)):
		_ = resp.Body.Close()
		g.plan.Put(at, nil, sent, notThere)
		return answer(r, sent)
	case resp.StatusCode == http.StatusNotFound && r.Method != http.MethodPost && before != nil: // it is only in the plan
		_ = resp.Body.Close()
		if r.Method == http.MethodDelete {
			g.plan.Put(at, nil, nil, "")
			return answer(r, before)
		}
		if made {
			g.plan.Put(at, nil, sent, notThere)
			return answer(r, sent)
		}
		return answer(r, before)
	case resp.StatusCode >= http.StatusMultipleChoices:
		return resp, nil
	case r.Method == http.MethodDelete:
		g.plan.Put(at, before, nil, "")
		return resp, nil
	}
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	after := map[string]any{}
	if err := json.Unmarshal(text, &after); err != nil {
		return nil, fmt.Errorf("read the answer to %s %s: %w", r.Method, at, err)
	}
	if !strings.HasSuffix(at, "/status") {
		g.plan.Put(at, before, after, "")
	}
	resp.Body = io.NopCloser(bytes.NewReader(text))
	return resp, nil
}

func dryRun(r *http.Request, body []byte) (*http.Request, error) {
	dry := r.Clone(r.Context())
	if r.Method == http.MethodDelete {
		var err error
		if body, err = dryDeletion(body); err != nil {
			return nil, fmt.Errorf("%s %s as a dry run: %w", r.Method, r.URL.Path, err)
		}
		dry.Header.Set("Content-Type", runtime.ContentTypeJSON)
	}
	query := dry.URL.Query()
	query.Set("dryRun", metav1.DryRunAll)
	dry.URL.RawQuery = query.Encode()
	dry.Header.Set("Accept", runtime.ContentTypeJSON)
	dry.Body, dry.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	dry.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return dry, nil
}

// dryDeletion makes the body of a deletion a dry run's: the API server takes the options
// of a deletion that has a body from there alone, and ignores the query (apiserver v0.37.2,
// DeleteResource in pkg/endpoints/handlers/delete.go).
func dryDeletion(body []byte) ([]byte, error) {
	options := &metav1.DeleteOptions{}
	if len(body) > 0 {
		o, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), body)
		if err != nil {
			return nil, fmt.Errorf("decode its options: %w", err)
		}
		var ok bool
		if options, ok = o.(*metav1.DeleteOptions); !ok {
			return nil, fmt.Errorf("its options are a %T", o)
		}
	}
	options.TypeMeta = metav1.TypeMeta{Kind: "DeleteOptions", APIVersion: "v1"}
	options.DryRun = []string{metav1.DryRunAll}
	return json.Marshal(options)
}

// noDryRun is what the API server says of a write that it cannot try out, because a webhook has
// side effects.
var noDryRun = regexp.MustCompile(`admission webhook "([^"]*)" does not support dry run`)

// takesNoDryRuns says which webhook keeps a write from being tried out; empty: none does.
func takesNoDryRuns(resp *http.Response) (string, error) {
	if resp.StatusCode != http.StatusBadRequest {
		return "", nil
	}
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return "", err
	}
	resp.Body = io.NopCloser(bytes.NewReader(text))
	var status metav1.Status
	if json.Unmarshal(text, &status) != nil {
		return "", nil
	}
	m := noDryRun.FindStringSubmatch(status.Message)
	if m == nil {
		return "", nil
	}
	return fmt.Sprintf("the admission webhook %q takes no dry runs", m[1]), nil
}

// sentObject is what a request sends; empty for a patch that is a list.
func sentObject(r *http.Request, body []byte) map[string]any {
	if strings.HasPrefix(r.Header.Get("Content-Type"), runtime.ContentTypeProtobuf) {
		if o, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), body); err == nil {
			body, _ = json.Marshal(o)
		}
	}
	out := map[string]any{}
	_ = json.Unmarshal(body, &out)
	return out
}

// read is the object at a path as it is, or would be; nil if it is not there.
func (g guarded) read(r *http.Request, at string) (map[string]any, error) {
	if o, known := g.plan.At(at); known {
		return o.After, nil
	}
	get := r.Clone(r.Context())
	get.Method, get.Body, get.GetBody, get.ContentLength = http.MethodGet, nil, nil, 0
	get.URL = &url.URL{Scheme: r.URL.Scheme, Host: r.URL.Host, Path: at}
	get.Header.Set("Accept", "application/json")
	get.Header.Del("Content-Type")
	resp, err := g.next.RoundTrip(get)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode == http.StatusNotFound:
		return nil, nil
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("GET %s: %s", at, resp.Status)
	}
	out := map[string]any{}
	return out, json.Unmarshal(text, &out)
}

// keeps reports whether steps may read and compare the object at a path without writing it: a
// Secret, a ConfigMap or a namespace.
func keeps(at string) bool {
	part := strings.Split(strings.TrimPrefix(at, "/api/v1/namespaces/"), "/")
	if !strings.HasPrefix(at, "/api/v1/namespaces/") {
		return false
	}
	return len(part) == 1 || len(part) == 3 && (part[1] == "secrets" || part[1] == "configmaps")
}

func namespaceOf(at string) string {
	_, below, found := strings.Cut(at, "/namespaces/")
	if !found {
		return ""
	}
	name, _, _ := strings.Cut(below, "/")
	return "/api/v1/namespaces/" + name
}

// answer is what the API server would say of an object; nil: that it is not there.
func answer(r *http.Request, o map[string]any) (*http.Response, error) {
	code := http.StatusOK
	if o == nil {
		code = http.StatusNotFound
		o = map[string]any{
			"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": string(metav1.StatusReasonNotFound),
			"code": code, "message": path.Base(r.URL.Path) + " would not be there",
		}
	}
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)),
	}, nil
}

// unserved notes an object of a kind that the API server does not know yet. It reports
// whether that is for a plan.
func (c *Client) unserved(obj *unstructured.Unstructured, ns string) bool {
	if c.Plan == nil {
		return false
	}
	obj = obj.DeepCopy()
	if obj.GetNamespace() == "" {
		obj.SetNamespace(ns)
	}
	gvk := obj.GroupVersionKind()
	c.Plan.Put(strings.Join([]string{gvk.String(), obj.GetNamespace(), obj.GetName()}, "/"), nil, obj.Object,
		"nothing serves the kind "+gvk.Kind+" yet: nobody has checked it")
	return true
}

// planTaken notes the fields that applying an object takes back, because somebody set
// them with kubectl, or has added them.
func (c *Client) planTaken(before, after *unstructured.Unstructured, added map[string]any) {
	if c.Plan == nil || before == nil {
		return
	}
	hands := byHand(after)
	var set, others []map[string]any
	for _, f := range after.GetManagedFields() {
		fields := map[string]any{}
		if f.FieldsV1 == nil || f.Subresource != "" || json.Unmarshal(f.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if slices.Contains(hands, f.Manager) {
			set = append(set, fields)
		} else {
			others = append(others, fields)
		}
	}
	without := after.DeepCopy()
	for _, fields := range set {
		drop(without.Object, fields, others)
	}
	why := "reverts changes made with kubectl"
	if added != nil {
		take(without.Object, added)
		why = "what others have added is taken back"
	}
	c.Plan.Amend(before.Object, without.Object, why)
}

// drop removes the fields of a set, as managedFields have it, from an object, but for those
// that are in another one, too. Items of lists are left alone: what they are known by is their
// kind's to say.
func drop(o, set map[string]any, others []map[string]any) {
	for key, below := range set {
		name, isField := strings.CutPrefix(key, "f:")
		if !isField {
			continue
		}
		var also []map[string]any
		for _, other := range others {
			if fields, ok := other[key].(map[string]any); ok {
				also = append(also, fields)
			}
		}
		fields, _ := below.(map[string]any)
		child, isMap := o[name].(map[string]any)
		switch {
		case len(fields) == 0 && len(also) == 0:
			delete(o, name)
		case len(fields) > 0 && isMap:
			drop(child, fields, also)
		}
	}
}
