package conductor

import (
	"fmt"
	"io/fs"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/stages/contract"
)

// Site is what a provider contributes to a deployment. The zero value is that of no
// provider.
type Site struct {
	Root         fs.FS                   // Terraform root
	Terraform    contract.TerraformInput // what the steps with the root work on
	Requirements providers.Requirements
	Node         *providers.NodeSpec // the cluster that Slipway runs; nil: it runs none
	Addons       *providers.Addons   // what a fresh cluster lacks; nil: nothing
}

// requirer is a provider with requirements of the machine.
type requirer interface {
	Requirements(d providers.Deployment) providers.Requirements
}

// clusterServer is a provider whose cluster is a service of the run: it is gone when
// its volume is, so that nothing in it must be removed one by one.
type clusterServer interface {
	Node(d providers.Deployment) providers.NodeSpec
}

// addonsProvider is a provider whose fresh cluster lacks something.
type addonsProvider interface {
	Addons() (providers.Addons, error)
}

// SiteOf is what provider, which may be nil, contributes to a deployment.
func SiteOf(provider providers.Provider, d providers.Deployment) (Site, error) {
	if provider == nil {
		return Site{}, nil
	}
	root, err := provider.Terraform(d)
	if err != nil {
		return Site{}, err
	}
	// Other files are another input, also where the variables are the same.
	digest, err := platform.Digest(root.Files)
	if err != nil {
		return Site{}, fmt.Errorf("read the Terraform root: %w", err)
	}
	s := Site{Root: root.Files, Terraform: contract.TerraformInput{Vars: root.Vars, Root: digest}}
	if r, ok := provider.(requirer); ok {
		s.Requirements = r.Requirements(d)
	}
	if c, ok := provider.(clusterServer); ok {
		node := c.Node(d)
		s.Node = &node
	}
	if a, ok := provider.(addonsProvider); ok {
		addons, err := a.Addons()
		if err != nil {
			return Site{}, err
		}
		s.Addons = &addons
	}
	return s, nil
}

// deploymentOf is what a provider needs to know of the deployment.
func deploymentOf(cfg *config.Config) providers.Deployment {
	return providers.Deployment{Name: cfg.Global.Name, Scale: cfg.Global.Scale, Section: cfg.Section(cfg.Provider)}
}

// directory is the Terraform root on the engine.
func (s Site) directory(client *dagger.Client) (*dagger.Directory, error) {
	dir := client.Directory()
	err := fs.WalkDir(s.Root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(s.Root, name)
		if err == nil {
			dir = dir.WithNewFile(name, string(text))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the Terraform root: %w", err)
	}
	return dir, nil
}
