package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/stages/conductor"
)

// clusterCommand is `slipway cluster`: it keeps the cluster running, in front or
// in the background, and ends one that is.
func clusterCommand(set *pflag.FlagSet) func(context.Context, streams, []string) error {
	t := targetFlags(set)
	background := set.BoolP("background", "b", false, "leave it running in the background")
	stop := set.Bool("stop", false, "stop the one that runs, in the background or in another terminal")
	lend := set.Bool("lend", false, "open a session for others, and run the cluster in it when one of them asks")
	_ = set.MarkHidden("lend")
	id := set.String("id", "", "write the service's Dagger id to this file instead of running it")
	_ = set.MarkHidden("id")
	return func(ctx context.Context, io streams, args []string) error {
		if err := noArgs(args); err != nil {
			return err
		}
		switch {
		case *stop && *background:
			return errUsage{errors.New("give --background or --stop, not both")}
		case *stop:
			return t.stopCluster(ctx, io)
		case *background:
			t.keep = keepCluster
			return t.conduct(ctx, io, nil, func(ctx context.Context, c *conductor.Conductor) error {
				return t.kept(ctx, io, c, nil)
			})
		case *id == "":
			t.keep = keepHere
		}
		return t.conduct(ctx, io, nil, func(ctx context.Context, c *conductor.Conductor) error {
			if *id != "" {
				text, err := c.ClusterID(ctx)
				return writeID(*id, text, err)
			}
			return t.lend(ctx, io, c, *lend)
		})
	}
}

// clusterReady tells how to reach the cluster, whose API and ports are published.
func clusterReady(w io.Writer, t *target, ports []int) {
	const api = "https://127.0.0.1:6443"
	fmt.Fprintf(w, "the cluster of deployment %s is ready: %s\n", t.cfg.Global.Name, api)
	for _, p := range ports {
		fmt.Fprintf(w, "  port %d of this machine is the load balancer's\n", p)
	}
	where := ", in another terminal"
	if t.joined != nil {
		where = ""
	}
	fmt.Fprintf(w, "  for kubectl%s: %s\n", where,
		addressed(t.flags)("slipway kubeconfig --server "+api+" --output kubeconfig && export KUBECONFIG=$PWD/kubeconfig"))
	switch {
	case t.joined == nil:
		fmt.Fprintln(w, "Ctrl-C stops it.")
	case t.joined.Background:
		fmt.Fprintf(w, "It runs in the background (process %d, log %s), until: %s\n",
			t.joined.PID, t.joined.Log, addressed(t.flags)("slipway cluster --stop"))
	default:
		fmt.Fprintf(w, "It runs in another terminal (process %d).\n", t.joined.PID)
	}
}
