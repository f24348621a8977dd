package infrastructure

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/installed"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/plan"
	"github.com/slipway-sh/slipway/stages/step"
)

const (
	reachLimit = time.Minute     // for the API to answer
	skipLimit  = 3 * time.Second // for an API that may be gone
)

func platformRemove(ctx context.Context, env *step.Env, in contract.RemoveInput) (contract.Removed, error) {
	return remove(ctx, env, in, (*installed.Remover).Platform)
}

func crdsRemove(ctx context.Context, env *step.Env, in contract.RemoveInput) (contract.Removed, error) {
	return remove(ctx, env, in, (*installed.Remover).CRDs)
}

// remove takes something of the deployment's out of a cluster that stays. A fault that says what is to be
// done stays as it is.
func remove(ctx context.Context, env *step.Env, in contract.RemoveInput, take func(*installed.Remover, context.Context, bool) (contract.Removed, error)) (contract.Removed, error) {
	r, why, err := reach(ctx, env, reachLimit, false)
	if err != nil || r == nil {
		return contract.Removed{Unreachable: why}, err
	}
	out, err := take(r, ctx, in.CRDs)
	f, ok := errors.AsType[*fault.Fault](err)
	switch {
	case err == nil:
		return out, nil
	case ok && slices.Contains([]fault.Code{installed.CodeStuck, installed.CodeUnrecorded}, f.Code):
		return out, f
	}
	return out, checkFault(CodeRemove, "remove the platform", "run again: slipway destroy", err)
}

// reach connects to the cluster, which gets limit to answer. Without an access file, or with skip if the
// API does not answer, there is no remover, and why says so.
func reach(ctx context.Context, env *step.Env, limit time.Duration, skip bool) (r *installed.Remover, why string, err error) {
	if _, err := os.Stat(env.Kubeconfig); errors.Is(err, fs.ErrNotExist) {
		env.Progress("there was no cluster yet")
		return nil, "there was no cluster yet: it has no access file", nil
	}
	c, err := env.Connect()
	switch {
	case err != nil:
	case env.Existing:
		_, err = answers(ctx, env, c, limit)
	default:
		limited, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		err = c.WaitSuccess(limited, "the API at "+c.Endpoint(), func(ctx context.Context) error {
			return c.Kubernetes.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
		})
	}
	if err == nil {
		r := &installed.Remover{Client: c, Deployment: env.Deployment, Log: env.Logger, Progress: env.Progress}
		return r, "", sameCluster(ctx, env, c, false)
	}
	if skip && ctx.Err() == nil {
		env.Logger.Warn("the cluster does not answer", "error", err)
		return nil, err.Error(), nil
	}
	if env.Existing { // nobody here can start it
		return nil, "", err
	}
	return nil, "", checkFault(CodeAPI, "reach the cluster", "start the cluster, then run again: slipway destroy", err)
}

// inventory lists what the deployment has in the cluster, and Terraform's resources.
func inventory(ctx context.Context, env *step.Env, in contract.InventoryInput) (contract.Inventory, error) {
	state, err := currentState(ctx, env)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return contract.Inventory{}, badState(err)
	}
	var out contract.Inventory
	for _, address := range state.addresses() {
		out.Objects = append(out.Objects, "Terraform resource "+address)
	}
	return count(ctx, env, in, out)
}

// platformInventory lists what the deployment has in the cluster, before Terraform destroys anything.
func platformInventory(ctx context.Context, env *step.Env, in contract.InventoryInput) (contract.Inventory, error) {
	return count(ctx, env, in, contract.Inventory{})
}

// count adds what the deployment has in the cluster to out.
func count(ctx context.Context, env *step.Env, in contract.InventoryInput, out contract.Inventory) (contract.Inventory, error) {
	if in.Gone {
		out.Unreachable = "the cluster was removed, with everything in it"
	} else {
		has, why, err := takeInventory(ctx, env, in)
		if err != nil {
			return out, err
		}
		out.Objects, out.Unreachable = append(out.Objects, has.Names...), why
	}
	seen := "nothing is left"
	if len(out.Objects) > 0 {
		seen = "left: " + strings.Join(out.Objects, ", ")
	}
	if in.MustBeEmpty && len(out.Objects) > 0 {
		return out, &fault.Fault{
			Code: CodeRemove, Class: fault.Step, Op: "see that nothing is left",
			Fix: "run again: slipway destroy", Err: errors.New(seen),
		}
	}
	if out.Unreachable != "" {
		seen += "; " + out.Unreachable
	}
	env.Progress("%s", seen)
	return out, nil
}

// takeInventory looks into the cluster. If that does not answer, why says so.
func takeInventory(ctx context.Context, env *step.Env, in contract.InventoryInput) (has installed.Inventory, why string, err error) {
	limit := reachLimit
	if in.SkipUnreachable {
		limit = skipLimit
	}
	r, why, err := reach(ctx, env, limit, in.SkipUnreachable)
	if err != nil || r == nil {
		return has, why, err
	}
	has, err = r.Inventory(ctx, in.CRDs)
	return has, "", err
}

// planRemoval has everything that the deployment has in the cluster deleted in the plan.
func planRemoval(ctx context.Context, env *step.Env, in contract.InventoryInput) (contract.Inventory, error) {
	has, why, err := takeInventory(ctx, env, in)
	out := contract.Inventory{Objects: has.Names, Unreachable: why}
	if err != nil {
		return out, err
	}
	if _, err := os.Stat(env.Kubeconfig); why != "" && err == nil {
		return out, plan.Later("what is in the cluster, which does not answer (%s)", why)
	}
	for _, o := range has.Objects {
		env.Plan.Put("removed/"+kube.MemberOf(&o).String(), o.Object, nil, "")
	}
	return out, nil
}

// planRemove leaves to the inventory what a removal takes.
func planRemove(context.Context, *step.Env, contract.RemoveInput) (contract.Removed, error) {
	return contract.Removed{}, nil
}
