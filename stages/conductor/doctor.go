package conductor

import (
	"context"
	"errors"
	"time"

	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/contract"
)

// Checkup is what preflight sees. What is not as required is nil.
type Checkup struct {
	Machine *contract.Preflight        `json:"machine,omitempty"` // of the engine
	Cluster *contract.ClusterPreflight `json:"cluster,omitempty"` // that existed before; nil if Slipway runs the cluster
}

// Checkup checks the engine's machine, and an existing cluster, as the preflight of an install
// does, with the code of its steps. It changes nothing: the records of the steps go with their
// containers, which are told of no bucket. The error joins what is wrong.
func (c *Conductor) Checkup(ctx context.Context) (out Checkup, err error) {
	stored, err := c.stored(ctx)
	if err != nil {
		return out, err
	}
	in := contract.PreflightInput{Requirements: c.inputs.Environment.Requirements}
	if stored.Cluster && !stored.Lost {
		in.Requirements.DiskBytes = min(in.Requirements.DiskBytes, contract.DiskReserve)
	}
	steps := c.runner(report.NewID(time.Now()), nil)
	steps.scratch = "/slipway/scratch"
	steps.deployment = containers.Open(c.opts.Client, c.name, c.opts.Images, State{}.access(contract.Environment{}, c.opts.Origin))
	var machine contract.Preflight
	if _, err = steps.Run(ctx, contract.PreflightStep().Spec, in, &machine); err == nil {
		out.Machine = &machine
	}
	access := c.inputs.Environment.External
	if access == nil {
		return out, err
	}
	var cluster contract.ClusterPreflight
	// That a deployment of this name is in the cluster is no problem of the cluster.
	_, unmet := steps.Run(ctx, contract.ClusterPreflightStep().Spec, contract.ClusterPreflightInput{Kubernetes: c.inputs.Tools["kubectl"], StorageClass: access.StorageClass, TakeOwnership: true}, &cluster)
	if unmet == nil {
		out.Cluster = &cluster
	}
	return out, errors.Join(err, unmet)
}
