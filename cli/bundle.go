package cli

import (
	"github.com/spf13/cobra"
)

func newBundle(*Program) *cobra.Command {
	return group(&cobra.Command{Use: "bundle", Short: "Checks a bundle, or pushes it to a registry"}, newBundleVerify(), newBundlePush())
}
