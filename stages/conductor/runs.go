package conductor

import (
	"context"

	"github.com/slipway-sh/slipway/stages/contract"
)

const runsFile = "/slipway/runs.json"

// Runs are the runs of the deployment, the oldest first; those of one that was
// removed are among them.
func (c *Conductor) Runs(ctx context.Context) ([]contract.RunSummary, error) {
	var out []contract.RunSummary
	err := c.ask(ctx, []string{"slipway", "state", "runs", runsFile}, runsFile, &out)
	return out, err
}

// Run is one run. One that is not there is a fault of class Usage.
func (c *Conductor) Run(ctx context.Context, id string) (*contract.RunDetail, error) {
	out := &contract.RunDetail{}
	err := c.ask(ctx, []string{"slipway", "state", "runs", runsFile, id, "--deployment", c.opts.Config.Global.Name}, runsFile, out)
	return out, err
}
