package stages

import (
	"fmt"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/stages/contract"
)

// EnvironmentOf is what provider, which may be nil, contributes to a deployment.
func EnvironmentOf(provider providers.Provider, d providers.Deployment) (contract.Environment, error) {
	if provider == nil {
		return contract.Environment{}, nil
	}
	root, err := provider.Terraform(d)
	if err != nil {
		return contract.Environment{}, err
	}
	// Other files are another input, also where the variables are the same.
	digest, err := platform.Digest(root.Files)
	if err != nil {
		return contract.Environment{}, fmt.Errorf("read the Terraform root: %w", err)
	}
	cluster, err := provider.Cluster(d)
	return contract.Environment{Root: root.Files, Terraform: contract.TerraformInput{Vars: root.Vars, Root: digest}, Cluster: cluster}, err
}

// DeploymentOf is what a provider needs to know of the deployment.
func DeploymentOf(cfg *config.Config) providers.Deployment {
	return providers.Deployment{Name: cfg.Global.Name, Scale: cfg.Global.Scale, Section: cfg.Section(cfg.Provider)}
}
