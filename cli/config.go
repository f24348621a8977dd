package cli

import (
	"github.com/spf13/cobra"
)

func newConfig(p *Program) *cobra.Command {
	return group(&cobra.Command{
		Use: "config", Short: "Brings a configuration to the current version, or shows every value and where it comes from",
	}, newConfigMigrate(p), newConfigExplain(p))
}
