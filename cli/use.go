package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/config/deployments"
)

// useCommand is `slipway use`: it chooses the deployment that commands work on when
// they are told of none, and lists those that are kept.
func useCommand(set *pflag.FlagSet) func(context.Context, streams, []string) error {
	none := set.Bool("none", false, "choose none: commands that name no deployment take the defaults")
	return func(_ context.Context, io streams, args []string) error {
		switch {
		case len(args) > 1:
			return errUsage{errors.New("give the name of one deployment, or nothing")}
		case len(args) == 1 && *none:
			return errUsage{errors.New("give a name or --none, not both")}
		case len(args) == 1 && args[0] == "":
			return errUsage{errors.New("the name is empty; slipway use --none chooses none")}
		}
		folder, err := deployments.Default()
		if err != nil {
			return err
		}
		switch {
		case *none:
			err = folder.Use("")
		case len(args) == 1:
			err = folder.Use(args[0])
		default:
			return listDeployments(io.out, folder)
		}
		if err != nil {
			return err
		}
		if *none {
			fmt.Fprintln(io.out, "no deployment is chosen; commands that name none take the defaults")
		} else {
			fmt.Fprintf(io.out, "deployment %s is the current one: %s\n", args[0], folder.File(args[0]))
		}
		if other := os.Getenv(envDeployment); other != "" && (*none || other != args[0]) {
			fmt.Fprintf(io.err, "slipway: in this shell commands go on working on %s: %s is set, and comes first\n", quoted(other), envDeployment)
		}
		return nil
	}
}

// listDeployments prints a line per deployment that is kept, and marks the current
// one.
func listDeployments(w io.Writer, folder deployments.Folder) error {
	names, err := folder.Names()
	if err != nil {
		return err
	}
	current, gone := folder.Current() // which are worth listing also when that is gone
	if len(names) == 0 {
		fmt.Fprintln(w, "no deployment is kept; slipway configure makes one")
		return gone
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, name := range names {
		mark := "  "
		if name == current {
			mark = "* "
		}
		fmt.Fprintf(table, "%s%s\t%s\t%s\n", mark, name, providerOf(folder.File(name), name), folder.File(name))
	}
	return errors.Join(gone, table.Flush())
}

// providerOf is the provider that the configuration names which is kept under name.
func providerOf(file, name string) string {
	t := &target{config: file, deployment: name, byName: true}
	data, err := t.read(streams{})
	if err != nil {
		return "(not readable)"
	}
	cfg, err := t.parse(data, nil)
	if err == nil {
		err = t.itsName(cfg)
	}
	if err != nil {
		return "(not valid)"
	}
	return cfg.Provider
}
