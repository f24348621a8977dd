// Slipway-node is the first program of the container that is the local
// cluster's node. Given the name of a Kubernetes component it is that
// component; as "slipway-node run" it starts and supervises etcd, containerd
// and those components on one volume; as "slipway-node wipe" it empties that
// volume.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
)

const usage = `usage:
  slipway-node run [flags]     start the node and keep it running
  slipway-node wipe [flags]    empty the data directory
  slipway-node <component> …   be kube-apiserver, kube-controller-manager,
                               kube-scheduler, kubelet or kube-proxy
`

func main() { os.Exit(start(os.Args[1:])) }

// start runs what the first argument names and returns the exit code: 2 for a
// wrong command line, 1 for anything that went wrong later.
func start(args []string) int {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return 2
	}
	if command, ok := components(context.Background())[args[0]]; ok {
		return runComponent(command, args[1:])
	}
	var err error
	switch args[0] {
	case "run":
		err = withSettings(args[1:], runNode)
	case "wipe":
		err = withSettings(args[1:], wipe)
	default:
		fmt.Fprintf(os.Stderr, "slipway-node: unknown command %q\n%s", args[0], usage)
		return 2
	}
	if err == nil || errors.Is(err, pflag.ErrHelp) {
		return 0
	}
	fmt.Fprintf(os.Stderr, "slipway-node: %v\n", err)
	if errors.Is(err, errUsage) {
		return 2
	}
	return 1
}

// withSettings parses the flags and calls f with a context that the first
// SIGTERM or SIGINT cancels.
func withSettings(args []string, f func(context.Context, settings) error) error {
	s, err := parseSettings(args)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return f(ctx, s)
}
