package cli

import (
	"context"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/containers/daggercli"
	"github.com/slipway-sh/slipway/containers/pullsecret"
	"github.com/slipway-sh/slipway/containers/tunnel"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/incontainer"
	"github.com/slipway-sh/slipway/stages/step"
)

// The commands that this program runs in containers, and in place of the dagger CLI.

func newStep(p *Program) *cobra.Command {
	return &cobra.Command{
		Use: "step", Hidden: true, DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return exit(step.Main(cmd.Context(), p.Steps(p.Stores), args, cmd.OutOrStdout(), cmd.ErrOrStderr()))
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
			return exit(daggercli.Run(append([]string{cmd.Name()}, args...), cmd.ErrOrStderr()))
		},
	}
}

func newForward() *cobra.Command {
	return &cobra.Command{
		Use: "forward SOCKET HOST", Hidden: true,
		Args: takes(2, 2, "give: SOCKET HOST"),
		RunE: run("", func(ctx context.Context, _ console.Streams, args []string) error {
			return tunnel.Answer(ctx, args[0], args[1])
		}),
	}
}

func newAskRegistry() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: containers.AskCommand + " URL", Hidden: true, Args: takes(1, 1, "give: URL, of an image by digest"),
		RunE: run("", func(ctx context.Context, io console.Streams, args []string) error {
			err := pullsecret.Probe(ctx, args[0], file, http.DefaultTransport)
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
		Use: containers.MaskCommand + " -- COMMAND [ARG…]", Hidden: true, Args: takes(1, math.MaxInt, "give: COMMAND, and its arguments"),
		RunE: func(cmd *cobra.Command, args []string) error {
			code, err := m.Run(args, cmd.OutOrStdout(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return exit(code)
		},
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().StringArrayVar(&m.Secrets, containers.MaskSecret, nil, "environment variable whose value is secret")
	cmd.Flags().StringVar(&m.Kubeconfig, containers.MaskKubeconfig, "", "file whose credentials are secret")
	return cmd
}

func newAwaitPods() *cobra.Command {
	return &cobra.Command{
		Use: "await-pods", Hidden: true, Args: noArgs,
		RunE: run("", func(ctx context.Context, io console.Streams, _ []string) error {
			return incontainer.AwaitPods(ctx, contract.KubeconfigFile, contract.NodePods, io.Err)
		}),
	}
}

func newVerify(p *Program) *cobra.Command {
	var v incontainer.Verify
	return inVolumes("verify PLAN RESULT", &v.Dirs.State, &v.Dirs.Platform, func(ctx context.Context, io console.Streams, args []string) error {
		v.Steps = p.Steps(p.Stores)
		return v.Run(ctx, args[0], args[1], io.Err)
	})
}

func newPreview(p *Program) *cobra.Command {
	v := incontainer.Preview{Stores: p.Stores, Render: p.Render}
	return inVolumes("preview REQUEST RESULT", &v.Dirs.State, &v.Dirs.Platform, func(ctx context.Context, io console.Streams, args []string) error {
		v.Steps = p.Steps(p.Stores)
		return v.Run(ctx, args[0], args[1], io.Err)
	})
}

// inVolumes is a command that reads a file and writes another one, beside the state volume and the
// platform release.
func inVolumes(use string, state, platform *string, do action) *cobra.Command {
	_, files, _ := strings.Cut(use, " ")
	cmd := &cobra.Command{Use: use, Hidden: true, Args: takes(2, 2, "give: "+files+", two files"), RunE: run("", do)}
	cmd.Flags().StringVar(state, "root", contract.StateDir, "the state volume")
	cmd.Flags().StringVar(platform, "platform", contract.PlatformDir, "the platform release")
	return cmd
}

type stateOptions struct {
	root, deployment string
	who              lock.Holder
	timeout          time.Duration
	port             int
	over, entry      string
	force            bool
}

func newState(p *Program) *cobra.Command {
	var o stateOptions
	sub := func(use string, least, most int, do func(ctx context.Context, io console.Streams, s *incontainer.State, args []string) error) *cobra.Command {
		return &cobra.Command{
			Use: use, Args: takes(least, most, "give: "+use),
			RunE: run("", func(ctx context.Context, io console.Streams, args []string) error {
				return incontainer.WithState(ctx, o.root, p.Stores, io.Err, func(s *incontainer.State) error {
					s.Entry = o.entry
					return do(ctx, io, s, append(args, ""))
				})
			}),
		}
	}
	type streams = console.Streams
	type state = *incontainer.State
	cmd := group("state", "",
		sub("keep FILE", 1, 1, func(ctx context.Context, _ streams, s state, args []string) error { return s.Keep(ctx, args[0]) }),
		sub("show FILE", 1, 1, func(ctx context.Context, _ streams, s state, args []string) error { return s.Show(ctx, args[0]) }),
		sub("report DIR [RUN]", 1, 2, func(ctx context.Context, _ streams, s state, args []string) error {
			return s.Report(ctx, args[0], args[1])
		}),
		sub("kubeconfig FILE", 1, 1, func(ctx context.Context, _ streams, s state, args []string) error { return s.Kubeconfig(ctx, args[0]) }),
		sub("open FILE", 1, 1, func(ctx context.Context, _ streams, s state, args []string) error {
			return s.Open(ctx, args[0], o.who.Run, o.deployment, o.over)
		}),
		sub("purge", 0, 0, func(ctx context.Context, _ streams, s state, _ []string) error { return s.Purge(ctx, o.who.Run) }),
		sub("hold", 0, 0, func(ctx context.Context, io streams, s state, _ []string) error {
			return s.Hold(ctx, io.Stop, o.who, o.timeout, o.port)
		}),
		sub("watch", 0, 0, func(ctx context.Context, _ streams, s state, _ []string) error { return s.Watch(ctx, o.who.Run) }),
		sub("wipe COMMAND [ARG…]", 1, 100, func(ctx context.Context, _ streams, s state, args []string) error {
			return s.Wipe(ctx, o.who.Run, args[:len(args)-1])
		}),
		sub("unlock FILE", 1, 1, func(ctx context.Context, _ streams, s state, args []string) error {
			return s.Unlock(ctx, args[0], o.who, o.force)
		}),
		sub("backups FILE [ID]", 1, 2, func(ctx context.Context, _ streams, s state, args []string) error {
			return s.Backups(ctx, args[0], args[1])
		}),
		sub("archive ID FILE", 2, 2, func(ctx context.Context, _ streams, s state, args []string) error {
			return s.Archive(ctx, args[1], args[0])
		}),
		sub("index FILE", 1, 1, func(_ context.Context, _ streams, _ state, args []string) error {
			return incontainer.Index(args[0], contract.IndexDir)
		}),
		sub("list FILE", 1, 1, func(ctx context.Context, _ streams, s state, args []string) error {
			return s.List(ctx, args[0], contract.StatesDir)
		}),
		sub("runs FILE [RUN]", 1, 2, func(ctx context.Context, _ streams, s state, args []string) error {
			return s.Runs(ctx, args[0], o.deployment, args[1])
		}),
	)
	cmd.Hidden = true
	set := cmd.PersistentFlags()
	set.StringVar(&o.root, "root", contract.StateDir, "the state volume")
	set.StringVar(&o.who.User, "user", "", "hold, unlock: who does it")
	set.StringVar(&o.who.Host, "host", "", "hold, unlock: on which machine")
	set.StringVar(&o.who.Run, "run", "", "all but keep, show, report, kubeconfig, unlock, backups, archive, index, list, runs: id of the run")
	set.StringVar(&o.who.Workflow, "workflow", "", "hold: of the run")
	set.StringVar(&o.deployment, "deployment", "", "runs, open: name of the deployment")
	set.StringVar(&o.entry, "entry", "", "open, purge: the deployment's file in the engine's index")
	set.StringVar(&o.over, "over", "", "open: what the run is to bring over what is installed, as JSON")
	set.DurationVar(&o.timeout, "patience", incontainer.DefaultLockTimeout, "hold: how long to wait for a holder that is alive")
	set.IntVar(&o.port, "port", containers.HoldPort, "hold: where to listen once the lock is held")
	set.BoolVar(&o.force, "force", false, "unlock: also when the holder is alive")
	return cmd
}
