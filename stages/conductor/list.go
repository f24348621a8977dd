package conductor

import (
	"context"
	"path"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/stages/contract"
)

// indexed is e with the engine's index of deployments, and the deployment's entry in it; empty where the
// state is in a bucket, which needs none.
func (r *Records) indexed(e containers.Exec) (_ containers.Exec, entry string) {
	if r.inBucket {
		return e, ""
	}
	e.Volumes = map[string]string{contract.IndexDir: containers.IndexVolume}
	return e, path.Join(contract.IndexDir, r.name)
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
		index, _ := c.indexed(containers.Exec{})
		names, err := query(ctx, c.commands, index, contract.ListIndex, contract.Nothing{})
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if config.IsName(name) {
				e.Volumes[path.Join(contract.StatesDir, name)] = containers.StateVolume(name)
			}
		}
	}
	return query(ctx, states, e, contract.ListDeployments, contract.Nothing{})
}
