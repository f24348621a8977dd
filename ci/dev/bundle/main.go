// Command bundle builds the bundle out of Go modules and Debian packages, keeps
// it outside the checkout, and checks it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"github.com/slipway-sh/slipway/ci/dev/build/console"
	"github.com/slipway-sh/slipway/ci/dev/build/gotool"
	"github.com/slipway-sh/slipway/ci/dev/build/store"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/fault"
)

const usage = `usage: go run -C ci/dev/bundle . <command>

  build [--arch ARCH] [--platform DIR]…
                build what has changed and print the bundle's folder,
                <cache>/bundle/<digest>, which <cache>/bundle/current links to,
                and the digest of its index, as the lines that .env gets; with
                what is on demand and the platform releases name, or the
                reference platform if none is given; no link leads to one of
                another architecture than this machine's
  pin [--arch ARCH]
                build the bundle and write the Debian packages of its images into
                containers/lock/lock.yaml, with their digests by apt's lists
  programs [--arch ARCH] [--platform DIR]…
                build the bundle and print the paths of its Go programs
  outdated [--arch ARCH]
                name the Debian packages in containers/lock/lock.yaml for which
                Debian has a security update

ARCH is amd64 or arm64, if not that of this machine.

<cache> is $SLIPWAY_CACHE, else $XDG_CACHE_HOME/slipway, else ~/.cache/slipway.
`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return report(ctx, command(ctx, args, stdout), stdout, stderr)
}

// report prints how a command ended and returns the exit code.
func report(ctx context.Context, err error, stdout, stderr io.Writer) int {
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		return int(fault.OK)
	case errors.Is(err, errUsage):
		fmt.Fprintf(stderr, "error: %v\n%s", err, usage)
		return int(fault.Usage)
	}
	return console.Exit(ctx, stderr, err)
}

var errUsage = errors.New("wrong usage")

func command(ctx context.Context, args []string, stdout io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("%w: a command is required", errUsage)
	}
	name, args := args[0], args[1:]
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	o := choice{arch: runtime.GOARCH}
	flags.StringVar(&o.arch, "arch", o.arch, "")
	flags.Func("platform", "", func(dir string) error {
		o.platforms = append(o.platforms, dir)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if _, ok := targets()[o.arch]; !ok {
		return fmt.Errorf("%w: there are no bundles for %s, only for %s", errUsage, o.arch, strings.Join(sortedNames(targets()), " and "))
	}
	switch name {
	case "build", "programs":
		if flags.NArg() > 0 {
			return fmt.Errorf("%w: %s takes no argument %q", errUsage, name, flags.Arg(0))
		}
		st, err := store.Open("")
		if err != nil {
			return err
		}
		made, err := build(ctx, st, o)
		if err != nil {
			return err
		}
		if name == "build" {
			fmt.Fprintf(stdout, "BUNDLE=%s\nbundleDigest=%s\n", made.dir, made.digest)
			return nil
		}
		for _, program := range sortedNames(made.programs) {
			fmt.Fprintln(stdout, made.programs[program])
		}
		return nil
	case "pin":
		return pin(ctx, o, stdout)
	case "outdated":
		return outdated(ctx, o)
	case "help":
		return flag.ErrHelp
	}
	return fmt.Errorf("%w: there is no command %q", errUsage, name)
}

// built is a bundle in a store: its folder, the digest of its index, and the paths of its Go
// programs by name.
type built struct {
	dir, digest string
	programs    map[string]string
}

func build(ctx context.Context, st *store.Store, o choice) (built, error) {
	source, err := gotool.Checkout()
	if err != nil {
		return built{}, err
	}
	l, err := lock.Load()
	if err != nil {
		return built{}, err
	}
	without, err := o.choose(l)
	if err != nil {
		return built{}, err
	}
	release, err := prepare(ctx, l, o.arch, func(text string) { fmt.Fprintln(os.Stderr, text) })
	if err != nil {
		return built{}, err
	}
	r, err := loadRecipes()
	if err != nil {
		return built{}, err
	}
	cmds, sources, err := r.commands(ctx, source, l, o.arch, without)
	if err != nil {
		return built{}, err
	}
	added, err := bundle.OwnAdditions()
	if err != nil {
		return built{}, err
	}
	b := &builder{source: source, sources: sources, arch: o.arch, lock: l, recipes: r, store: st, added: added}
	// One more for the base of all layers, and one for what is made of the parts.
	b.report = console.NewReporter(os.Stderr, len(cmds)+len(r.additions(l))+2)
	if err := b.parts(ctx, cmds, release); err != nil {
		return built{}, err
	}
	dir, digest, err := b.finish(ctx, without)
	if err != nil {
		return built{}, err
	}
	b.report.Finish("bundle")
	return built{dir, digest, b.built}, nil
}

// finish makes the images and puts the bundle together.
func (b *builder) finish(ctx context.Context, without []string) (dir, digest string, err error) {
	err = b.part(ctx, "images", "images and archives", "packing", func() (hit bool, err error) {
		parts, images, err := b.content(ctx, without)
		if err == nil {
			dir, digest, hit, err = b.place(ctx, parts, images)
		}
		return hit, err
	})
	return dir, digest, err
}
