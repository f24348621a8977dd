package workflow

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
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
	"github.com/slipway-sh/slipway/providers"
)

type clusterOptions struct {
	runFlags
	deployment deployment.Flags
	stop, lend bool
	id         string
}

// NewCluster is slipway cluster.
func NewCluster(p *source.Program) *cobra.Command {
	var o clusterOptions
	cmd := &cobra.Command{
		Use: "cluster", Short: "Run the local cluster and publish its ports, until interrupted or in the background", Example: `  slipway cluster                  # until Ctrl-C
  slipway cluster --keep-cluster   # until slipway cluster --stop`,
		Args: usage.NoArgs, RunE: console.Run("stopping the cluster", o.run),
	}
	o.deployment.AddFlags(cmd, p)
	set := cmd.Flags()
	o.addRun(set, "keep-cluster", "unpublished")
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
			return writeFile(o.id, text, err)
		case o.keep:
			return d.Session.Publish(ctx, d.Conductor, ready, nil)
		}
		return d.Session.Lend(ctx, io, d.Conductor, o.lend, ready)
	})
}

// clusterReady says how to reach the cluster and how to stop it. Its API, on the first of ports, and
// its load balancer are published on the address bind of this machine; without ports, nothing is.
func clusterReady(io console.Streams, d *deployment.Deployment, bind string, ports []int) {
	io.Err.End()
	w, name, kubectl := io.Out, d.Config.Global.Name, d.Line.Command("toolchain")+" -- kubectl get pods -A"
	if len(ports) == 0 {
		fmt.Fprintf(w, "the cluster of deployment %s is ready, on no port of this machine\n", name)
	} else {
		kubectl = d.Line.Command("kubeconfig --out kubeconfig") + " && export KUBECONFIG=$PWD/kubeconfig"
		fmt.Fprintf(w, "the cluster of deployment %s is ready: %s\n", name, apiURL(bind, ports[0]))
		for _, p := range ports[1:] {
			fmt.Fprintf(w, "  port %d of this machine is the load balancer's\n", p)
		}
		fmt.Fprintf(w, "  %s\n", whoReaches(bind))
	}
	switch joined := d.Session.Joined; {
	case joined == nil:
		fmt.Fprintf(w, "  for kubectl, in another terminal: %s\nCtrl-C stops it.\n", kubectl)
	case joined.Background:
		fmt.Fprintf(w, "  for kubectl: %s\nIt runs in the background (process %d, log %s), until: %s\n",
			kubectl, joined.PID, joined.Log, d.Line.Command("cluster --stop"))
	default:
		fmt.Fprintf(w, "  for kubectl: %s\nIt runs in another terminal (process %d).\n", kubectl, joined.PID)
	}
}

// apiURL is the URL of the API of a cluster that is published on the address bind.
func apiURL(bind string, port int) string {
	return "https://" + net.JoinHostPort(providers.LocalCluster{Bind: bind}.Host(), strconv.Itoa(port))
}

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

// NewKubeconfig is slipway kubeconfig.
func NewKubeconfig(p *source.Program) *cobra.Command {
	var out string
	cmd := deployment.Command(&cobra.Command{
		Use: "kubeconfig", Short: "Print an administrator's kubeconfig", Example: `  slipway kubeconfig --out kubeconfig && export KUBECONFIG=$PWD/kubeconfig`, Args: usage.NoArgs,
		Long: `Print an administrator's kubeconfig, or write it to a file with mode 0600.

For a local cluster, it has the address on which slipway cluster publishes the API: local.bind and
local.apiPort of the configuration.`,
	}, p, &deployment.Flags{}, func(ctx context.Context, io console.Streams, d *deployment.Deployment, _ []string) error {
		api := apiServer(d)
		text, err := d.Kubeconfig(ctx, api)
		if err != nil {
			return err
		}
		if s := d.Session.Joined; api != "" && !usage.InModule() && (s == nil || s.Unpublished) {
			fmt.Fprintf(io.Err, "slipway: the cluster's ports are not published now; to publish them: %s\n", d.Line.Command("cluster --keep-cluster"))
		}
		if out == "-" {
			_, err = fmt.Fprint(io.Out, text)
			return err
		}
		return writeFile(out, text, nil)
	})
	cmd.Flags().StringVar(&out, "out", "-", "file to write; - is standard output")
	return cmd
}

// modulePort is the port on which dagger call cluster up publishes the API.
const modulePort = 6443

// apiServer is the URL of a local cluster's published API; empty for another cluster, whose kubeconfig has it.
func apiServer(d *deployment.Deployment) string {
	ports, err := d.ClusterPorts()
	switch {
	case err != nil:
		return ""
	case usage.InModule():
		return apiURL("", modulePort)
	}
	return apiURL(d.ClusterBind(), ports[0])
}

// NewToolchain is slipway toolchain.
func NewToolchain(p *source.Program) *cobra.Command {
	var f deployment.Flags
	var id string
	cmd := deployment.Command(&cobra.Command{
		Use: "toolchain [flags] -- COMMAND…", Short: "Run a command in the container in which steps run", Example: `  slipway toolchain -- kubectl get pods -A`,
		DisableFlagsInUseLine: true, Args: func(_ *cobra.Command, args []string) error {
			if id == "" && len(args) == 0 {
				return usage.Errorf("give a command, such as: %s -- kubectl get pods -A (for a shell: dagger call toolchain terminal)", f.Line().Command("toolchain"))
			}
			return nil
		},
	}, p, &f, func(ctx context.Context, io console.Streams, d *deployment.Deployment, args []string) error {
		if id != "" {
			text, err := d.ToolchainID(ctx)
			return writeFile(id, text, err)
		}
		return exitWith(d.Shell(ctx, args, io.Out, io.Err))
	})
	cmd.Flags().StringVar(&id, "id", "", "write the container's Dagger id to this file instead of running a command")
	_ = cmd.Flags().MarkHidden("id")
	return cmd
}

// exitWith turns the exit code of a command in a container into ours.
func exitWith(code int, err error) error {
	if err == nil && code != 0 {
		return console.Exit(code)
	}
	return err
}

// writeFile writes a private file, unless err is set.
func writeFile(file, text string, err error) error {
	if err != nil {
		return err
	}
	if err := atomicfile.Write(file, []byte(text), 0o600); err != nil {
		return usage.Wrap(fmt.Errorf("write %s: %w", file, err))
	}
	return nil
}

// NewUnlock is slipway unlock.
func NewUnlock(p *source.Program) *cobra.Command {
	var force bool
	cmd := deployment.Command(&cobra.Command{Use: "unlock", Short: "Release the lock of a run that is gone", Example: `  slipway unlock --name shop`, Args: usage.NoArgs}, p, &deployment.Flags{},
		func(ctx context.Context, io console.Streams, d *deployment.Deployment, _ []string) error {
			r, err := d.Unlock(ctx, force)
			if err != nil {
				return err
			}
			had := ""
			if r.After != nil {
				had = fmt.Sprintf("; %s had the lock", r.After.Holder)
			}
			_, err = fmt.Fprintf(io.Text(), "deployment %s is not locked any more%s\n", d.Config.Global.Name, had)
			return err
		})
	cmd.Flags().BoolVar(&force, "force", false, "take the lock from a run that still gives signs of life")
	return cmd
}
