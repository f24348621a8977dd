// Command vulnerabilities looks in programs for functions that are known to be vulnerable. It
// fails for those that accepted.yaml has no reason for, and for reasons that nothing needs any
// more.
//
//	go run -C ci/dev ./vulnerabilities GOVULNCHECK PROGRAM…
//
// The programs are those of Linux, linked with a symbol table: of a program without one
// govulncheck only knows the modules, and takes every vulnerable function of theirs to be in
// it. The database is the Go module golang.org/x/vulndb in a fixed version, so that what a scan
// finds depends on the commit and on Go's version alone.
package main

import (
	"context"
	"debug/elf"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/ci/dev/build/gotool"
)

// The database, and its checksum as a go.sum would have it. No package of it can be imported,
// so that no go.mod keeps it. `go mod download -json golang.org/x/vulndb@latest` prints both
// of a newer one.
const (
	database    = "golang.org/x/vulndb@v0.0.0-20261105234957-e22db6528018"
	databaseSum = "h1:mfngRv0Yoh0VApsXKEN82CjD99kl7mtparN3bs3JnqI="
)

//go:embed accepted.yaml
var accepted []byte

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is main without the process: it returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(args) < 2 {
		fmt.Fprintln(stderr, "error: give the path of govulncheck, and those of programs")
		return 2
	}
	if err := scanAll(ctx, stdout, args[0], args[1:]); err != nil {
		fmt.Fprintf(stderr, "error: %v\n", err)
		return 1
	}
	return 0
}

// scanAll scans the programs, and returns what is wrong in all of them.
func scanAll(ctx context.Context, stdout io.Writer, govulncheck string, programs []string) error {
	var why reasons
	if err := yaml.UnmarshalStrict(accepted, &why); err != nil {
		return fmt.Errorf("read accepted.yaml: %w", err)
	}
	dir, err := download(ctx)
	if err != nil {
		return err
	}
	var wrong []error
	for _, file := range programs {
		found, err := scan(ctx, govulncheck, dir, file)
		if err != nil {
			return fmt.Errorf("scan %s: %w", file, err)
		}
		program := filepath.Base(file)
		fmt.Fprintf(stdout, "%s: %d known vulnerabilities in functions of modules, %d in those of Go's standard library\n",
			program, len(found.modules), len(found.library))
		wrong = append(wrong, why.judge(program, found))
	}
	return errors.Join(wrong...)
}

// download makes sure that the database is on this machine, and returns its directory.
func download(ctx context.Context) (string, error) {
	var module struct{ Dir, Sum string }
	if err := gotool.Ask(ctx, "", nil, &module, "mod", "download", "-json", database); err != nil {
		return "", err
	}
	if module.Sum != databaseSum {
		return "", fmt.Errorf("%s has the checksum %s, want %s", database, module.Sum, databaseSum)
	}
	return filepath.Join(module.Dir, "data", "osv"), nil
}

// scan returns the vulnerabilities of a program.
func scan(ctx context.Context, govulncheck, db, program string) (findings, error) {
	if err := withSymbols(program); err != nil {
		return findings{}, err
	}
	cmd := exec.CommandContext(ctx, govulncheck, "-db", "file://"+filepath.ToSlash(db), "-mode", "binary", "-scan", "symbol", "-format", "json", program)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return findings{}, err
	}
	if err := cmd.Start(); err != nil {
		return findings{}, err
	}
	found, err := read(out)
	if err != nil {
		_, _ = io.Copy(io.Discard, out) // or it waits for a reader
	}
	return found, errors.Join(err, cmd.Wait())
}

// withSymbols fails if a program of Linux has no symbol table.
func withSymbols(program string) error {
	f, err := elf.Open(program)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if f.Section(".symtab") == nil {
		return errors.New("it has no symbol table: link it without -s")
	}
	return nil
}
