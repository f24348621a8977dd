package main

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

// command is a command of the program, as `slipway commands` describes it.
type command struct {
	Use, Short, Long, Example string
	Flags                     []commandFlag
	Shared                    []commandFlag // those below it have them, too
	Commands                  []command
}

type commandFlag struct{ Name, Short, Usage, Type, Default, Implicit string }

// manual writes the man pages of a command and those below it into the folder dir.
func manual(of command, version string, at time.Time, dir string) error {
	header := &doc.GenManHeader{Section: "1", Date: &at, Source: "slipway " + version, Manual: "Slipway"}
	return doc.GenManTree(of.cobra(), header, dir)
}

// cobra is the command as its library has it.
func (c command) cobra() *cobra.Command {
	cmd := &cobra.Command{
		Use: c.Use, Short: c.Short, Long: c.Long, Example: c.Example, DisableAutoGenTag: true,
		Run: func(*cobra.Command, []string) {}, // it is no mere topic of help
	}
	for _, f := range c.Flags {
		f.addTo(cmd.Flags())
	}
	for _, f := range c.Shared {
		f.addTo(cmd.PersistentFlags())
	}
	for _, sub := range c.Commands {
		cmd.AddCommand(sub.cobra())
	}
	return cmd
}

func (f commandFlag) addTo(set *pflag.FlagSet) {
	set.VarPF(described{f}, f.Name, f.Short, f.Usage).NoOptDefVal = f.Implicit
}

// described is the value of a flag that is only described.
type described struct{ flag commandFlag }

// String is the default.
func (d described) String() string { return d.flag.Default }

// Set implements pflag.Value.
func (described) Set(string) error { return nil }

// Type implements pflag.Value.
func (d described) Type() string { return d.flag.Type }
