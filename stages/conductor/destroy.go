package conductor

import (
	"context"
	"time"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/contract"
)

// destroy wires the steps of a removal: the reverse order of an install.
//
// A cluster that Slipway runs itself goes as a whole, with everything in it. Of
// any other one, the platform is taken out first, object by object.
func (c *Conductor) destroy(p *pipeline.Pipeline) error {
	root, err := c.terraformInput()
	if err != nil {
		return err
	}
	var gone []pipeline.Dep
	if c.cluster == nil {
		remove := add(c, p, contract.PlatformRemoveStep(),
			func() contract.RemoveInput { return contract.RemoveInput{} })
		left := add(c, p, contract.PlatformInventoryStep(),
			func() contract.InventoryInput { return contract.InventoryInput{MustBeEmpty: true} }, remove)
		gone = append(gone, left)
	} else {
		key := contract.NodeRemoveKey()
		gone = append(gone, pipeline.Add(p, key, spanned(key, c.locked(c.wipe))))
	}
	terraform := add(c, p, contract.TerraformDestroyStep(),
		func() contract.TerraformInput { return root }, gone...)
	// The last look: at what would outlive the deployment.
	add(c, p, contract.InventoryStep(),
		func() contract.InventoryInput {
			return contract.InventoryInput{MustBeEmpty: true, SkipUnreachable: true, Gone: c.cluster != nil}
		}, terraform)
	return nil
}

// wipe empties the node's volume; a node that is kept running is stopped before.
func (c *Conductor) wipe(ctx context.Context) error {
	if c.opts.Kept != "" {
		if err := c.cluster.End(ctx); err != nil {
			return err
		}
	}
	return c.deployment.Wipe(ctx)
}

// Destroy removes the deployment and proves that nothing is left; one that is
// not there is no error. The records of its runs are kept. One whose cluster is on
// another engine is a fault: its state would go, and the cluster stay.
func (c *Conductor) Destroy(ctx context.Context) (*report.Run, error) {
	if err := c.here(ctx); err != nil {
		return nil, err
	}
	c.run = report.NewID(time.Now())
	var p pipeline.Pipeline
	if err := c.destroy(&p); err != nil {
		return nil, err
	}
	record, err := c.conduct(ctx, config.Destroy, &p)
	if record == nil {
		return nil, err
	}
	if err == nil {
		// Nothing may be reused after this: journal, credentials, Terraform state.
		err = c.tell(ctx, "slipway", "state", "purge")
	}
	return record, c.keep(ctx, record, nil, err)
}

// here is the fault of a removal on an engine that has not the cluster.
func (c *Conductor) here(ctx context.Context) error {
	if c.cluster == nil || c.opts.State.URL == "" {
		return nil
	}
	s, err := c.stored(ctx)
	if err != nil || !s.Cluster || s.Here {
		return err
	}
	return c.elsewhere("remove the deployment", "if that is gone, delete what is below the deployment's name in the bucket")
}
