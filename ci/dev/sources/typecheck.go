package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"
)

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
