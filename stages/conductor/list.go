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

// indexed is e with the engine's index of deployments, in which the deployment has an entry unless
// its state is in a bucket.
func (r *Records) indexed(e containers.Exec) containers.Exec {
	if !r.inBucket {
		e.Args = append(e.Args, "--entry", path.Join(contract.IndexDir, r.name))
		e.Volumes = map[string]string{contract.IndexDir: containers.IndexVolume}
	}
	return e
}

// List returns the deployments whose state is in the bucket of this deployment's state or, if
// that is not in a bucket, on the engine.
func (c *Conductor) List(ctx context.Context) ([]DeploymentSummary, error) {
	const at = "/slipway/list.json"
	states, e := c.commands, containers.Exec{Args: []string{"slipway", "state", "list", at}, Result: at}
	if c.inBucket {
		all := c.opts.State
		all.URL = all.Bucket
		states = commands{containers.Open(c.opts.Client, c.name, c.opts.Images, all.access(c.inputs.Site, c.opts.Origin))}
	} else {
		names, err := c.index(ctx)
		if err != nil {
			return nil, err
		}
		e.Volumes = map[string]string{}
		for _, name := range names {
			if config.IsName(name) {
				e.Volumes[path.Join(contract.StatesDir, name)] = containers.StateVolume(name)
			}
		}
	}
	var all []contract.ListedDeployment
	if err := states.result(ctx, e, &all); err != nil {
		return nil, err
	}
	out := make([]DeploymentSummary, len(all))
	for i, d := range all {
		out[i] = summaryOf(d, c.inBucket)
	}
	return out, nil
}

// index are the names of the deployments whose state is on the engine.
func (c *Conductor) index(ctx context.Context) (names []string, err error) {
	const at = "/slipway/index.json"
	err = c.commands.result(ctx, containers.Exec{
		Args: []string{"slipway", "state", "index", at}, Result: at, Volumes: map[string]string{contract.IndexDir: containers.IndexVolume},
	}, &names)
	return names, err
}

// summaryOf is a deployment's line in a list.
func summaryOf(d contract.ListedDeployment, inBucket bool) DeploymentSummary {
	out := DeploymentSummary{Deployment: d.Name, Created: d.Created, Problem: d.Problem}
	if d.Stored == nil {
		return out
	}
	status, _ := (&Records{name: d.Name, inBucket: inBucket}).status(d.Stored) // that of one that is not there, too
	out.State, out.Installed = status.State, d.Stored.Platform
	if r := d.Stored.Record; r != nil {
		out.Release, out.Run, out.Workflow = r.Platform.Name, r.ID, r.Workflow
	}
	return out
}
