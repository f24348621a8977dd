package conductor

import (
	"context"
	"fmt"

	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/containers/engineconfig"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/report"
)

// codeMayGo: the engine is not known to keep the volumes that a first install would be on.
const codeMayGo fault.Code = "ENG-011"

// volumesMayGo is what the record of an install says where the engine is not known to keep
// the deployment's volumes; none if it keeps them, if they hold nothing of the deployment, or
// if it may be lost with them. Where there is no cluster yet, that is a fault, unless the
// engine does not tell this client.
func (c *Conductor) volumesMayGo(ctx context.Context) ([]report.Warning, error) {
	inBucket := c.opts.State.URL != ""
	if c.opts.Ephemeral || c.opts.Config.Advanced.Ephemeral || inBucket && c.service == nil {
		return nil, nil
	}
	volumes, err := containers.VolumesOf(ctx, c.opts.Client)
	if err != nil || volumes.Kept {
		return nil, err
	}
	what, bucket := "its state and the records of its runs", "; or keep the state in a bucket (state.url in the configuration)"
	switch {
	case c.service == nil:
	case inBucket:
		what, bucket = "its cluster and all data in it", ""
		if c.opts.State.Key == nil && c.copies == nil { // whoever runs it on their machine has a copy
			what += ", and the key of its secrets, which is nowhere else: without it nothing reads what the bucket has of them"
			bucket = "; or give a key that you keep (state.key in the configuration, or --state-key), and the secrets stay readable"
		}
	default:
		what, bucket = "its cluster and all data in it, its state and the records of its runs", "; a bucket (state.url in the configuration) keeps the state, and not the cluster"
	}
	may := fmt.Errorf("the engine may throw away what deployment %s has on its volumes, %s: %s", c.name, what, volumes.Why)
	accept := "; or say that the deployment may be lost with the engine's volumes: slipway install --ephemeral, or advanced.ephemeral: true in the configuration"
	there := volumes.Untold
	if !there {
		s, err := c.stored(ctx)
		if err != nil {
			return nil, err
		}
		there = s.Cluster && !s.Lost && (s.Here || c.service == nil)
	}
	if !there {
		return nil, &fault.Fault{Code: codeMayGo, Class: fault.Preflight, Op: "make sure that the engine keeps the deployment", Err: may,
			Fix: keepVolumes("which loses every deployment that it has") + bucket + accept}
	}
	const anew = "which loses every deployment that it has, this one too, and install again"
	return []report.Warning{{Summary: may.Error(), Fix: keepVolumes(anew) + bucket + accept}}, nil
}

// keepVolumes is how an engine is made to keep volumes, and what becomes of those that it has.
func keepVolumes(anew string) string {
	return "use an engine of make engine, which keeps them; or write " + engineconfig.Text + " to " + engineconfig.File() +
		" (for an engine that the dagger CLI does not start: to /etc/dagger/engine.json where it runs), then start it anew, " + anew
}
