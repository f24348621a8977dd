// The bench compares Slipway with the plain shell script in install.sh and with helmfile:
// installs, upgrades and plans, on one machine, one after the other, in one run.
// docs/benchmarks.md says how it is measured. `make bench` runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

type settings struct {
	bundle  string
	rounds  int
	only    []string // names of contestants; none for all
	verbose bool
}

func parse(args []string, errw io.Writer) (settings, error) {
	var s settings
	set := flag.NewFlagSet("bench", flag.ContinueOnError)
	set.SetOutput(errw)
	set.StringVar(&s.bundle, "bundle", os.Getenv("SLIPWAY_BUNDLE"), "the bundle's directory (env SLIPWAY_BUNDLE)")
	set.IntVar(&s.rounds, "rounds", 2, "how often everything is measured; the table shows medians")
	only := set.String("only", "", "measure only these, separated by commas: "+strings.Join(names(), ", "))
	set.BoolVar(&s.verbose, "verbose", false, "show what the installers print")
	if err := set.Parse(args); err != nil {
		return s, err
	}
	if *only != "" {
		s.only = strings.Split(*only, ",")
	}
	unknown := slices.DeleteFunc(slices.Clone(s.only), func(name string) bool { return slices.Contains(names(), name) })
	switch {
	case set.NArg() > 0:
		return s, fmt.Errorf("unexpected argument %q", set.Arg(0))
	case s.rounds < 1:
		return s, fmt.Errorf("%d rounds are too few: give 1 or more", s.rounds)
	case len(unknown) > 0:
		return s, fmt.Errorf("there is no installer %q: give one or more of %s", unknown[0], strings.Join(names(), ", "))
	case s.bundle == "":
		return s, errors.New("no bundle: give --bundle DIR, or run make bench")
	}
	var err error
	s.bundle, err = filepath.Abs(s.bundle)
	return s, err
}

// run is the whole program; it returns the exit code: 0 when everything that was
// measured worked, whether targets were met or not.
func run(args []string, out, errw io.Writer) int {
	s, err := parse(args, errw)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(errw, "bench:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := measure(ctx, s, out, errw); err != nil {
		fmt.Fprintln(errw, "bench:", err)
		return 1
	}
	return 0
}

// cleanLimit bounds the removal of what a measurement made, which also happens
// when the bench is interrupted.
const cleanLimit = 5 * time.Minute

func measure(ctx context.Context, s settings, out, errw io.Writer) (err error) {
	root, err := filepath.Abs(filepath.Join("..", "..")) // go run -C ci/test
	if err != nil {
		return fmt.Errorf("find the checkout: %w", err)
	}
	pins, err := readPins(s.bundle)
	if err != nil {
		return err
	}
	host, err := machine(ctx, pins.tools)
	if err != nil {
		return err
	}
	fmt.Fprint(out, host)
	log := io.Discard
	if s.verbose {
		log = errw
	}
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	gate, err := brokenAtTheEnd(dir)
	if err != nil {
		return err
	}
	contestants := s.choose(s.contestants(root, pins, gate, log))
	if err := ready(ctx, contestants, errw); err != nil {
		return err
	}
	var all samples
	err = rounds(ctx, contestants, s.rounds, &all, errw)
	if all.empty() {
		return err
	}
	if err != nil {
		fmt.Fprintln(out, "\nINCOMPLETE: not everything ran; these are the times until then")
	}
	fmt.Fprint(out, "\n", all.table(), "\n", all.verdict())
	return err
}

func ready(ctx context.Context, contestants []contestant, errw io.Writer) error {
	// Removing what an earlier bench left also warms the engine: images are
	// imported, the bundle is verified and the module is compiled, for all alike.
	fmt.Fprintln(errw, "bench: warming the engine")
	for _, c := range contestants {
		if err := c.Remove(ctx, c.name); err != nil {
			return fmt.Errorf("warm the engine: %w", err)
		}
	}
	return nil
}

func rounds(ctx context.Context, contestants []contestant, n int, all *samples, errw io.Writer) error {
	for round := range n {
		for i := range contestants {
			c := contestants[i]
			if round%2 == 1 { // the other way round, so that nobody is always first
				c = contestants[len(contestants)-1-i]
			}
			if err := c.measure(ctx, all, errw); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c contestant) measure(ctx context.Context, all *samples, errw io.Writer) (err error) {
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanLimit)
		defer cancel()
		if removal := c.Remove(clean, c.name); removal != nil {
			err = errors.Join(err, fmt.Errorf("remove the deployment %s: %w", c.name, removal))
		}
	}()
	for _, kind := range c.kinds {
		start := time.Now()
		if err := c.Install(ctx, c.name, kind); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("%s, %s: %w", c.title, kind, err)
		}
		took := time.Since(start)
		all.add(c.title, kind, took)
		fmt.Fprintf(errw, "bench: %s, %s: %.1f s\n", c.title, kind, took.Seconds())
	}
	return nil
}
