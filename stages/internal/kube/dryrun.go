package kube

import (
	"net/http"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/stages/internal/dryrun"
)

// guarded refuses requests that would change the cluster: in a dry run, and once it is not
// certain any more that the step's run has the deployment's lock.
type guarded struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (g guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	if p, step := dryrun.Previewing(r.Context()); p != nil {
		return g.preview(p, step, r)
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return g.next.RoundTrip(r)
	}
	if r.Method != http.MethodDelete && r.URL.Query().Get("dryRun") == "All" { // a deletion says it in its body
		return g.next.RoundTrip(r)
	}
	if err := dryrun.Check(r.Context(), "%s %s", r.Method, r.URL.Path); err != nil {
		return nil, err
	}
	if err := lock.Guard(r.Context()); err != nil {
		return nil, err
	}
	return g.next.RoundTrip(r)
}

// sameContent reports whether applying would leave an object unchanged: before is the object
// and after the result of the server's dry run. It ignores the status, which the object's
// controller may have changed in between.
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
