// Package deployment has the flags of commands on a deployment, and makes a conductor of them.
package deployment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/user"
	"slices"
	"strings"

	"dagger.io/dagger"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/images"
	"github.com/slipway-sh/slipway/cli/internal/secrets"
	"github.com/slipway-sh/slipway/cli/internal/session"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/conductor"
)

// Flags are those of every command that works on a deployment, by what they are about.
type Flags struct {
	Source  source.Source
	Images  images.Flags
	Secrets secrets.Flags
	Release source.Release
	verbose bool

	cmd *cobra.Command
}

// AddFlags declares the flags for cmd.
func (f *Flags) AddFlags(cmd *cobra.Command, p *source.Program) {
	f.cmd, f.Source.Program = cmd, p
	cmd.Flags().SortFlags = false
	f.add(cmd.Flags())
	source.CompleteName(cmd, "name")
}

func (f *Flags) add(set *pflag.FlagSet) {
	f.Source.AddFlags(set)
	f.Images.AddFlags(set)
	f.Secrets.AddFlags(set)
	f.Source.AddState(set)
	set.BoolVarP(&f.verbose, "verbose", "v", false, "show everything that the engine reports")
	usage.Group(set, usage.Deployment, "verbose")
	f.Release.AddID(set)
}

// Line is for the commands in messages.
func (f *Flags) Line() usage.Line { return usage.Line{Cmd: f.cmd, Stores: f.Source.Stores} }

// Deployment is a deployment in a session on the engine.
type Deployment struct {
	*conductor.Conductor
	Config  *config.Config
	Session *session.Session
	Images  *containers.Images
	Inputs  Inputs
	Line    usage.Line

	result *console.Result
}

// Conduct carries w out, and puts the record into the command's result.
func (d *Deployment) Conduct(ctx context.Context, w stages.Workflow) (record *report.Run, err error) {
	record, err = d.Conductor.Conduct(ctx, w)
	d.result.Run = record
	return record, err
}

// Run is what a command does with a deployment.
type Run struct {
	Lifetime session.Lifetime
	// Unpublished keeps a cluster that outlives the command off the ports of this machine.
	Unpublished bool
	// Workflow of a run that changes something; empty: none.
	Workflow string
	Prepare  Prepare
}

// Prepare completes the conductor's options for a run; nil: they are complete.
type Prepare func(ctx context.Context, io console.Streams, opts *conductor.Options, from Inputs) error

// Inputs are where a run finds what it is given.
type Inputs struct {
	Secrets  secrets.Source
	Anew     source.Anew
	Workflow string // of the run; empty: it changes nothing
}

// Do connects to the engine and calls do with the deployment, after all checks that need no engine.
func (f *Flags) Do(ctx context.Context, io console.Streams, run Run, do func(context.Context, *Deployment) error) error {
	if run.Workflow != "" {
		if f.verbose { // the engine's log leaves no room for a live display
			io.Err.Plain()
		}
		io.Err.Prepare()
	}
	f.Source.Release = f.Release.Known(f.Source.Path)
	cfg, err := f.Source.Load(io)
	if err != nil {
		return err
	}
	opts := conductor.Options{Config: cfg, Version: f.Source.Version, Stop: io.Stop, Flags: f.Line().Flags()}
	opts.User, opts.Host = whoAmI()
	provider, err := f.Source.Providers.Get(cfg.Provider)
	if err != nil {
		return err
	}
	environment, err := stages.EnvironmentOf(provider, stages.DeploymentOf(cfg))
	if err != nil {
		return err
	}
	if environment.External != nil && run.Workflow != "" {
		if err := f.Secrets.CheckKubeconfig(*environment.External); err != nil {
			return err
		}
	}
	pins, err := f.Images.Pins(cfg)
	if err == nil {
		err = f.Images.Check(ctx)
	}
	if err != nil {
		return err
	}
	s, err := session.Open(ctx, io, session.Options{
		Deployment: cfg.Global.Name, Lifetime: run.Lifetime, Workflow: run.Workflow,
		Unpublished: run.Unpublished, Args: f.args(), Stdin: f.Source.Stdin, Verbose: f.verbose,
	})
	if err != nil {
		return err
	}
	defer s.Close()

	opts.Client, opts.Provider, opts.Origin = s.Client, provider, s.Origin
	if s.Joined != nil {
		opts.Background = s.Joined.Node
	}
	if run.Workflow != "" {
		if opts.Engine, err = s.Client.Version(ctx); err != nil {
			return fmt.Errorf("ask the engine for its version: %w", err)
		}
	}
	opts.Begin, opts.Observe = io.Err.Begin, io.Err.Observe
	opts.Tools = pins.Versions()
	from := Inputs{Workflow: run.Workflow, Secrets: &secrets.Finder{Client: s.Client, Flags: f.Secrets}}
	if s.Joined != nil {
		from.Anew = s.Anew
	}
	opts.Secret = func(ref config.SecretRef) (*dagger.Secret, error) { return from.Secrets.Find(ctx, ref) }
	opts.Access = func(ctx context.Context, a providers.ExternalCluster) (*dagger.Secret, error) {
		return f.Secrets.Kubeconfig(ctx, a, from.Secrets)
	}
	if opts.State, err = stateOf(ctx, cfg, from.Secrets); err != nil {
		return err
	}
	opts.Warn = func(text string) { fmt.Fprintln(io.Err, "slipway: warning: "+text) }
	if opts.Images, err = f.Images.Open(ctx, s.Client, cfg, from.Anew != nil, pins, provider); err != nil {
		return err
	}
	if w := opts.Images.Warning; w != "" {
		opts.Warn(w)
	}
	if run.Prepare != nil {
		if err := run.Prepare(ctx, io, &opts, from); err != nil {
			return err
		}
	}
	if opts.Release != nil && run.Workflow != "" {
		if err := stages.CheckSteps(provider, cfg, opts.Release); err != nil {
			return err
		}
	}
	d := &Deployment{Config: cfg, Session: s, Images: opts.Images, Inputs: from, Line: f.Line(), result: io.Result}
	opts.Reproduce = d.reproduction
	if d.Conductor, err = conductor.New(opts); err != nil {
		return err
	}
	return do(ctx, d)
}

// args returns the flags that make a background process work on the same deployment.
func (f *Flags) args() []string {
	known := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(Flags).add(known)
	args := usage.Given(f.cmd.Flags(), func(name string) bool { return known.Lookup(name) != nil })
	if f.Source.Stored && !f.cmd.Flags().Changed("name") { // however it was chosen, this is it
		args = append(args, "--name="+f.Source.Deployment)
	}
	return args
}

// whoAmI is the user and host for the lock and the record.
func whoAmI() (name, host string) {
	name, host = "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
		if sudo := os.Getenv("SUDO_USER"); u.Uid == "0" && sudo != "" {
			name = sudo // two users who need root for the engine differ
		}
	}
	if usage.InModule() {
		name = "dagger call"
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return name, host
}

// stateOf is the location of the state, with its secrets. It reports all missing ones at once.
func stateOf(ctx context.Context, all *config.Config, from secrets.Source) (conductor.State, error) {
	cfg := all.State
	if cfg.URL == "" {
		return conductor.State{}, nil
	}
	url, err := store.Below(cfg.URL, all.Global.Name)
	if err != nil {
		return conductor.State{}, err
	}
	out := conductor.State{URL: url, Bucket: cfg.URL, Credentials: map[string]*dagger.Secret{}}
	var errs []error
	find := func(what string, ref config.SecretRef) *dagger.Secret {
		s, err := from.Find(ctx, ref)
		if err != nil {
			errs = append(errs, secrets.Missing("find "+what, err))
		}
		return s
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Credentials)) {
		out.Credentials[name] = find("state.credentials."+name, cfg.Credentials[name])
	}
	if cfg.Key != "" {
		out.Key = find("state.key", cfg.Key)
	}
	return out, errors.Join(errs...)
}

// reproduction returns the commands that pack a failed run and reproduce it: only the first if no install or
// upgrade has the failed step, none if the run was rejected.
func (d *Deployment) reproduction(record *report.Run) []string {
	if record.Outcome != report.Failed || record.Exit == fault.Usage || record.Workflow == config.Destroy {
		return nil
	}
	again := stages.Install()
	if record.Workflow == config.Upgrade {
		again = stages.Upgrade()
	}
	steps, err := d.Steps(again)
	if err != nil { // unknown whether another install has the step
		steps = nil
	}
	return reproduction(record, steps, d.Line)
}

func reproduction(record *report.Run, steps []string, line usage.Line) []string {
	id := fault.Quote(record.ID)
	pack, run := line.Command("save --run "+id+" --out run.tar.zst"), "slipway reproduce --package run.tar.zst"
	if usage.InModule() { // the module exports the file
		pack, run = line.Function("save --run "+id)+" export --path run.tar.zst", "dagger call reproduce --package-file run.tar.zst"
	}
	_, step := record.Failure()
	if step != "" && !strings.HasPrefix(step, report.HooksStage+"/") && !slices.Contains(steps, step) {
		return []string{pack}
	}
	return []string{pack, run}
}
