package conductor

import (
	"context"
	"path"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/stages/contract"
)

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
func (c *Conductor) List(ctx context.Context) ([]contract.DeploymentSummary, error) {
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
	var out []contract.DeploymentSummary
	err := states.queryIn(ctx, e, "list", contract.StateRequest{}, &out)
	return out, err
}
