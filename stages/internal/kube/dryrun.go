package kube

import (
	"net/http"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/stages/internal/dryrun"
)

// guarded refuses, in a dry run, requests that would change the cluster.
type guarded struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (g guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return g.next.RoundTrip(r)
	}
	if r.URL.Query().Get("dryRun") == "All" {
		return g.next.RoundTrip(r)
	}
	if err := dryrun.Check(r.Context(), "%s %s", r.Method, r.URL.Path); err != nil {
		return nil, err
	}
	return g.next.RoundTrip(r)
}

// sameContent tells whether applying would leave an object as it is; the two are
// the object before and what the server's dry run made of it. What its controller
// says of it may have changed between the two.
func sameContent(before, after *unstructured.Unstructured) bool {
	plain := func(o *unstructured.Unstructured) map[string]any {
		o = o.DeepCopy()
		o.SetManagedFields(nil)
		o.SetResourceVersion("")
		o.SetGeneration(0)
		delete(o.Object, "status")
		return o.Object
	}
	return reflect.DeepEqual(plain(before), plain(after))
}
