package cli

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/cli/internal/session"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/providers"
)

type clusterOptions struct {
	deployment       deployment.Flags
	keep, stop, lend bool
	unpublished      bool
	id               string
}

func newCluster(p *Program) *cobra.Command {
	var o clusterOptions
	cmd := &cobra.Command{
		Use: "cluster", Short: "Run the local cluster and publish its ports, until interrupted or in the background", Example: `  slipway cluster                  # until Ctrl-C
  slipway cluster --keep-cluster   # until slipway cluster --stop`,
		Args: noArgs, RunE: run("stopping the cluster", o.run),
	}
	addDeployment(cmd, cmd.Flags(), p, &o.deployment)
	set := cmd.Flags()
	addKeepCluster(set, &o.keep, &o.unpublished)
	set.BoolVar(&o.stop, "stop", false, "stop the cluster, in the background or in another terminal")
	set.BoolVar(&o.lend, "lend", false, "open a session for others, and run the cluster in it when one of them asks")
	_ = set.MarkHidden("lend")
	set.StringVar(&o.id, "id", "", "write the service's Dagger id to this file instead of running it")
	_ = set.MarkHidden("id")
	return cmd
}

func (o *clusterOptions) run(ctx context.Context, io console.Streams, _ []string) error {
	how := deployment.Run{Unpublished: o.unpublished}
	switch {
	case o.stop && o.keep:
		return usage.Errorf("give --keep-cluster or --stop, not both")
	case o.stop:
		cfg, err := o.deployment.Source.Load(io)
		if err != nil {
			return err
		}
		return session.Stop(ctx, io.Out, cfg.Global.Name)
	case o.keep:
		how.Lifetime = session.Background
	case o.id == "":
		how.Lifetime = session.Foreground
	}
	return o.deployment.Do(ctx, io, how, func(ctx context.Context, d *deployment.Deployment) error {
		ready := func(ports []int) { clusterReady(io, d, d.Conductor.ClusterBind(), ports) }
		switch {
		case o.id != "":
			text, err := d.ClusterID(ctx)
			return writeID(o.id, text, err)
		case o.keep:
			return d.Session.Publish(ctx, d.Conductor, ready, nil)
		}
		return d.Session.Lend(ctx, io, d.Conductor, o.lend, ready)
	})
}

// clusterReady says how to reach the cluster, whose API and ports are published on the address
// bind of this machine, the API's first; none are where nobody wants that.
func clusterReady(io console.Streams, d *deployment.Deployment, bind string, ports []int) {
	io.Err.End()
	w, joined := io.Out, d.Session.Joined
	where := ", in another terminal"
	if joined != nil {
		where = ""
	}
	if len(ports) == 0 {
		fmt.Fprintf(w, "the cluster of deployment %s is ready, on no port of this machine\n", d.Config.Global.Name)
		fmt.Fprintf(w, "  for kubectl%s: %s\n", where, d.Line.Command("toolchain")+" -- kubectl get pods -A")
	} else {
		fmt.Fprintf(w, "the cluster of deployment %s is ready: %s\n", d.Config.Global.Name, published(bind, ports[0]))
		for _, p := range ports[1:] {
			fmt.Fprintf(w, "  port %d of this machine is the load balancer's\n", p)
		}
		fmt.Fprintf(w, "  %s\n", whoReaches(bind))
		fmt.Fprintf(w, "  for kubectl%s: %s\n", where,
			d.Line.Command("kubeconfig --out kubeconfig")+" && export KUBECONFIG=$PWD/kubeconfig")
	}
	switch {
	case joined == nil:
		fmt.Fprintln(w, "Ctrl-C stops it.")
	case joined.Background:
		fmt.Fprintf(w, "It runs in the background (process %d, log %s), until: %s\n",
			joined.PID, joined.Log, d.Line.Command("cluster --stop"))
	default:
		fmt.Fprintf(w, "It runs in another terminal (process %d).\n", joined.PID)
	}
}

// published is the URL at which this machine reaches the API of a cluster whose ports are published
// on the address bind.
func published(bind string, port int) string {
	return "https://" + net.JoinHostPort(providers.NodeSpec{Bind: bind}.Host(), strconv.Itoa(port))
}

// whoReaches says who reaches what is published on an address of this machine.
func whoReaches(bind string) string {
	a, err := netip.ParseAddr(bind)
	switch {
	case err != nil || a.IsLoopback():
		return "only this machine reaches its ports (local.bind in the configuration: on which address they are published)"
	case a.IsUnspecified():
		return "its ports are published on all addresses of this machine: anyone who reaches one of them reaches the cluster"
	}
	return "anyone who reaches the address " + bind + " of this machine reaches the cluster"
}
