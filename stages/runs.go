package stages

import (
	"context"
	"time"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/pipeline/report"
)

// RunSummary is a run in a list.
type RunSummary struct {
	ID       string         `json:"id"`
	Workflow string         `json:"workflow"`
	Outcome  report.Outcome `json:"outcome"`
	Exit     fault.Class    `json:"exit"` // 0 too when it has not ended
	Started  time.Time      `json:"started,omitzero"`
	Seconds  float64        `json:"seconds"` // 0 when it has not ended
}

// Summarise is a run's line in a list.
func Summarise(id string, record *report.Run) RunSummary {
	return RunSummary{
		ID: id, Workflow: record.Workflow, Outcome: record.Outcome, Exit: record.Exit,
		Started: record.Started, Seconds: record.Elapsed().Seconds(),
	}
}

// RunDetail is a run with every attempt at its steps, in the order in which they
// started.
type RunDetail struct {
	ID       string            `json:"id"`
	Record   *report.Run       `json:"record,omitempty"` // none when it was killed early
	Attempts []journal.Attempt `json:"attempts"`
	Problems []string          `json:"problems,omitempty"` // records that cannot be used, and why
}

const runsFile = "/slipway/runs.json"

// Runs are the runs of the deployment, the oldest first; those of one that was
// removed are among them.
func (c *Conductor) Runs(ctx context.Context) ([]RunSummary, error) {
	var out []RunSummary
	err := c.ask(ctx, []string{"slipway", "state", "runs", runsFile}, runsFile, &out)
	return out, err
}

// Run is one run. One that is not there is a fault of class Usage.
func (c *Conductor) Run(ctx context.Context, id string) (*RunDetail, error) {
	out := &RunDetail{}
	err := c.ask(ctx, []string{"slipway", "state", "runs", runsFile, id, "--deployment", c.opts.Config.Global.Name}, runsFile, out)
	return out, err
}
