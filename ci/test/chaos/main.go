// The chaos program disturbs real installs at random moments, lets each continue, and compares
// what comes out with an install that nobody disturbed. `make chaos` runs it.
//
// A round installs a deployment that is not there, does one thing to it, such as killing or
// stopping a process, and installs again. The things, or kinds, are listed in kinds.go and by
// --help. A round passes when
//   - the install has ended as it may,
//   - the next one has made the cluster and the recorded state those of the undisturbed install,
//   - no step ran again that had succeeded before and whose result still held,
//   - and the records of lock and journal are what docs/state.md promises: nothing of a run began
//     or was stored once another one had its lock, generations rise, and what a run has said to
//     have succeeded is there. Package history checks that.
//
// All that is random follows from the seed and the number of the round.
//
// What is installed is the reference platform on a local cluster, or what --platform and
// --config say. With provider existing the cluster is not Slipway's: only what the
// deployment has there is compared, and the engine that is killed must not be what that cluster
// runs on. Whoever installs must be allowed to read every kind of object.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is the whole program. It returns 0 when every round passed, 1 when one did
// not, 2 for a wrong command line.
func run(args []string, out, errw io.Writer) int {
	s, err := parse(args, errw)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(errw, "chaos:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := play(ctx, s, out); err != nil {
		fmt.Fprintln(errw, "chaos:", err)
		return 1
	}
	return 0
}
