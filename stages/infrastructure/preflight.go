package infrastructure

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/config/certificate"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/step"
)

// preflight checks the machine and reports everything that is missing at once.
func preflight(ctx context.Context, env *step.Env, in contract.PreflightInput) (contract.Preflight, error) {
	seen, problems, err := look(ctx, env, in)
	if err != nil {
		return contract.Preflight{}, err
	}
	if len(problems) > 0 {
		return contract.Preflight{}, unmet(CodePreflight, checkMachine, problems)
	}
	out := contract.Preflight{
		MemoryBytes: seen.memory, DiskBytes: seen.disk, CPUs: seen.cpus, Kernel: seen.kernel, Raises: raises(seen, in.Requirements),
	}
	if len(out.Raises) > 0 {
		env.Progress("the cluster raises sysctls of the Dagger engine's machine, and nothing lowers them again: %s", strings.Join(out.Raises, ", "))
	}
	env.Progress("%s memory, %s free disk, %d CPUs", size(seen.memory), size(seen.disk), seen.cpus)
	return out, nil
}

// verifyPreflight looks at the machine again.
func verifyPreflight(ctx context.Context, env *step.Env, in contract.PreflightInput, _ contract.Preflight) error {
	_, problems, err := look(ctx, env, in)
	if len(problems) > 0 {
		return unmet(CodePreflight, checkMachine, problems)
	}
	return err
}

func look(ctx context.Context, env *step.Env, in contract.PreflightInput) (machine, []problem, error) {
	if err := checkSecrets(ctx, env); err != nil {
		return machine{}, nil, err
	}
	seen, err := observe("/", env.StateDir, slices.Collect(maps.Keys(in.Requirements.Raises))...)
	if err != nil {
		return machine{}, nil, fmt.Errorf("look at the machine: %w", err)
	}
	if _, err := os.Stat(env.Kubeconfig); err == nil {
		in.Requirements.DiskBytes = min(in.Requirements.DiskBytes, contract.DiskReserve)
	}
	return seen, slices.Concat(compareMachine(seen, in.Requirements), checkTLS(env, in.TLS, time.Now())), nil
}

// checkTLS finds what is wrong with the certificate that a user brings: the step that
// uses it comes when the cluster is up.
func checkTLS(env *step.Env, given *contract.UserTLS, now time.Time) []problem {
	if given == nil {
		return nil
	}
	key, err := bounded.File(env.TLSKeyFile, bounded.Written)
	if err != nil {
		return []problem{{fmt.Sprintf("read the certificate's private key: %v", err), certificate.FixInvalid}}
	}
	env.Redact(string(key))
	var out []problem
	for _, err := range certificate.Given([]byte(given.Certificate), key, []byte(given.CA), given.Hosts, now) {
		out = append(out, problem{err.Error(), certificate.FixInvalid})
	}
	return out
}

// checkSecrets tells whether this machine has the key of the deployment's secrets.
// That the store answers was seen before the step began.
func checkSecrets(ctx context.Context, env *step.Env) error {
	if !env.Place.Remote() {
		return nil
	}
	s, err := env.Store(ctx)
	if err != nil {
		return err
	}
	return env.Place.CheckSecrets(ctx, s)
}

// problem is one requirement that is not met.
type problem struct {
	what   string
	remedy string
}

// checkMachine is what preflight does.
const checkMachine = "check the machine"

// unmet is the one fault for all problems.
func unmet(code fault.Code, op string, problems []problem) error {
	var b strings.Builder
	if len(problems) == 1 {
		b.WriteString("1 requirement is not met:")
	} else {
		fmt.Fprintf(&b, "%d requirements are not met:", len(problems))
	}
	for _, p := range problems {
		b.WriteString("\n  " + p.what + "; " + p.remedy)
	}
	return &fault.Fault{
		Code: code, Class: fault.Preflight, Op: op,
		Fix: "correct each of them, then run the same command again", Err: fmt.Errorf("%s", b.String()),
	}
}
