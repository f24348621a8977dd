package conductor

import (
	"context"
	"path"
	"time"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/stages/contract"
)

// DeploymentSummary is a deployment in what `slipway list` shows.
type DeploymentSummary struct {
	Deployment string            `json:"deployment"`
	Release    string            `json:"release,omitempty"`   // name of the release of Run
	Installed  string            `json:"installed,omitempty"` // version of the release that was installed to the end
	State      contract.Progress `json:"state,omitempty"`     // as its last run left it
	Run        string            `json:"run,omitempty"`       // id of the last run that was not refused
	Workflow   string            `json:"workflow,omitempty"`  // of that run
	Created    time.Time         `json:"created,omitzero"`
	Problem    string            `json:"problem,omitempty"` // why its state cannot be read; only Deployment is set then
}

// queryIndexed is queryIn in a container with the engine's index of deployments, in which the deployment
// has an entry unless its state is in a bucket.
func (r *Records) queryIndexed(ctx context.Context, e containers.Exec, action string, req contract.StateRequest, out any) error {
	if !r.inBucket {
		req.Entry = path.Join(contract.IndexDir, r.name)
		e.Volumes = map[string]string{contract.IndexDir: containers.IndexVolume}
	}
	return r.queryIn(ctx, e, action, req, out)
}

// List returns the deployments whose state is in the bucket of this deployment's state or, if
// that is not in a bucket, on the engine.
func (c *Conductor) List(ctx context.Context) ([]DeploymentSummary, error) {
	states, e := c.commands, containers.Exec{Volumes: map[string]string{}}
	if c.inBucket {
		all := c.opts.State
		all.URL = all.Bucket
		states = commands{containers.Open(c.opts.Client, c.name, c.opts.Images, all.access(c.inputs.Environment, c.opts.Origin))}
	} else {
		var names []string
		index := containers.Exec{Volumes: map[string]string{contract.IndexDir: containers.IndexVolume}}
		if err := c.queryIn(ctx, index, "index", contract.StateRequest{}, &names); err != nil {
			return nil, err
		}
		for _, name := range names {
			if config.IsName(name) {
				e.Volumes[path.Join(contract.StatesDir, name)] = containers.StateVolume(name)
			}
		}
	}
	var out []DeploymentSummary
	err := states.queryIn(ctx, e, "list", contract.StateRequest{}, &out)
	return out, err
}

// SummaryOf is the line in a list of a deployment of which s is stored.
func SummaryOf(name string, created time.Time, s *contract.Stored, inBucket bool) DeploymentSummary {
	status, _ := (&Records{name: name, inBucket: inBucket}).status(s) // that of one that is not there, too
	out := DeploymentSummary{Deployment: name, Created: created, State: status.State, Installed: s.Platform}
	if r := s.Record; r != nil {
		out.Release, out.Run, out.Workflow = r.Platform.Name, r.ID, r.Workflow
	}
	return out
}
