package cli

import (
	"github.com/spf13/cobra"
)

func newLock(*Program) *cobra.Command {
	return group(&cobra.Command{Use: "lock", Short: "Checks or completes the list of pinned tools and images"}, newLockVerify(), newLockUpdate())
}
