// Command sources prints the digest of what the program slipway is compiled from, for the
// linker, wherever slipway runs. Given systems, it checks that the program compiles for them:
//
//	go run -C ci/dev ./sources darwin/arm64 windows/amd64
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/slipway-sh/slipway/ci/dev/build/gotool"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, systems []string) error {
	checkout, err := gotool.Checkout()
	if err != nil {
		return err
	}
	if len(systems) == 0 {
		_, digest, err := gotool.Sources(ctx, checkout)
		fmt.Println(digest)
		return err
	}
	for _, system := range systems {
		if err := check(checkout, system); err != nil {
			return err
		}
	}
	return nil
}

// check parses and type-checks the package in dir and all that it imports as they are for a system
// GOOS/GOARCH. To generate code for a system for which nothing was compiled before would take some
// ten minutes, this takes seconds. What only a linker finds, `make builds` does.
func check(dir, system string) error {
	goos, goarch, _ := strings.Cut(system, "/")
	found, err := packages.Load(&packages.Config{
		Dir: dir,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps |
			packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesSizes | packages.NeedModule,
		Env: append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch),
	}, ".")
	if err != nil {
		return err
	}
	n, faults := 0, []error(nil)
	packages.Visit(found, nil, func(p *packages.Package) {
		n++
		for _, e := range p.Errors {
			faults = append(faults, fmt.Errorf("%s: %w", system, e))
		}
	})
	if len(faults) == 0 {
		fmt.Printf("%s: %d packages compile\n", system, n)
	}
	return errors.Join(faults...)
}
