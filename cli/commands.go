package cli

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/cli/internal/console"
)

// describedCommand is a command as ci/dev/release reads it, which makes man pages of it.
type describedCommand struct {
	Use      string             `json:"use"`
	Short    string             `json:"short"`
	Long     string             `json:"long,omitempty"`
	Example  string             `json:"example,omitempty"`
	Flags    []describedFlag    `json:"flags,omitempty"`
	Shared   []describedFlag    `json:"shared,omitempty"` // flags that the commands below it have, too
	Commands []describedCommand `json:"commands,omitempty"`
}

type describedFlag struct {
	Name     string `json:"name"`
	Short    string `json:"short,omitempty"`
	Usage    string `json:"usage"`
	Type     string `json:"type"`
	Default  string `json:"default,omitempty"`
	Implicit string `json:"implicit,omitempty"` // the value where none is given
}

// newCommands describes all commands but the hidden ones, without a library for man pages in
// the program.
func newCommands() *cobra.Command {
	cmd := &cobra.Command{Use: "commands", Hidden: true, Args: noArgs}
	cmd.RunE = atOnce(func(_ context.Context, io console.Streams, _ []string) error {
		return json.NewEncoder(io.Out).Encode(describe(cmd.Root()))
	})
	return cmd
}

func describe(cmd *cobra.Command) describedCommand {
	d := describedCommand{
		Use: cmd.Use, Short: cmd.Short, Long: cmd.Long, Example: cmd.Example,
		Flags: describeFlags(cmd.LocalNonPersistentFlags()), Shared: describeFlags(cmd.PersistentFlags()),
	}
	if !cmd.HasParent() {
		d.Long = cmd.Short + "\n" + exitCodes
	}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			d.Commands = append(d.Commands, describe(c))
		}
	}
	return d
}

func describeFlags(set *pflag.FlagSet) (all []describedFlag) {
	set.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Deprecated == "" {
			all = append(all, describedFlag{Name: f.Name, Short: f.Shorthand, Usage: f.Usage, Type: f.Value.Type(), Default: f.DefValue, Implicit: f.NoOptDefVal})
		}
	})
	return all
}
