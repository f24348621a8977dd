package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/cli/internal/module"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

type kubeconfigOptions struct {
	deployment deployment.Flags
	out        string
}

func newKubeconfig(p *Program) *cobra.Command {
	var o kubeconfigOptions
	cmd := &cobra.Command{Use: "kubeconfig", Short: "Print an administrator's kubeconfig", Example: `  slipway kubeconfig --out kubeconfig && export KUBECONFIG=$PWD/kubeconfig`, Args: noArgs, RunE: atOnce(o.run),
		Long: `Print an administrator's kubeconfig, or write it to a file with mode 0600.

For a local cluster it names the address of this machine on which slipway cluster publishes the
API: local.bind and local.apiPort of the configuration.`}
	addDeployment(cmd, cmd.Flags(), p, &o.deployment)
	cmd.Flags().StringVar(&o.out, "out", "-", "file to write; - is standard output")
	return cmd
}

func (o *kubeconfigOptions) run(ctx context.Context, io console.Streams, _ []string) error {
	return o.deployment.Do(ctx, io, deployment.Run{}, func(ctx context.Context, d *deployment.Deployment) error {
		api := apiServer(d)
		text, err := d.Kubeconfig(ctx, api)
		if err != nil {
			return err
		}
		if s := d.Session.Joined; api != "" && !module.Active() && (s == nil || s.Unpublished) {
			fmt.Fprintf(io.Err, "slipway: the cluster's ports are not published now; to publish them: %s\n", d.Line.Command("cluster --keep-cluster"))
		}
		if o.out == "-" {
			_, err = fmt.Fprint(io.Out, text)
			return err
		}
		if err := atomicfile.Write(o.out, []byte(text), 0o600); err != nil {
			return usage.Wrap(fmt.Errorf("write %s: %w", o.out, err))
		}
		return nil
	})
}

// modulePort is the port on which dagger call cluster up publishes the API.
const modulePort = 6443

// apiServer is the URL at which the caller's machine reaches the API of a cluster that Slipway
// runs, once its ports are published; empty for another cluster, whose kubeconfig has it.
func apiServer(d *deployment.Deployment) string {
	ports, err := d.ClusterPorts()
	switch {
	case err != nil:
		return ""
	case module.Active():
		return published("", modulePort)
	}
	return published(d.ClusterBind(), ports[0])
}
