package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"

	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/conductor"
)

// commands are Slipway's commands by name; `step` is beside them.
func commands() map[string]command {
	return map[string]command{
		"install":    {short: "Brings a platform up; again: converges, and changes nothing that holds", flags: installCommand},
		"destroy":    {short: "Removes the platform and its cluster and looks whether anything is left", flags: destroyCommand},
		"status":     {short: "Shows the deployment's steps and applications", flags: statusCommand},
		"report":     {short: "Writes the report of a run: report.html, report.json, junit.xml, summary.md, logs", flags: reportCommand},
		"kubeconfig": {short: "Prints the administrator's access to the cluster", flags: kubeconfigCommand},
		"cluster":    {short: "Runs the deployment's local cluster and publishes its ports, until interrupted or in the background", flags: clusterCommand, stopping: "stopping the cluster"},
		"toolchain":  {short: "Runs a command in the container in which every step runs", args: "-- COMMAND…", flags: toolchainCommand},
		"validate":   {short: "Checks a configuration; starts nothing", flags: validateCommand},
		"config":     {short: "Brings a configuration to the current version, or shows every value and where it comes from", args: "migrate|explain", flags: configCommand},
		"use":        {short: "Chooses the deployment that commands work on when none is named, or lists those that are kept", args: "[NAME]", flags: useCommand},
		"env":        {short: "Prints a configuration as variables for a shell, which evaluates them", long: envLong, flags: envCommand},
		"configure":  {short: "Makes a configuration: asks for it in a form, or takes the answers that are given", long: configureLong, flags: configureCommand, stopping: "stopping"},
		"schema":     {short: "Prints the configuration's JSON schema", flags: schemaCommand},
		"bundle":     {short: "Checks a bundle, or pushes it to a registry", args: "verify DIR | push DIR --to host[:port]/path", flags: bundleCommand, stopping: "stopping"},
		"lock":       {short: "Checks or completes the list of pinned tools and images", args: "verify|update", flags: lockCommand},
		"explain":    {short: "Shows what an error code means and what to do", args: "CODE", flags: explainCommand},
		"version":    {short: "Prints the version", flags: versionCommand},
		"runs":       {short: "Lists the runs of a deployment, or shows one with every attempt at its steps", args: "[show ID]", flags: runsCommand},
		"state":      {flags: stateCommand, hidden: true},
		"verify":     {flags: verifyCommand, hidden: true},
		"unlock":     {short: "Takes the deployment's lock away from a run that is gone", flags: unlockCommand},
	}
}

func installCommand(set *pflag.FlagSet) func(context.Context, streams, []string) error {
	t := targetFlags(set)
	platformFlags(set, t)
	tlsKey := set.String("tls-key", "", "file with the private key of a given certificate, PEM; replaces tls.key")
	wait := lockFlag(set)
	var sel pipeline.Select
	set.StringSliceVar(&sel.From, "from", nil, "run these steps and all that is not before them: stage or stage/step; what is left out must verify")
	set.StringSliceVar(&sel.To, "to", nil, "run these steps and all that they need")
	set.StringSliceVar(&sel.Only, "only", nil, "run only these steps")
	parallel := set.Int("parallel", 0, "how many steps may run at the same time; 0 is no limit")
	keep := set.Bool("keep-cluster", false, "leave the local cluster running in the background, whatever the outcome: the next run joins it; slipway cluster --stop ends it")
	return func(ctx context.Context, io streams, args []string) error {
		t.work = "install"
		if err := noArgs(args); err != nil {
			return err
		}
		if *parallel < 0 {
			return errUsage{fmt.Errorf("--parallel is %d; give 0 or more", *parallel)}
		}
		if *keep {
			t.keep = keepRun
		}
		return t.conduct(ctx, t.watched(io), func(c *conductor.Options) error {
			c.Parallel, c.Select, c.LockTimeout = *parallel, sel, *wait
			if err := t.release(ctx, c.Client, c); err != nil {
				return err
			}
			if err := c.Images.Check(ctx); err != nil {
				return err
			}
			var missing error
			c.Given, missing = givenSecrets(*c)
			return errors.Join(missing, t.tlsKey(c, *tlsKey))
		}, func(ctx context.Context, c *conductor.Conductor) error {
			record, err := c.Install(ctx)
			return t.kept(ctx, io, c, finish(io, record, err))
		})
	}
}

func destroyCommand(set *pflag.FlagSet) func(context.Context, streams, []string) error {
	t := targetFlags(set)
	wait := lockFlag(set)
	return func(ctx context.Context, io streams, args []string) error {
		t.work = "destroy"
		if err := noArgs(args); err != nil {
			return err
		}
		return t.conduct(ctx, t.watched(io), func(c *conductor.Options) error {
			c.LockTimeout = *wait
			return nil
		}, func(ctx context.Context, c *conductor.Conductor) error {
			record, err := c.Destroy(ctx)
			t.ends = t.ends || err == nil
			return finish(io, record, err)
		})
	}
}

// finish prints a run's summary on standard output, whatever its outcome.
func finish(io streams, record *report.Run, err error) error {
	io.err.End() // both streams may be the same terminal
	if record == nil {
		return err
	}
	return errors.Join(err, record.Summary(io.out))
}

func statusCommand(set *pflag.FlagSet) func(context.Context, streams, []string) error {
	t := targetFlags(set)
	output := set.StringP("output", "o", "text", `format: "text" or "json"`)
	return func(ctx context.Context, io streams, args []string) error {
		if err := noArgs(args); err != nil {
			return err
		}
		if *output != "text" && *output != "json" {
			return errUsage{fmt.Errorf("--output is %q; give text or json", *output)}
		}
		return t.conduct(ctx, io, nil, func(ctx context.Context, c *conductor.Conductor) error {
			status, err := c.Status(ctx)
			if err != nil {
				return err
			}
			if *output == "json" {
				return printJSON(io.out, status)
			}
			return status.Text(io.out)
		})
	}
}

func kubeconfigCommand(set *pflag.FlagSet) func(context.Context, streams, []string) error {
	t := targetFlags(set)
	output := set.StringP("output", "o", "-", "file to write with mode 0600; - is standard output")
	server := set.String("server", "", "server URL to write into it, such as https://127.0.0.1:6443")
	return func(ctx context.Context, io streams, args []string) error {
		if err := noArgs(args); err != nil {
			return err
		}
		if *server != "" && !isServer(*server) {
			return errUsage{fmt.Errorf("--server is %q; give https:// (or http://), a host and at most a port and a path, such as https://127.0.0.1:6443", *server)}
		}
		return t.conduct(ctx, io, nil, func(ctx context.Context, c *conductor.Conductor) error {
			text, err := c.Kubeconfig(ctx, *server)
			if err != nil {
				return err
			}
			if *output == "-" {
				_, err = fmt.Fprint(io.out, text)
				return err
			}
			return writeSecret(*output, text)
		})
	}
}

// isServer tells whether text is a URL that kubectl takes for a server's.
func isServer(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != "" &&
		u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

// writeSecret replaces a file by one that only its owner reads; a failure leaves
// what was there.
func writeSecret(file, text string) error {
	if err := atomicfile.Write(file, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}

func toolchainCommand(set *pflag.FlagSet) func(context.Context, streams, []string) error {
	t := targetFlags(set)
	id := set.String("id", "", "write the container's Dagger id to this file instead of running a command")
	_ = set.MarkHidden("id")
	return func(ctx context.Context, io streams, args []string) error {
		if *id == "" && len(args) == 0 {
			return errUsage{errors.New("give a command, such as: slipway toolchain -- kubectl get pods -A (for a shell: dagger call toolchain terminal)")}
		}
		return t.conduct(ctx, io, nil, func(ctx context.Context, c *conductor.Conductor) error {
			if *id != "" {
				text, err := c.ToolchainID(ctx)
				return writeID(*id, text, err)
			}
			text, err := c.Shell(ctx, args)
			fmt.Fprint(io.out, text)
			return err
		})
	}
}

func writeID(file, text string, err error) error {
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o600)
}

func validateCommand(set *pflag.FlagSet) func(context.Context, streams, []string) error {
	t := &target{}
	configurationFlags(set, t)
	platformFlags(set, t)
	return func(_ context.Context, io streams, args []string) error {
		if err := noArgs(args); err != nil {
			return err
		}
		cfg, err := t.load(io)
		if err != nil {
			return err
		}
		t.cfg = cfg
		release, err := t.releaseHere()
		if err == nil {
			_, err = withRelease(nil, cfg, release)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(io.out, "valid: deployment %s on %s, platform %s\n", cfg.Global.Name, cfg.Provider, cfg.Platform.Release)
		return nil
	}
}

func schemaCommand(*pflag.FlagSet) func(context.Context, streams, []string) error {
	return func(_ context.Context, io streams, args []string) error {
		if err := noArgs(args); err != nil {
			return err
		}
		text, err := config.Schema(providerRegistry().Settings())
		if err == nil {
			_, err = io.out.Write(text)
		}
		return err
	}
}

func versionCommand(*pflag.FlagSet) func(context.Context, streams, []string) error {
	return func(_ context.Context, io streams, args []string) error {
		if err := noArgs(args); err != nil {
			return err
		}
		fmt.Fprintln(io.out, "slipway "+io.version)
		return nil
	}
}

func noArgs(args []string) error {
	if len(args) == 0 {
		return nil
	}
	return errUsage{fmt.Errorf("unexpected argument %q", args[0])}
}

func printJSON(w io.Writer, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the output: %w", err)
	}
	_, err = fmt.Fprintln(w, string(text))
	return err
}
