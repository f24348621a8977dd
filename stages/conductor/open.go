package conductor

import (
	"context"

	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/stages/contract"
)

// open has the run, which has the lock, find out what the state knows, and gives a deployment
// that has no identity one. Without the cluster only an install and a destroy go on.
func (r *run) open(ctx context.Context) error {
	if !installs(r.workflow.Name) && !r.workflow.Removes {
		return nil
	}
	var now contract.Opened
	if err := r.askIndexed(ctx, r.looking(containers.Exec{}), "open", contract.StateRequest{Who: r.who(), Deployment: r.name}, &now); err != nil {
		return err
	}
	r.past, r.steps.known = now.Phases, now.Known
	return r.judge(now)
}

// who says whose run it is.
func (r *run) who() lock.Holder {
	return lock.Holder{User: r.opts.User, Host: r.opts.Host, Run: r.steps.requests.run, Workflow: r.workflow.Name}
}
