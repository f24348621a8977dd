// Package stages wires the workflows into graphs: which steps there are, in which order, and
// what each is fed with. Package contract declares the steps, the packages of the stages have
// their code, and package conductor runs a graph in containers.
package stages

import (
	"fmt"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/stages/contract"
)

// Workflows are those that run on a deployment.
func Workflows() []Workflow {
	return []Workflow{Install(), Upgrade(), Rollback(), Destroy(), Test(Suite{})}
}

// Named is the workflow with that name.
func Named(name string) (Workflow, error) {
	for _, w := range Workflows() {
		if w.Name == name {
			return w, nil
		}
	}
	return Workflow{}, fmt.Errorf("there is no workflow %q", name)
}

// Steps are the names, "stage/name", of the steps of each workflow with a provider, whose section of the
// configuration is valid, in the order of the graph. If release is nil, because it is not known yet,
// "stage/*" stands for its components.
func Steps(provider providers.Provider, cfg *config.Config, release *platform.Release) (map[string][]string, error) {
	known := release
	if release == nil {
		known = &platform.Release{}
		plain := *cfg
		plain.Platform = config.Platform{}
		cfg = &plain
	}
	environment, err := EnvironmentOf(provider, DeploymentOf(cfg))
	if err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for _, w := range Workflows() {
		nodes, err := Nodes(w, contract.Inputs{Config: cfg, Release: known, Environment: environment})
		if err != nil {
			return nil, err
		}
		for _, n := range nodes {
			out[w.Name] = append(out[w.Name], n.String())
		}
		if release != nil {
			continue
		}
		for _, stage := range w.Named {
			out[w.Name] = append(out[w.Name], stage+"/*")
		}
	}
	return out, nil
}

// CheckSteps checks that the steps of every workflow have names of their own, and what the hooks of
// a configuration are bound to.
func CheckSteps(provider providers.Provider, cfg *config.Config, release *platform.Release) error {
	steps, err := Steps(provider, cfg, release)
	if err != nil || len(cfg.Hooks) == 0 {
		return err
	}
	return cfg.CheckHooks(steps)
}
