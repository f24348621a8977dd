// Package cli is Slipway's command line: its commands, their flags, signals and
// exit codes.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/progress"
)

// errUsage says that the command line is wrong.
type errUsage struct{ err error }

func (e errUsage) Error() string { return e.err.Error() }

// command is one of Slipway's commands.
type command struct {
	short string // one line for the overview
	args  string // what follows the flags, for the usage line
	long  string // more about it, for its help
	// flags declares the command's flags and returns what runs it.
	flags  func(*pflag.FlagSet) func(ctx context.Context, io streams, args []string) error
	hidden bool
	// stopping is what the first interrupt says; empty: that the steps that run are
	// waited for.
	stopping string
}

// streams are the process's standard streams.
type streams struct {
	in  io.Reader
	out io.Writer
	err *progress.Screen
	// terminal is where a form is drawn: standard error; nil when that is no file.
	terminal *os.File
	version  string
	// stop is closed when the run shall end after the steps that run now.
	stop <-chan struct{}
}

// Run is the whole program, of this version; it returns the exit code.
func Run(ctx context.Context, version string, args []string, in io.Reader, out, errw io.Writer) int {
	if len(args) > 0 && args[0] == "step" {
		return runStep(ctx, args[1:], out, errw)
	}
	if isSession(args) {
		return runSession(args, errw)
	}
	cmds := commands()
	if len(args) == 0 || args[0] == "help" || args[0] == "-h" || args[0] == "--help" {
		overview(out, cmds)
		return int(fault.OK)
	}
	if args[0] == "--version" {
		args[0] = "version"
	}
	cmd, ok := cmds[args[0]]
	if !ok {
		fmt.Fprintf(errw, "slipway: there is no command %q%s\nSee slipway --help.\n", args[0], suggestion(args[0], cmds))
		return int(fault.Usage)
	}
	set := pflag.NewFlagSet("slipway "+args[0], pflag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.SortFlags = false
	do := cmd.flags(set)
	switch err := set.Parse(args[1:]); {
	case errors.Is(err, pflag.ErrHelp):
		usage(out, args[0], cmd, set)
		return int(fault.OK)
	case err != nil:
		fmt.Fprintf(errw, "slipway %s: %s\nSee slipway %s --help.\n", args[0], err, args[0])
		return int(fault.Usage)
	}
	screen := progress.Open(errw, progress.Terminal(errw, os.Getenv))
	defer screen.End() // also when this panics
	ctx, stop, release := interruptible(ctx, screen, cmp.Or(cmd.stopping, "stopping after the steps that run now"))
	defer release()
	ctx, finish := traced(ctx, "slipway "+args[0], screen)
	terminal, _ := errw.(*os.File)
	err := do(ctx, streams{in, out, screen, terminal, version, stop}, set.Args())
	finish(err)
	screen.End()
	return complain(errw, args[0], addressed(set), err)
}

// errInterrupted is the cause of a run that the second signal ended.
var errInterrupted = &fault.Fault{
	Code: pipeline.CodeCancelled, Class: fault.Cancelled, Op: "run", Err: errors.New("interrupted"),
	Fix: "run the same command again: finished steps are kept",
}

// interruptible returns a context that the second SIGINT or SIGTERM ends and a
// channel that the first one closes, which says what happens then.
func interruptible(ctx context.Context, errw io.Writer, stopping string) (context.Context, <-chan struct{}, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := make(chan struct{})
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	quit := make(chan struct{})
	go func() {
		select {
		case <-signals:
		case <-quit:
			return
		}
		fmt.Fprintf(errw, "slipway: %s; interrupt again to stop at once\n", stopping)
		close(stop)
		select {
		case <-signals:
			cancel(errInterrupted)
		case <-quit:
		}
	}()
	return ctx, stop, func() {
		signal.Stop(signals)
		close(quit)
		cancel(nil)
	}
}

// complain prints err with code and remedy, whose commands hint completes, and
// returns the exit code.
func complain(w io.Writer, name string, hint func(string) string, err error) int {
	if err == nil {
		return int(fault.OK)
	}
	if u, ok := errors.AsType[errUsage](err); ok {
		fmt.Fprintf(w, "slipway %s: %s\nSee slipway %s --help.\n", name, hint(u.Error()), name)
		return int(fault.Usage)
	}
	f, ok := errors.AsType[*fault.Fault](err)
	if !ok {
		f = &fault.Fault{Code: codeUncoded, Class: fault.Bug, Err: err, Fix: "report this together with the output above"}
	}
	fmt.Fprintf(w, "\nerror %s: %s\n", f.Code, err)
	if f.Fix != "" {
		fmt.Fprintf(w, "  remedy: %s\n", hint(f.Fix))
	}
	if f.Log != "" {
		fmt.Fprintf(w, "  log:    %s in the run's report %s\n", f.Log, hint("(slipway report, or dagger call report)"))
	}
	if _, known := explanations()[string(f.Code)]; known {
		fmt.Fprintf(w, "  more:   %s#%s\n", errorsPage, strings.ToLower(string(f.Code)))
	}
	return int(f.Class)
}

func overview(w io.Writer, cmds map[string]command) {
	fmt.Fprint(w, "Slipway installs and removes a Kubernetes-hosted platform.\n\nUsage:\n  slipway <command> [flags]\n\nCommands:\n")
	for _, name := range slices.Sorted(maps.Keys(cmds)) {
		if !cmds[name].hidden {
			fmt.Fprintf(w, "  %-12s %s\n", name, cmds[name].short)
		}
	}
	fmt.Fprint(w, `
Every command: slipway <command> --help.

Exit codes: 0 ok, 1 bug, 2 usage or configuration, 3 preflight, 4 step failed,
5 timed out, 6 locked, 7 cancelled.
`)
}

func usage(w io.Writer, name string, cmd command, set *pflag.FlagSet) {
	fmt.Fprintf(w, "%s.\n\nUsage:\n  slipway %s\n", cmd.short, strings.TrimSpace(name+" [flags] "+cmd.args))
	if cmd.long != "" {
		fmt.Fprintf(w, "\n%s\n", cmd.long)
	}
	if text := set.FlagUsages(); text != "" {
		fmt.Fprintf(w, "\nFlags:\n%s", text)
	}
}

// suggestion is the known command that shares the longest beginning with name.
func suggestion(name string, cmds map[string]command) string {
	best, shared := "", 1
	for _, c := range slices.Sorted(maps.Keys(cmds)) {
		n := 0
		for n < len(c) && n < len(name) && c[n] == name[n] {
			n++
		}
		if n > shared && !cmds[c].hidden {
			best, shared = c, n
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}
