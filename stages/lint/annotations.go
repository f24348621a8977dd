package lint

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/stages/contract"
)

// annotationsLimit is what the annotations of an object may have in all, in bytes
// (TotalAnnotationSizeLimitB of k8s.io/apimachinery). A client-side apply keeps the object in
// one of them.
const annotationsLimit = 256 << 10

// applied notes objects of an app that Argo CD cannot apply, or applies again and again.
func (v *linter) applied(app application, file string, objs []*unstructured.Unstructured) {
	for _, o := range objs {
		annotations := o.GetAnnotations()
		name := o.GetKind() + " " + o.GetName()
		if text, err := o.MarshalJSON(); err == nil && len(text) > annotationsLimit && !app.strict() && !ownWay(annotations["argocd.argoproj.io/sync-options"]) {
			v.wrong(app.Metadata.Name, file, 0, fmt.Errorf("%s: got %d bytes, want at most %d; or add ServerSideApply=true to spec.syncPolicy.syncOptions of the Application", name, len(text), annotationsLimit))
		}
		_, ends, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "ttlSecondsAfterFinished")
		if o.GetKind() == "Job" && ends && annotations["argocd.argoproj.io/hook"] == "" && annotations["helm.sh/hook"] == "" {
			v.doubts = append(v.doubts, contract.Unread{Component: app.Metadata.Name, File: file, Err: errors.New(name + ": once Kubernetes has removed the finished Job, Argo CD makes it again or calls the app OutOfSync; remove ttlSecondsAfterFinished, or add the annotation argocd.argoproj.io/hook: Sync")})
		}
	}
}

// ownWay reports whether an object's own sync options have Argo CD apply it otherwise than on
// the client's side.
func ownWay(options string) bool {
	return slices.ContainsFunc(strings.Split(options, ","), func(o string) bool {
		o = strings.TrimSpace(o)
		return o == "ServerSideApply=true" || o == "Replace=true"
	})
}
