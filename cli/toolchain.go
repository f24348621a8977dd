package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

type toolchainOptions struct {
	deployment deployment.Flags
	id         string
}

func newToolchain(p *Program) *cobra.Command {
	var o toolchainOptions
	cmd := &cobra.Command{
		Use: "toolchain [flags] -- COMMAND…", Short: "Run a command in the container in which steps run", Example: `  slipway toolchain -- kubectl get pods -A`,
		DisableFlagsInUseLine: true, RunE: atOnce(o.run),
	}
	addDeployment(cmd, cmd.Flags(), p, &o.deployment)
	cmd.Flags().StringVar(&o.id, "id", "", "write the container's Dagger id to this file instead of running a command")
	_ = cmd.Flags().MarkHidden("id")
	return cmd
}

func (o *toolchainOptions) run(ctx context.Context, io console.Streams, args []string) error {
	if o.id == "" && len(args) == 0 {
		return usage.Errorf("give a command, such as: %s -- kubectl get pods -A (for a shell: dagger call toolchain terminal)", o.deployment.Line().Command("toolchain"))
	}
	return o.deployment.Do(ctx, io, deployment.Run{}, func(ctx context.Context, d *deployment.Deployment) error {
		if o.id != "" {
			text, err := d.ToolchainID(ctx)
			return writeID(o.id, text, err)
		}
		code, err := d.Shell(ctx, args, io.Out, io.Err)
		if err == nil && code != 0 {
			err = exit(code)
		}
		return err
	})
}

func writeID(file, text string, err error) error {
	if err != nil {
		return err
	}
	if err := atomicfile.Write(file, []byte(text), 0o600); err != nil {
		return usage.Wrap(err)
	}
	return nil
}
