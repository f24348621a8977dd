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
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/config/deployments"
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

// A shell that completes shows no errors: there is nothing to complete then.

// deploymentNames are the deployments with a stored configuration.
func deploymentNames(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	folder, err := deployments.Default()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, err := folder.Names()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// errorCodes are the codes of errors, each with its first sentence.
func errorCodes(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var out []cobra.Completion
	for code, text := range explanations() {
		first, _, _ := strings.Cut(text, "\n")
		out = append(out, cobra.CompletionWithDesc(code, first))
	}
	slices.Sort(out)
	return out, cobra.ShellCompDirectiveNoFileComp
}

// stepNames are the stages and steps of the deployment's provider.
func stepNames(s *source.Source) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		cfg, err := s.Load(silent(nil))
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		provider, err := s.Providers.Get(cfg.Provider)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		all, err := stages.Steps(provider, cfg.Section(cfg.Provider))
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var out []cobra.Completion
		for _, name := range all["install"] {
			stage, _, _ := strings.Cut(name, "/")
			out = append(out, stage, name)
		}
		slices.Sort(out)
		return slices.Compact(out), cobra.ShellCompDirectiveNoFileComp
	}
}

// completionLimit is how long the engine may take to list the runs.
const completionLimit = 10 * time.Second

// runIDs are the runs of the deployment, the newest first.
func runIDs(f *deployment.Flags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionLimit)
		defer cancel()
		var out []cobra.Completion
		err := f.Do(ctx, silent(ctx.Done()), deployment.Run{}, func(ctx context.Context, d *deployment.Deployment) error {
			runs, err := d.Runs(ctx)
			for _, r := range slices.Backward(runs) {
				out = append(out, cobra.CompletionWithDesc(r.ID, fmt.Sprintf("%s, %s", r.Workflow, r.Outcome)))
			}
			return err
		})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// silent are streams that show nothing.
func silent(stop <-chan struct{}) console.Streams {
	return console.Streams{In: strings.NewReader(""), Out: io.Discard, Err: progress.Open(io.Discard, progress.Options{}), Stop: stop}
}
