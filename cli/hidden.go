package cli

import (
	"context"
	"math"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/containers/daggercli"
	"github.com/slipway-sh/slipway/containers/registries"
	"github.com/slipway-sh/slipway/containers/tunnel"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/incontainer"
	"github.com/slipway-sh/slipway/stages/step"
)

// The commands that this program runs in containers, and in place of the dagger CLI.

func newStep(p *Program) *cobra.Command {
	return &cobra.Command{
		Use: "step", Hidden: true, DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return console.Exit(step.Main(cmd.Context(), p.Steps(p.Stores), args, cmd.OutOrStdout(), cmd.ErrOrStderr()))
		},
	}
}

func newSession() *cobra.Command {
	return &cobra.Command{
		Use: "session", Hidden: true, DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !daggercli.Shielded() {
				return noSuchCommand(cmd.Root(), cmd.Name())
			}
			return console.Exit(daggercli.Run(append([]string{cmd.Name()}, args...), cmd.ErrOrStderr()))
		},
	}
}

func newForward() *cobra.Command {
	return &cobra.Command{
		Use: "forward SOCKET HOST", Hidden: true,
		Args: usage.Takes(2, 2, "give: SOCKET HOST"),
		RunE: console.Run("", func(ctx context.Context, _ console.Streams, args []string) error {
			return tunnel.Answer(ctx, args[0], args[1])
		}),
	}
}

func newProbeRegistry() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: containers.ProbeCommand + " URL", Hidden: true, Args: usage.Takes(1, 1, "give: URL, of an image by digest"),
		RunE: console.Run("", func(ctx context.Context, io console.Streams, args []string) error {
			err := registries.Probe(ctx, args[0], file, http.DefaultTransport)
			containers.WriteFault(io.Err, err)
			return err
		}),
	}
	cmd.Flags().StringVar(&file, "registry-auth", "", "file as docker's config.json with the account")
	return cmd
}

func newMask() *cobra.Command {
	var m incontainer.Mask
	cmd := &cobra.Command{
		Use: containers.MaskCommand + " -- COMMAND [ARG…]", Hidden: true, Args: usage.Takes(1, math.MaxInt, "give: COMMAND, and its arguments"),
		RunE: func(cmd *cobra.Command, args []string) error {
			code, err := m.Run(args, cmd.OutOrStdout(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return console.Exit(code)
		},
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().StringArrayVar(&m.Secrets, containers.MaskSecret, nil, "environment variable whose value is secret")
	cmd.Flags().StringVar(&m.Kubeconfig, containers.MaskKubeconfig, "", "file whose credentials are secret")
	return cmd
}

func newDryRun(p *Program) *cobra.Command {
	v := incontainer.Planner{Stores: p.Stores, Render: p.Render}
	cmd := &cobra.Command{
		Use: "dry-run REQUEST RESULT", Hidden: true,
		Args: usage.Takes(2, 2, "give: REQUEST RESULT, two files"),
		RunE: console.Run("", func(ctx context.Context, io console.Streams, args []string) error {
			v.Steps = p.Steps(p.Stores)
			return v.Run(ctx, args[0], args[1], io.Err)
		}),
	}
	cmd.Flags().StringVar(&v.Dirs.State, "root", contract.StateDir, "the state volume")
	cmd.Flags().StringVar(&v.Dirs.Platform, "platform", contract.PlatformDir, "the platform release")
	return cmd
}

func newState(p *Program) *cobra.Command {
	var root, result string
	cmd := &cobra.Command{
		Use: "state ACTION [REQUEST [COMMAND…]]", Hidden: true, Args: usage.Takes(1, math.MaxInt, "give: ACTION, and what it works with as JSON"),
		RunE: console.Run("", func(ctx context.Context, io console.Streams, args []string) error {
			return incontainer.WithState(ctx, root, p.Stores, io.Err, func(s *incontainer.State) error {
				return s.Answer(ctx, args, result, io.Stop)
			})
		}),
	}
	cmd.Flags().StringVar(&root, "root", contract.StateDir, "the state volume")
	cmd.Flags().StringVar(&result, "result", contract.ResultFile, "file for the answer")
	return cmd
}
