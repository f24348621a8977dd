package conductor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/stages/contract"
)

// verifyFrom is how many steps must have succeeded before for their results to be
// verified all at once; for fewer, that takes longer than each on its own.
const verifyFrom = 4

// verifyAll verifies the earlier results of all steps at once: one container carries
// the whole graph out without changing anything. The steps that follow take their
// results from it; one that is not among them checks its own result. It does nothing if
// fewer than verifyFrom steps have succeeded before, or if hooks run around every step or
// around the infrastructure stage.
func (c *containerRunner) verifyAll(ctx context.Context, plan contract.Plan) (err error) {
	if c.known < verifyFrom || slices.Contains(plan.Hooked, pipeline.EveryStep) || slices.Contains(plan.Hooked, contract.CheckEarlierSpec().Key.Stage) {
		return nil
	}
	ctx, end := inSpan(ctx, contract.CheckEarlierSpec().Key)
	defer func() { end(contract.Succeeded, err) }()
	if err := c.lock.wait(ctx); err != nil {
		return err
	}
	found, err := c.verify(ctx, plan)
	c.verified = found.Steps
	return err
}

// verify runs `slipway verify` in a container with all that any step gets.
func (c *containerRunner) verify(ctx context.Context, plan contract.Plan) (found contract.Verified, err error) {
	text, err := json.Marshal(plan)
	if err != nil {
		return found, fmt.Errorf("encode what is to be verified: %w", err)
	}
	e := containers.Exec{
		Args:   []string{"slipway", "verify", contract.PlanFile, contract.VerifiedFile},
		Files:  contract.Parts(contract.PlanFile, string(text)),
		Result: contract.VerifiedFile,
	}
	if err := c.mount(ctx, &e, contract.CheckEarlierSpec()); err != nil {
		return found, err
	}
	err = commands{c.deployment}.result(ctx, e, &found)
	return found, err
}
