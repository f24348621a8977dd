// Command bundle builds the bundle out of Go modules and Debian packages, keeps
// it outside the checkout, and checks it.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/slipway-sh/slipway/ci/dev/build"
	"github.com/slipway-sh/slipway/ci/dev/build/gotool"
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
	o := choice{arch: runtime.GOARCH}
	flags := flag.NewFlagSet("bundle", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(stderr, usage) }
	flags.Func("arch", "", func(arch string) error {
		if _, ok := targets()[arch]; !ok {
			return fmt.Errorf("there are no bundles for it, only for %s", strings.Join(sortedNames(targets()), " and "))
		}
		o.arch = arch
		return nil
	})
	flags.Func("platform", "", func(dir string) error {
		o.platforms = append(o.platforms, dir)
		return nil
	})
	name := ""
	if len(args) > 0 {
		name, args = args[0], args[1:]
	}
	if err := flags.Parse(args); err != nil {
		return int(fault.Usage)
	}
	var err error
	switch {
	case name == "help" || name == "--help":
		fmt.Fprint(stdout, usage)
	case flags.NArg() > 0:
		flags.Usage()
		return int(fault.Usage)
	case name == "build":
		err = printBundle(ctx, o, stdout, func(made built) []string { return []string{"BUNDLE=" + made.dir, "bundleDigest=" + made.digest} })
	case name == "programs":
		err = printBundle(ctx, o, stdout, func(made built) []string { return slices.Sorted(maps.Values(made.programs)) })
	case name == "pin":
		err = pin(ctx, o, stdout)
	case name == "outdated":
		err = outdated(ctx, o)
	default:
		flags.Usage()
		return int(fault.Usage)
	}
	return build.Exit(ctx, stderr, err)
}

// printBundle builds a bundle and prints lines about it.
func printBundle(ctx context.Context, o choice, stdout io.Writer, lines func(built) []string) error {
	made, err := buildBundle(ctx, o)
	if err == nil {
		fmt.Fprintln(stdout, strings.Join(lines(made), "\n"))
	}
	return err
}

// built is a bundle in a store: its folder, the digest of its index, and the paths of its Go
// programs by name.
type built struct {
	dir, digest string
	programs    map[string]string
}

func buildBundle(ctx context.Context, o choice) (built, error) {
	st, err := build.OpenStore("")
	if err != nil {
		return built{}, err
	}
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
	b.report = build.NewReporter(os.Stderr, len(cmds)+len(r.additions(l))+2)
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
