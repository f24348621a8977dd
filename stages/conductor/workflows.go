package conductor

import (
	"encoding/json"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/providers"
)

// Steps are the names, "stage/name", of the steps of each workflow with a
// provider, whose section of the configuration is valid. They are those of the
// graph that a run is wired from, in its order; nothing is started for it.
func Steps(provider providers.Provider, section json.RawMessage) (map[string][]string, error) {
	cfg := config.Default()
	c := &Conductor{
		opts:  Options{Config: cfg, Provider: provider, Images: &containers.Images{}, Release: &platform.Release{}},
		place: providers.Deployment{Name: cfg.Global.Name, Scale: cfg.Global.Scale, Section: section},
	}
	if _, ok := provider.(providers.ClusterServer); ok {
		c.cluster = &containers.Cluster{}
	}
	out := map[string][]string{}
	for workflow, wire := range map[string]func(*pipeline.Pipeline) error{
		config.Install: func(p *pipeline.Pipeline) error { _, err := c.install(p); return err },
		config.Destroy: c.destroy,
	} {
		var p pipeline.Pipeline
		if err := wire(&p); err != nil {
			return nil, err
		}
		for _, n := range p.Graph() {
			out[workflow] = append(out[workflow], n.String())
		}
	}
	return out, nil
}
