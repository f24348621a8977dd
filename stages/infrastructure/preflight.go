package infrastructure

import (
	"context"
	"fmt"
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
	if env.Backend.Remote() { // that the store answers was seen before the step began
		s, err := env.Store(ctx)
		if err == nil {
			err = env.Backend.CheckSecrets(ctx, s)
		}
		if err != nil {
			return contract.Preflight{}, err
		}
	}
	out, err := observe("/", env.StateDir, in.Requirements.Raises)
	if err != nil {
		return contract.Preflight{}, fmt.Errorf("look at the machine: %w", err)
	}
	if _, err := os.Stat(env.Kubeconfig); err == nil {
		in.Requirements.DiskBytes = min(in.Requirements.DiskBytes, contract.DiskReserve)
	}
	if problems := slices.Concat(compareMachine(out, in.Requirements), checkTLS(env, in.TLS, time.Now())); len(problems) > 0 {
		return contract.Preflight{}, unmet(CodePreflight, "check the machine", problems)
	}
	if len(out.Raises) > 0 {
		env.Progress("the cluster raises sysctls of the Dagger engine's machine, and nothing lowers them again: %s", strings.Join(out.Raises, ", "))
	}
	env.Progress("%s memory, %s free disk, %d CPUs", size(out.MemoryBytes), size(out.DiskBytes), out.CPUs)
	return out, nil
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

type problem struct {
	what   string
	remedy string
}

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
