package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/config/deployments"
)

// addDeployment declares the flags of a command on a deployment in set, which is one of
// cmd's.
func addDeployment(cmd *cobra.Command, set *pflag.FlagSet, p *Program, f *deployment.Flags) {
	set.SortFlags = false
	f.AddFlags(cmd, set, p.Version, p.registries())
	completeName(cmd, "name")
}

// addSource declares the flags of a command that only reads a configuration.
func addSource(cmd *cobra.Command, p *Program, s *source.Source) {
	s.Registries = p.registries()
	cmd.Flags().SortFlags = false
	s.AddFlags(cmd.Flags())
	completeName(cmd, "name")
}

// completeName makes a shell complete the values of a flag by the names of stored deployments.
func completeName(cmd *cobra.Command, flag string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, deploymentNames); err != nil {
		panic(err) // there is no such flag
	}
}

// deploymentNames are the deployments with a stored configuration. A shell that completes shows no
// errors.
func deploymentNames(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	folder, err := deployments.Default()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, _ := folder.Names()
	return names, cobra.ShellCompDirectiveNoFileComp
}
