package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/cli/internal/source"
)

// addDeployment declares the flags of a command on a deployment.
func addDeployment(cmd *cobra.Command, p *Program, f *deployment.Flags) {
	cmd.Flags().SortFlags = false
	f.AddFlags(cmd, cmd.Flags(), p.Version, p.registries())
	completeSource(cmd)
}

// addPersistentDeployment declares them for the commands below cmd, too.
func addPersistentDeployment(cmd *cobra.Command, p *Program, f *deployment.Flags) {
	cmd.PersistentFlags().SortFlags = false
	f.AddFlags(cmd, cmd.PersistentFlags(), p.Version, p.registries())
	completeSource(cmd)
}

// addSource declares the flags of a command that reads a configuration.
func addSource(cmd *cobra.Command, set *pflag.FlagSet, s *source.Source) {
	set.SortFlags = false
	s.AddFlags(set)
	complete(cmd, "deployment", deploymentNames())
}

// addOverrides declares those that replace something in it.
func addOverrides(cmd *cobra.Command, set *pflag.FlagSet, s *source.Source) {
	s.AddOverrides(set)
	complete(cmd, "name", deploymentNames())
}

func completeSource(cmd *cobra.Command) {
	complete(cmd, "deployment", deploymentNames())
	complete(cmd, "name", deploymentNames())
}
