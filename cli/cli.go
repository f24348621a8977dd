// Package cli is Slipway's command line: a file for the commands on one thing, or a package below it, with their flags and
// what they do.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/cli/matrix"
	"github.com/slipway-sh/slipway/cli/supply"
	"github.com/slipway-sh/slipway/cli/workflow"
	"github.com/slipway-sh/slipway/config/document"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/redact"
)

// Program is what an installer consists of besides its commands: its Version, the digest of its sources (Source),
// its Providers, its Stores by the scheme of their URLs, and what stages/incontainer has (Steps, Contents, Render).
type Program = source.Program

// Unversioned is the version of a program that was built without one.
const Unversioned = "dev"

// version tells programs without a version apart by their sources: "dev-1a2b3c4d5e6f".
func version(p Program) string {
	if digest := strings.TrimPrefix(p.Source, "sha256:"); p.Version == Unversioned && digest != "" {
		return p.Version + "-" + digest[:min(len(digest), 12)]
	}
	return p.Version
}

// Run runs a command line and returns the exit code.
func Run(ctx context.Context, p Program, args []string, in io.Reader, out, errw io.Writer) (code int) {
	defer func() {
		if v := recover(); v != nil { // Go's own exit code would mean a wrong command line
			fmt.Fprintf(errw, "\nerror %s: panic: %s\n%s", fault.CodeBug, redact.External(fmt.Sprint(v)), debug.Stack())
			code = int(fault.Bug)
		}
	}()
	log.SetOutput(library{errw})
	p.Version = version(p)
	root := newRoot(ctx, &p)
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errw)
	cmd, err := root.ExecuteC()
	return complain(errw, cmd.CommandPath(), usage.Line{Cmd: cmd, Stores: p.Stores}, err)
}

// library cleans what kustomize and Helm log: they quote a release and its values.
type library struct{ io.Writer }

func (l library) Write(b []byte) (int, error) {
	_, err := io.WriteString(l.Writer, redact.External(string(b)))
	return len(b), err
}

// newRoot is `slipway`, with all its commands.
func newRoot(ctx context.Context, p *Program) *cobra.Command {
	root := &cobra.Command{
		Use: "slipway", Short: "Slipway installs, upgrades, tests and removes a platform on Kubernetes.",
		Version: p.Version, SilenceErrors: true, SilenceUsage: true, SuggestionsMinimumDistance: 2,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return noSuchCommand(cmd, args[0])
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetContext(ctx)
	root.Flags().Bool("version", false, "print the version")
	root.SetVersionTemplate("slipway {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if cmd.HasSubCommands() && cmd.Flags().NArg() > 0 { // the flag of an unknown command
			return cmd.ValidateArgs(cmd.Flags().Args())
		}
		return usage.Wrap(meantFlag(cmd, err))
	})
	root.SetUsageFunc(inGroups(root.UsageFunc()))
	root.CompletionOptions.DisableNoDescFlag = true
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		help(cmd, args)
		if !cmd.HasParent() {
			fmt.Fprint(cmd.OutOrStdout(), exitCodes)
		}
	})
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Install and change", []*cobra.Command{newConfigure(p), newValidate(p), workflow.NewPlan(p), workflow.NewInstall(p), workflow.NewUpgrade(p), workflow.NewRollback(p), workflow.NewDestroy(p), newUse()}},
		{"Look", []*cobra.Command{newList(p), newStatus(p), newRuns(p), newReport(p), newLogs(p), newBackups(p), newExplain()}},
		{"Debug", []*cobra.Command{newDoctor(p), newSave(p), workflow.NewReproduce(p), workflow.NewCluster(p), workflow.NewKubeconfig(p), workflow.NewToolchain(p), workflow.NewUnlock(p)}},
		{"Release", []*cobra.Command{
			group("platform", "Create a platform release, render it, or print its schema", newPlatformInit(), newPlatformRender(p), newPlatformSchema()),
			workflow.NewTest(p), matrix.NewCommand(p),
		}},
		{"Build and supply", []*cobra.Command{
			group("bundle", "List, check, extend, sign or push a bundle", supply.NewBundleList(), supply.NewBundleVerify(), supply.NewBundleAdd(p), supply.NewBundleSign(), supply.NewBundlePush()),
			group("lock", "Check the lock file of tools and images", supply.NewLockVerify(p)),
			group("config", "Migrate a configuration, or show where each value comes from", newConfigMigrate(p), newConfigExplain(p)),
			newEnv(p), newSchema(p), supply.NewClients(), newVersion(p),
		}},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
		for _, c := range g.commands {
			c.GroupID = g.title
			root.AddCommand(c)
		}
	}
	root.SetHelpCommandGroupID("Look")
	root.SetCompletionCommandGroupID("Build and supply")
	root.AddCommand( // hidden: for processes of Slipway, not for people
		newStep(p), newState(p), newDryRun(p), newProbeRegistry(), newMask(), newForward(), newSession(),
	)
	return root
}

// inGroups prints a command's own flags, then the common ones below headings.
func inGroups(own func(*cobra.Command) error) func(*cobra.Command) error {
	return func(cmd *cobra.Command) error {
		groups := map[string]*pflag.FlagSet{}
		for _, heading := range usage.Headings() {
			groups[heading] = pflag.NewFlagSet("", pflag.ContinueOnError)
			groups[heading].SortFlags = false
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if group := groups[usage.Heading(f)]; group != nil && !f.Hidden {
				group.AddFlag(f)
				f.Hidden = true
			}
		})
		err := own(cmd)
		for _, heading := range usage.Headings() {
			group := groups[heading]
			group.VisitAll(func(f *pflag.Flag) { f.Hidden = false })
			if err == nil && group.HasFlags() {
				_, err = fmt.Fprintf(cmd.OutOrStderr(), "\n%s:\n%s", heading, group.FlagUsages())
			}
		}
		return err
	}
}

const exitCodes = `
Exit codes: 0 ok, 1 bug, 2 usage or configuration, 3 preflight, 4 step failed,
5 timed out, 6 locked, 7 cancelled.
`

// noSuchCommand is the error for an unknown command, with a similar name.
func noSuchCommand(cmd *cobra.Command, name string) error {
	text := fmt.Sprintf("there is no command %q", name)
	if names := cmd.SuggestionsFor(name); len(names) > 0 {
		text += fmt.Sprintf("; did you mean %q?", names[0])
	}
	return usage.Errorf("%s", text)
}

// meantFlag adds a similar name to the error for an unknown flag.
func meantFlag(cmd *cobra.Command, err error) error {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok || len(unknown.GetSpecifiedName()) < 2 {
		return err
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	if name := document.Nearest(unknown.GetSpecifiedName(), names); name != "" {
		return fmt.Errorf("%w; did you mean --%s?", err, name)
	}
	return err
}

// group is a command that only has commands below it.
func group(name, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: name, Short: short}
	cmd.AddCommand(commands...)
	var names []string
	for _, c := range commands {
		names = append(names, c.Name())
	}
	choice := strings.Join(names, " or ")
	cmd.SuggestFor = names
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage.Errorf("give %s", choice)
		}
		return usage.Errorf("there is no %q; give %s", args[0], choice)
	}
	cmd.RunE = func(*cobra.Command, []string) error { return nil } // Args refuses all
	return cmd
}
