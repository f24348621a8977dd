package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config/deployments"
	"github.com/slipway-sh/slipway/fault"
)

type useOptions struct{ forget string }

func newUse() *cobra.Command {
	var o useOptions
	cmd := &cobra.Command{
		Use: "use [NAME]", Short: "Choose the deployment that commands use by default, or list the stored ones", Example: `  slipway use shop
  slipway use --forget shop   # what is installed stays`,
		RunE: atOnce(o.run), ValidArgsFunction: deploymentNames,
	}
	cmd.Flags().StringVar(&o.forget, "forget", "", "remove the stored configuration of this deployment")
	completeName(cmd, "forget")
	return cmd
}

func (o *useOptions) run(_ context.Context, io console.Streams, args []string) error {
	switch {
	case o.forget != "" && len(args) > 0:
		return usage.Errorf("give --forget alone")
	case len(args) > 1:
		return usage.Errorf("give the name of one deployment, or nothing")
	case len(args) == 1 && args[0] == "":
		return usage.Errorf("the name is empty")
	}
	folder, err := deployments.Default()
	if err != nil {
		return err
	}
	if o.forget != "" {
		if err := folder.Remove(o.forget); err != nil {
			return err
		}
		_, err := fmt.Fprintf(io.Text(), "the configuration of deployment %s is removed; what is installed stays\n", o.forget)
		return err
	}
	if len(args) == 0 {
		return listStored(io.Out, folder)
	}
	if err := folder.Use(args[0]); err != nil {
		return err
	}
	fmt.Fprintf(io.Text(), "deployment %s is the current one: %s\n", args[0], folder.File(args[0]))
	if other := os.Getenv(source.EnvDeployment); other != "" && other != args[0] {
		fmt.Fprintf(io.Err, "slipway: in this shell commands go on working on %s: %s is set, and comes first\n", fault.Quote(other), source.EnvDeployment)
	}
	return nil
}

// listStored prints a line per stored deployment, and marks the current one.
func listStored(w io.Writer, folder deployments.Folder) error {
	names, err := folder.Names()
	if err != nil {
		return err
	}
	current, gone := folder.Current() // the list is useful also when that is gone
	if len(names) == 0 {
		fmt.Fprintln(w, "no configurations are stored; slipway configure creates one")
		return gone
	}
	table := newTable(w)
	for _, name := range names {
		mark := "  "
		if name == current {
			mark = "* "
		}
		fmt.Fprintf(table, "%s%s\t%s\n", mark, name, folder.File(name))
	}
	return errors.Join(gone, table.Flush())
}
