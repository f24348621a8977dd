package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/cli/internal/session"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/conductor"
)

type doctorOptions struct {
	deployment deployment.Flags
	format     console.Format
}

func newDoctor(p *Program) *cobra.Command {
	var o doctorOptions
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check what an install needs: configuration, bundle, engine, machine", Example: `  slipway doctor
  slipway doctor --config slipway.yaml --output json`,
		Long: `Check before there is a deployment what the preflight of an install checks: the configuration; the
bundle or lock, and its signature or digest; the engine; memory, disk, CPUs and kernel of its machine;
an existing cluster, if the configuration names one.

It changes nothing, and reports all problems at once. With an invalid configuration, it checks the
rest with the defaults. The exit code is 0, or 3 if there is a problem. slipway validate checks the
platform release, too.`,
		Args: usage.NoArgs, RunE: console.AtOnce(o.run),
	}
	o.deployment.AddFlags(cmd, p)
	o.format.AddFlag(cmd.Flags())
	return cmd
}

// diagnosis is what slipway doctor finds. What has a problem is missing.
type diagnosis struct {
	Configuration string `json:"configuration,omitempty"` // deployment and provider
	Images        string `json:"images,omitempty"`        // digest of all that the bundle or the lock names
	Engine        string `json:"engine,omitempty"`        // its version
	conductor.Checkup
	Problems []problem `json:"problems"`
}

type problem struct {
	Code  fault.Code `json:"code,omitempty"`
	Error string     `json:"error"`
	Fix   string     `json:"fix,omitempty"`
}

func (o *doctorOptions) run(ctx context.Context, io console.Streams, _ []string) error {
	var found diagnosis
	err := o.check(ctx, io, &found)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	all, ok := errors.AsType[console.Several](err)
	if !ok && err != nil {
		all = console.Several{err}
	}
	found.Problems = []problem{}
	for _, err := range all {
		p := problem{Error: err.Error()}
		if f, ok := errors.AsType[*fault.Fault](err); ok {
			p.Code, p.Fix = f.Code, f.Fix
		}
		found.Problems = append(found.Problems, p)
	}
	io.Err.End()
	if err := o.format.Print(io.Out, found, found.text); err != nil {
		return err
	}
	if err == nil {
		return nil
	}
	complain(io.Err, "slipway doctor", o.deployment.Line(), err)
	return console.Exit(fault.Preflight)
}

// check returns all problems. It skips what depends on something that has one.
func (o *doctorOptions) check(ctx context.Context, io console.Streams, found *diagnosis) error {
	f := &o.deployment
	f.Source.Release = f.Release.Known(f.Source.Path)
	cfg, invalid := f.Source.Load(io)
	if invalid == nil {
		found.Configuration = fmt.Sprintf("deployment %s on %s", cfg.Global.Name, cfg.Provider)
	} else {
		f.Source.Default()
		var err error
		if cfg, err = f.Source.Load(io); err != nil {
			return console.Together(invalid, err)
		}
	}
	_, noImages := f.Images.Pins(cfg)
	if noImages == nil {
		noImages = f.Images.Check(ctx)
	}
	noEngine := o.engine(ctx, io, cfg.Global.Name, found)
	var unmet error
	if noImages == nil && noEngine == nil {
		unmet = f.Do(ctx, io, deployment.Run{}, func(ctx context.Context, d *deployment.Deployment) (err error) {
			found.Images = d.Images.Digest
			found.Checkup, err = d.Checkup(ctx)
			return err
		})
	}
	return console.Together(invalid, noImages, noEngine, unmet)
}

func (o *doctorOptions) engine(ctx context.Context, io console.Streams, deployment string, found *diagnosis) error {
	s, err := session.Open(ctx, io, session.Options{Deployment: deployment})
	if err != nil {
		return err
	}
	defer s.Close()
	if found.Engine, err = s.Client.Version(ctx); err != nil {
		return fmt.Errorf("ask the engine for its version: %w", err)
	}
	return nil
}

func (d *diagnosis) text(w io.Writer) error {
	table := console.NewTable(w)
	for _, row := range [][2]string{{"configuration", d.Configuration}, {"images", d.Images}, {"engine", d.Engine}} {
		if row[1] != "" {
			fmt.Fprintf(table, "%s\t%s\n", row[0], row[1])
		}
	}
	if m := d.Machine; m != nil {
		fmt.Fprintf(table, "machine\t%s memory, %s free disk, %d CPUs, kernel %s\n", gib(m.MemoryBytes), gib(m.DiskBytes), m.CPUs, m.Kernel)
		for _, raised := range m.Raises {
			fmt.Fprintf(table, "sysctl\tan install raises %s\n", raised)
		}
	}
	if c := d.Cluster; c != nil {
		fmt.Fprintf(table, "cluster\tKubernetes %s at %s, storage class %s\n", c.Version, c.APIEndpoint, c.StorageClass)
	}
	if n := len(d.Problems); n > 0 {
		fmt.Fprintf(table, "problems: %d\n", n)
	} else {
		fmt.Fprintln(table, "no problems")
	}
	return table.Flush()
}

func gib(n int64) string { return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30)) }
