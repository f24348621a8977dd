package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/cli/internal/source"
)

// addDeployment declares the flags of a command on a deployment in set, which is one of
// cmd's.
func addDeployment(cmd *cobra.Command, set *pflag.FlagSet, p *Program, f *deployment.Flags) {
	set.SortFlags = false
	f.AddFlags(cmd, set, p.Version, p.registries())
	complete(cmd, "name", deploymentNames())
}

// addSource declares the flags of a command that only reads a configuration.
func addSource(cmd *cobra.Command, p *Program, s *source.Source) {
	s.Registries = p.registries()
	cmd.Flags().SortFlags = false
	s.AddFlags(cmd.Flags())
	complete(cmd, "name", deploymentNames())
}
