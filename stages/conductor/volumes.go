package conductor

import "github.com/slipway-sh/slipway/pipeline/report"

// onlyOnVolumes is what the record of a first install says where something of the deployment is on
// the engine's volumes and nowhere else; nil where nothing is.
func (c *Conductor) onlyOnVolumes() *report.Warning {
	const bucket = "to keep the state elsewhere, name a bucket in the configuration: state.url"
	on := " of deployment " + c.name + " is only on a volume of this Dagger engine"
	switch {
	case c.node && c.inBucket && c.opts.State.Key == nil:
		return &report.Warning{
			Summary: "the key of the secrets" + on + ": without it, nothing reads the secrets in the bucket",
			Fix:     "to keep the key elsewhere, give one: state.key in the configuration",
		}
	case c.inBucket:
		return nil
	case c.node:
		return &report.Warning{
			Summary: "the state" + on + ", as its cluster is: if the engine removes its volumes, the deployment is lost with all its data",
			Fix:     bucket,
		}
	}
	return &report.Warning{
		Summary: "the state" + on + ": if the engine removes it, the records of the runs and the backups are lost, and the next install needs --take-ownership",
		Fix:     bucket,
	}
}
