package kube

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/fault"
)

// rejected gives the errors that somebody must act on a code of their own. live is the
// object in the cluster; nil if there is none.
func rejected(what string, live *unstructured.Unstructured, err error) error {
	cause := err
	if inner := errors.Unwrap(err); inner != nil && err.Error() == what+": "+inner.Error() {
		cause = inner // the fault says what was attempted
	}
	if !Refused(err) {
		return err
	}
	return &fault.Fault{
		Code: CodeRejected, Class: fault.Step, Op: what, Err: cause,
		Fix: remedy(live, err) + ", then run the same command again",
	}
}

// Refused reports whether the API server refuses a request for good: trying again changes
// nothing.
func Refused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) ||
		apierrors.IsMethodNotSupported(err) || apierrors.IsRequestEntityTooLargeError(err) || meta.IsNoMatchError(err) || untyped(err)
}

// fixed is how the API server says that a field of an object keeps its first value.
var fixed = regexp.MustCompile(`(?i)immutable|may not change|may not be changed|cannot change|can not change|updates to \S+ spec for fields other than|can not be less than status.capacity|cannot be updated`)

func remedy(live *unstructured.Unstructured, err error) string {
	if live == nil || !apierrors.IsInvalid(err) || !fixed.MatchString(err.Error()) {
		return "correct the manifest"
	}
	how, why := "", ""
	switch m := MemberOf(live); {
	case m.HasData():
		return "give the field in the manifest the value that the object has: its data would go with the object"
	case m.MakesClaims(): // its pods and claims stay
		how, why = " --cascade=orphan", "; its pods and their volumes stay, and the new one takes them over"
	}
	resource := strings.ToLower(live.GetKind())
	if group := live.GroupVersionKind().Group; group != "" {
		resource += "." + live.GroupVersionKind().Version + "." + group
	}
	namespace := ""
	if live.GetNamespace() != "" {
		namespace = " -n " + live.GetNamespace()
	}
	return fmt.Sprintf("give the field in the manifest the value that the object has, or have the object made again (slipway toolchain -- kubectl delete%s %s %s%s%s)",
		namespace, fault.Quote(resource), fault.Quote(live.GetName()), how, why)
}
