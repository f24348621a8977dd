package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/cli/internal/release"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/deployments"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/pipeline/progress"
	"github.com/slipway-sh/slipway/stages"
)

// complete has a shell complete the values of a flag, which there is.
func complete(cmd *cobra.Command, flag string, values cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, values); err != nil {
		panic(err)
	}
}

// once completes one argument.
func once(values cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return values(cmd, args, begun)
	}
}

// found completes what find returns. A shell that completes shows no errors: there is
// nothing to complete then.
func found(how cobra.ShellCompDirective, find func(*cobra.Command) ([]cobra.Completion, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		values, err := find(cmd)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return values, how | cobra.ShellCompDirectiveNoFileComp
	}
}

// deploymentNames are the deployments with a stored configuration.
func deploymentNames() cobra.CompletionFunc {
	return found(cobra.ShellCompDirectiveDefault, func(*cobra.Command) ([]cobra.Completion, error) {
		folder, err := deployments.Default()
		if err != nil {
			return nil, err
		}
		return folder.Names()
	})
}

// errorCodes are the codes of errors, each with its cause.
func errorCodes() cobra.CompletionFunc {
	return found(cobra.ShellCompDirectiveDefault, func(*cobra.Command) (out []cobra.Completion, err error) {
		for code, text := range explanations() {
			cause, _, _ := strings.Cut(text, "\n")
			out = append(out, cobra.CompletionWithDesc(code, cause))
		}
		slices.Sort(out)
		return out, nil
	})
}

// stepNames are the stages and steps of an install with the configuration's provider.
func stepNames(s *source.Source, r *release.Flags) cobra.CompletionFunc {
	return found(cobra.ShellCompDirectiveDefault, func(*cobra.Command) (out []cobra.Completion, err error) {
		cfg, err := s.Load(silent(nil))
		if err != nil {
			return nil, err
		}
		provider, err := s.Providers.Get(cfg.Provider)
		if err != nil {
			return nil, err
		}
		found, err := r.Load(cfg, s.Path)
		if err != nil {
			return nil, err
		}
		all, err := stages.Steps(provider, cfg, found)
		for _, name := range all[config.Install] {
			stage, _, _ := strings.Cut(name, "/")
			out = append(out, stage, name)
		}
		slices.Sort(out)
		return slices.Compact(out), err
	})
}

// suiteNames are the suites of the configuration's release, and what can be done with its
// workloads.
func suiteNames(s *source.Source, r *release.Flags) cobra.CompletionFunc {
	return found(cobra.ShellCompDirectiveKeepOrder, func(*cobra.Command) ([]cobra.Completion, error) {
		cfg, err := s.Load(silent(nil))
		if err != nil {
			return nil, err
		}
		found, err := r.Load(cfg, s.Path)
		if err != nil {
			return nil, err
		}
		out := found.Suites()
		if len(found.Workloads) > 0 {
			out = append(out, platform.ReservedSuites()...)
		}
		return out, nil
	})
}

// completionLimit is how long the engine may take to list the runs.
const completionLimit = 10 * time.Second

// runIDs are the runs of the deployment, the newest first.
func runIDs(f *deployment.Flags) cobra.CompletionFunc {
	return found(cobra.ShellCompDirectiveKeepOrder, func(cmd *cobra.Command) (out []cobra.Completion, err error) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionLimit)
		defer cancel()
		err = f.Do(ctx, silent(ctx.Done()), deployment.Run{}, func(ctx context.Context, d *deployment.Deployment) error {
			runs, err := d.Runs(ctx)
			for _, r := range slices.Backward(runs) {
				out = append(out, cobra.CompletionWithDesc(r.ID, fmt.Sprintf("%s, %s", r.Workflow, r.Outcome)))
			}
			return err
		})
		return out, err
	})
}

// silent are streams that show nothing.
func silent(stop <-chan struct{}) console.Streams {
	return console.Streams{In: strings.NewReader(""), Out: io.Discard, Err: progress.Open(io.Discard, progress.Options{}), Stop: stop}
}
