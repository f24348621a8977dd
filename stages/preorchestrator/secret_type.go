package preorchestrator

import (
	"cmp"
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-sh/slipway/fault"
)

// plainType is a type of Secrets that can stand in a command.
var plainType = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9./_-]*$`)

// sameType is the fault for a Secret whose type is not the one that the release has: the type of
// a Secret never changes. Slipway does not make it again, for a run that is killed in between
// would lose the values that are generated.
func sameType(o *corev1.Secret, want corev1.SecretType) error {
	want, have := cmp.Or(want, corev1.SecretTypeOpaque), cmp.Or(o.Type, corev1.SecretTypeOpaque)
	if want == have {
		return nil
	}
	f := &fault.Fault{
		Code: CodeSecret, Class: fault.Step, Op: "write secret " + o.Namespace + "/" + o.Name,
		Err: fmt.Errorf("it is of type %q, which never changes, and the release has it as %q", have, want),
		Fix: "name another Secret in platform.yaml, or give it the type that it has",
	}
	if plainType.MatchString(string(want)) {
		f.Fix += fmt.Sprintf("; or make it again with its values: slipway toolchain -- sh -c 'kubectl get secret -n %s %s -o yaml --show-managed-fields | sed \"s|^type: .*|type: %s|\" | kubectl replace --force -f -'",
			fault.Quote(o.Namespace), fault.Quote(o.Name), want)
	}
	f.Fix += "; then run the same command again"
	return f
}
