// Package usage has the errors of a wrong command line, the headings of flags, and the commands in messages.
package usage

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/pipeline/store"
)

// Error is a mistake in the command line.
type Error struct{ err error }

// Errorf makes one.
func Errorf(format string, args ...any) error { return Error{fmt.Errorf(format, args...)} }

// Wrap makes one of err.
func Wrap(err error) error { return Error{err} }

func (e Error) Error() string { return e.err.Error() }

// Unwrap is what the flag's own code said.
func (e Error) Unwrap() error { return e.err }

// NoArgs rejects arguments.
func NoArgs(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return Errorf("unexpected argument %q", args[0])
}

// Takes rejects fewer arguments than least and more than most, with these words.
func Takes(least, most int, otherwise string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return Errorf("%s", otherwise)
		}
		return nil
	}
}

// The headings of flags that many commands have, in a command's help below its own flags.
const (
	Run        = "Run"
	Deployment = "Deployment"
	Images     = "Images and trust"
)

// Headings returns them in the order of help. A first reader needs images and trust last.
func Headings() []string { return []string{Run, Deployment, Images} }

const annotation = "heading"

// Group shows flags of set below a heading.
func Group(set *pflag.FlagSet, heading string, names ...string) {
	for _, name := range names {
		if err := set.SetAnnotation(name, annotation, []string{heading}); err != nil {
			panic(err)
		}
	}
}

// Heading returns the heading that a flag is shown below; empty for a command's own flags.
func Heading(f *pflag.Flag) string {
	if of := f.Annotations[annotation]; len(of) > 0 {
		return of[0]
	}
	return ""
}

// Given returns the flags of set that the command line has and keep accepts, as a command line has them.
func Given(set *pflag.FlagSet, keep func(name string) bool) (out []string) {
	set.Visit(func(f *pflag.Flag) {
		if keep(f.Name) {
			out = append(out, "--"+f.Name+"="+f.Value.String())
		}
	})
	return out
}

// EnvModule is set if the Dagger module runs this program, in a container without the caller's files and variables.
const EnvModule = "SLIPWAY_MODULE"

// InModule reports whether this program runs for the Dagger module.
func InModule() bool { return os.Getenv(EnvModule) != "" }

// Line is a command line, for commands that messages suggest. The zero value has no flags.
type Line struct {
	Cmd    *cobra.Command
	Stores map[string]store.Opener // of buckets; see flags
}

// Command returns a command of slipway, such as "status --live", with the flags of l that it knows and lacks.
func (l Line) Command(command string) string {
	return "slipway " + command + l.flags(func(name string) bool {
		return l.knows(command, name) && !strings.Contains(command, "--"+name+" ")
	})
}

// Function is Command for a function of the Dagger module, whose --state comes before its name.
func (l Line) Function(function string) string {
	isState := func(name string) bool { return name == "state" }
	name, rest, _ := strings.Cut(function, " ")
	after := l.flags(func(name string) bool { return !isState(name) })
	return strings.TrimSuffix("dagger call"+l.flags(isState)+" "+name+after+" "+rest, " ")
}

// Remedy returns fix with the flags of l that all commands of slipway in it have.
func (l Line) Remedy(fix string) string {
	if l.Cmd == nil {
		return fix
	}
	found := commands.FindAllStringSubmatch(fix, -1)
	flags := l.flags(func(name string) bool {
		return !slices.ContainsFunc(found, func(command []string) bool { return !l.knows(command[1], name) })
	})
	return report.WithFlags(fix, strings.TrimPrefix(flags, " "))
}

// commands are those of slipway in a text, and the words behind each.
var commands = regexp.MustCompile(`\bslipway ([a-z -]+)`)

// Flags are the flags that other commands need to work on what l works on: "--name dev".
func (l Line) Flags() string {
	return strings.TrimPrefix(l.flags(func(string) bool { return true }), " ")
}

// knows reports whether a command of slipway has a flag.
func (l Line) knows(command, flag string) bool {
	other, _, _ := l.Cmd.Root().Find(strings.Fields(command))
	return other.Flag(flag) != nil
}

// flags returns the flags to keep that chose the deployment, each after a space. In the Dagger module, files are not
// the user's. A rejected URL is left out, because it may contain a password.
func (l Line) flags(keep func(name string) bool) string {
	if l.Cmd == nil {
		return ""
	}
	names := []string{"config", "name", "state"}
	if !InModule() {
		names = []string{"config", "name", "platform", "bundle", "bundle-digest", "bundle-key", "lock", "registry", "registry-auth", "state", "secrets"}
	}
	var out strings.Builder
	for _, name := range names {
		f := l.Cmd.Flags().Lookup(name)
		if f == nil || !f.Changed || !keep(name) {
			continue
		}
		if name == "state" {
			if _, err := store.CheckURL(f.Value.String(), store.Options{Openers: l.Stores}); err != nil {
				continue
			}
		}
		out.WriteString(" --" + name + " " + fault.Quote(f.Value.String()))
	}
	return out.String()
}
