// Command typecheck checks that the program compiles for other systems: it parses and
// type-checks main and all packages that it imports as they are for each GOOS/GOARCH. To
// generate code for a system for which nothing was compiled before would take some ten
// minutes, this takes seconds. What only a linker finds, `make builds` does.
//
//	go run -C ci/dev ./typecheck darwin/arm64 windows/amd64
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/slipway-sh/slipway/ci/dev/build/gotool"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, systems []string) error {
	checkout, err := gotool.Checkout()
	if err != nil {
		return err
	}
	if len(systems) == 0 {
		return errors.New("give systems, such as darwin/arm64")
	}
	var wrong []error
	for _, system := range systems {
		n, err := check(ctx, checkout, system)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", system, err))
			continue
		}
		fmt.Printf("%s: %d packages compile\n", system, n)
	}
	return errors.Join(wrong...)
}

// mostFaults is how many faults are told of a system: one in a package brings others in those
// that import it.
const mostFaults = 20

// check type-checks the package in dir and all that it imports, for a system GOOS/GOARCH, and
// returns how many these are.
func check(ctx context.Context, dir, system string) (n int, err error) {
	goos, goarch, ok := strings.Cut(system, "/")
	if !ok {
		return 0, errors.New("it is not of the form GOOS/GOARCH")
	}
	found, err := packages.Load(&packages.Config{
		Context: ctx, Dir: dir,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps |
			packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesSizes | packages.NeedModule,
		Env: append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch),
	}, ".")
	if err != nil {
		return 0, err
	}
	var faults []error
	packages.Visit(found, nil, func(p *packages.Package) {
		n++
		for _, e := range p.Errors {
			faults = append(faults, e)
		}
	})
	return n, errors.Join(faults[:min(len(faults), mostFaults)]...)
}
