package incontainer

import (
	"context"
	"io"

	"github.com/slipway-sh/slipway/stages/conductor"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/step"
)

// verify checks the earlier results of all steps, as many at a time as the graph allows, and tells
// screen how many hold.
func (p *Planner) verify(ctx context.Context, req contract.PlanRequest, screen io.Writer) (contract.Verified, error) {
	w, err := p.load(&req)
	if err != nil {
		return contract.Verified{}, err
	}
	found, err := conductor.Verify(ctx, w, req, func(ctx context.Context, req contract.Request) contract.Result {
		return step.Perform(ctx, p.Steps, req, p.Dirs, "", io.Discard) // each has its log
	})
	if err == nil {
		say(screen, "verify", "%d earlier results hold", len(found.Steps))
	}
	return found, err
}
