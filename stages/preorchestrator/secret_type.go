package preorchestrator

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-sh/slipway/fault"
)

// sameType is the fault for a Secret whose type is not the release's: the type of a Secret never changes,
// and a run that is killed before it has made the Secret again would lose generated values.
func sameType(o *corev1.Secret, want corev1.SecretType) error {
	want, have := cmp.Or(want, corev1.SecretTypeOpaque), cmp.Or(o.Type, corev1.SecretTypeOpaque)
	if want == have {
		return nil
	}
	return &fault.Fault{
		Code: CodeSecret, Class: fault.Step, Op: "write secret " + o.Namespace + "/" + o.Name,
		Err: fmt.Errorf("it is of type %q, which never changes, and the release has it as %q", have, want),
		Fix: "name another Secret in platform.yaml, or give it the type that it has; then run the same command again",
	}
}
