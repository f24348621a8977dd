// Command release makes a release of slipway out of the checkout: archives and Debian packages
// with completions and man pages, a Homebrew formula, checksums, SBOMs, provenance and release
// notes; and it pushes the bundle. `make release` runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/slipway-sh/slipway/ci/dev/build/gotool"
	"github.com/slipway-sh/slipway/fault"
)

const usage = `usage: make release VERSION=v1.2.3 [OUT=DIR] [KEY=FILE] [TARGETS='OS/ARCH …'] [URL=BASE] [REGISTRY=HOST/PATH [OTHER=DIR@DIGEST]] [DRY=1]

  VERSION   what is released: the commit has this tag, and CHANGELOG.md a section
  OUT       the folder to make, dist if not given
  KEY       private key, PEM, ECDSA P-256 or Ed25519, that signs the provenance and,
            with REGISTRY, the lock file
  TARGETS   the systems to build for, all of them if not given
  URL       below which the files will be found, for the Homebrew formula
  REGISTRY  where the bundle is pushed; its lock file is then part of the release
  OTHER     with REGISTRY: the bundle for the other architecture, DIR@sha256:…, which goes
            there, too
  DRY       1: push nothing, and also take a checkout with changes, or without the tag or
            the section; notes.md is then the newest section
`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is main without the process: it returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := parse(ctx, args, stdout, stderr)
	switch {
	case err == nil:
		return int(fault.OK)
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		return int(fault.OK)
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "stopped:", err)
		return int(fault.Cancelled)
	}
	fmt.Fprintln(stderr, "error:", err)
	if errors.Is(err, errRefused) {
		return int(fault.Usage)
	}
	return int(fault.Step)
}

// options are what the command line says.
type options struct {
	version  string   // "v1.2.3"
	out      string   // the folder to make
	key      string   // file with the private key; empty: nothing is signed
	targets  []string // GOOS/GOARCH
	url      string   // below which the files will be found
	registry string   // host/path; empty: the bundle is not pushed
	bundle   string   // its folder
	other    string   // that of the other architecture, with its digest: DIR@sha256:…; empty: there is none
	dry      bool
}

func parse(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o := options{bundle: os.Getenv("SLIPWAY_BUNDLE")}
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.version, "version", "", "")
	flags.StringVar(&o.out, "out", "dist", "")
	flags.StringVar(&o.key, "key", "", "")
	flags.StringVar(&o.url, "url", "", "")
	flags.StringVar(&o.registry, "registry", "", "")
	flags.StringVar(&o.other, "other", "", "")
	flags.BoolVar(&o.dry, "dry", false, "")
	flags.Func("targets", "", func(text string) error {
		o.targets = strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
		return nil
	})
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return refused(err)
	}
	if flags.NArg() > 0 {
		return refused(fmt.Errorf("there is no argument %q", flags.Arg(0)))
	}
	root, err := gotool.Checkout()
	if err != nil {
		return err
	}
	return release(ctx, root, o, stdout, stderr)
}
