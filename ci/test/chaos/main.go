// The chaos program interrupts real installs at random moments, lets each
// continue, and compares what comes out with an install that nobody disturbed.
// `make chaos` runs it.
//
// A round installs a deployment that is not there, does one thing to it, and
// installs again until that succeeds. The things are:
//
//	conductor  SIGKILL to the program that drives the run
//	step       SIGKILL to a step's process, in its container
//	hold       SIGKILL to what holds the lock, while another install begins: the first must
//	           stop by itself, and the other go on once nothing works for the first any more
//	engine     SIGKILL to the Dagger engine, which is then started again
//	api        the API server stands still for 30 seconds; the install goes on by itself
//
// A round passes when the cluster and the recorded state are those of the
// undisturbed install, and no step ran again that had succeeded before and whose
// result still held.
//
// What is installed is the reference platform on a local cluster, or what --platform and
// --config say. With provider existing the cluster is not Slipway's: its API server
// is left alone, only what the deployment has there is compared, and the engine that is
// killed must not be what that cluster runs on. Whoever installs must be allowed to read
// every kind of object.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/slipway-sh/slipway/ci/test/slipway"
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

// cleanLimit bounds the removal of the deployment at the end, which also happens
// when the program is interrupted.
const cleanLimit = 5 * time.Minute

// play runs the reference and the rounds.
func play(ctx context.Context, s settings, out io.Writer) (err error) {
	end, err := slipway.OwnData()
	if err != nil {
		return err
	}
	defer end()
	if s.logs == "" {
		if s.logs, err = os.MkdirTemp("", "slipway-chaos-"); err != nil {
			return fmt.Errorf("make a directory for the logs: %w", err)
		}
	} else if err := os.MkdirAll(s.logs, 0o755); err != nil {
		return fmt.Errorf("make a directory for the logs: %w", err)
	}
	d := &deployment{
		Deployment: slipway.Deployment{Name: s.name, Bundle: s.bundle, Lock: s.lock, Root: s.root},
		config:     s.config, own: s.own, platform: s.platform, to: s.to,
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanLimit)
		defer cancel()
		if e := d.run(filepath.Join(s.logs, "clean.log"), d.destroy(ctx)); e != nil {
			err = errors.Join(err, fmt.Errorf("remove deployment %s: %w", s.name, e))
		}
	}()
	fmt.Fprintf(out, "chaos: %d rounds of %s, seed %d, logs in %s\n", s.rounds, strings.Join(s.kinds, ", "), s.seed, s.logs)

	reference, took, err := d.reference(ctx, filepath.Join(s.logs, "reference.log"))
	if err != nil {
		return fmt.Errorf("the undisturbed install: %w", err)
	}
	fmt.Fprintf(out, "reference: platform %s, %d facts of cluster and state, after %s\n", reference["platform"], len(reference), took.Round(100*time.Millisecond))

	random := rand.New(rand.NewPCG(s.seed, 0)) // moments, not secrets
	var failed []error
	for i := range s.rounds {
		r := round{
			deployment: d, kind: s.kinds[i%len(s.kinds)], reference: reference,
			log:    filepath.Join(s.logs, fmt.Sprintf("round-%02d", i+1)),
			moment: time.Duration((0.03 + 0.9*random.Float64()) * float64(took)),
		}
		began := time.Now()
		seen, err := r.play(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		verdict := "equal"
		if err != nil {
			verdict = "FAILED: " + err.Error()
			failed = append(failed, fmt.Errorf("round %d: %w", i+1, err))
		}
		fmt.Fprintf(out, "%2d/%d %-9s at %5.1fs %s; %d steps reused; %s: %s\n", i+1, s.rounds, r.kind,
			r.moment.Seconds(), seen.during, seen.reused, time.Since(began).Round(time.Second), verdict)
	}
	fmt.Fprintf(out, "%d of %d equal\n", s.rounds-len(failed), s.rounds)
	return errors.Join(failed...)
}
