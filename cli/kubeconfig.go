package cli

import (
	"context"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/cli/internal/output"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

type kubeconfigOptions struct {
	deployment     deployment.Flags
	output, server string
}

func newKubeconfig(p *Program) *cobra.Command {
	var o kubeconfigOptions
	cmd := &cobra.Command{Use: "kubeconfig", Short: "Print an administrator's kubeconfig", Example: `  slipway kubeconfig --server https://127.0.0.1:6443 --output kubeconfig`, Args: noArgs, RunE: atOnce(o.run)}
	addDeployment(cmd, cmd.Flags(), p, &o.deployment)
	output.VarP(cmd.Flags(), &o.output, "output", "o", "-", "file to write with mode 0600; - is standard output")
	cmd.Flags().StringVar(&o.server, "server", "", "server URL to write into it, such as https://127.0.0.1:6443")
	return cmd
}

func (o *kubeconfigOptions) run(ctx context.Context, io console.Streams, _ []string) error {
	if o.server != "" && !isServer(o.server) {
		return usage.Errorf("--server is %q; give https:// (or http://), a host and at most a port and a path, such as https://127.0.0.1:6443", o.server)
	}
	return o.deployment.Do(ctx, io, deployment.Run{}, func(ctx context.Context, d *deployment.Deployment) error {
		text, err := d.Kubeconfig(ctx, o.server)
		if err != nil {
			return err
		}
		if o.output == "-" {
			_, err = fmt.Fprint(io.Out, text)
			return err
		}
		if err := atomicfile.Write(o.output, []byte(text), 0o600); err != nil {
			return usage.Wrap(fmt.Errorf("write %s: %w", o.output, err))
		}
		return nil
	})
}

// isServer reports whether kubectl takes text for the URL of a server.
func isServer(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != "" &&
		u.User == nil && u.RawQuery == "" && u.Fragment == ""
}
