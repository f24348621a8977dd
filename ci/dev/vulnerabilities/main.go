// Command vulnerabilities looks in programs for functions that are known to be vulnerable. It
// fails for those that accepted.yaml has no reason for, and for reasons that nothing needs any
// more.
//
//	go run -C ci/dev ./vulnerabilities GOVULNCHECK PROGRAM…
//
// The programs are those of Linux, linked with a symbol table: of a program without one
// govulncheck only knows the modules, and takes every vulnerable function of theirs to be in
// it. The database is the Go module golang.org/x/vulndb in a fixed version, so that what a scan
// finds depends on the commit and on Go's version alone. What was found in a program is kept in
// the store of builds.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/slipway-sh/slipway/ci/dev/build"
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
	why, err := readReasons(accepted)
	if err != nil {
		return fmt.Errorf("read accepted.yaml: %w", err)
	}
	dir, err := download(ctx)
	if err != nil {
		return err
	}
	st, err := build.OpenStore("")
	if err != nil {
		return err
	}
	found := make([]findings, len(programs))
	var scans errgroup.Group
	scans.SetLimit(2) // each reads the whole program into memory
	for n, file := range programs {
		scans.Go(func() (err error) {
			if found[n], err = cachedScan(ctx, st, govulncheck, dir, file); err != nil {
				return fmt.Errorf("scan %s: %w", file, err)
			}
			return nil
		})
	}
	if err := scans.Wait(); err != nil {
		return err
	}
	var wrong []error
	for n, file := range programs {
		program := filepath.Base(file)
		fmt.Fprintf(stdout, "%s: %d known vulnerabilities\n", program, len(found[n]))
		wrong = append(wrong, why.check(program, found[n]))
	}
	return errors.Join(wrong...)
}

// cachedScan returns the findings of a program, from the store if the same program was scanned
// with the same database.
func cachedScan(ctx context.Context, st *build.Store, govulncheck, db, program string) (found findings, err error) {
	in := build.NewInputs("vulnerabilities").String("database", databaseSum)
	if err := errors.Join(in.File("govulncheck", govulncheck), in.File("program", program)); err != nil {
		return found, err
	}
	const name = "found.json"
	dir, _, err := st.Do(ctx, in.Key(), func(ctx context.Context, dir string) error {
		found, err := scan(ctx, govulncheck, db, program)
		if err != nil {
			return err
		}
		text, err := json.Marshal(found)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, name), text, 0o644)
	})
	if err != nil {
		return found, err
	}
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return found, err
	}
	err = json.Unmarshal(text, &found)
	return found, err
}

// download makes sure that the database is on this machine, and returns its directory.
func download(ctx context.Context) (string, error) {
	var module struct{ Dir, Sum string }
	if err := gotool.Query(ctx, "", nil, &module, "mod", "download", "-json", database); err != nil {
		return "", err
	}
	if module.Sum != databaseSum {
		return "", fmt.Errorf("%s has the checksum %s, want %s", database, module.Sum, databaseSum)
	}
	return filepath.Join(module.Dir, "data", "osv"), nil
}

func scan(ctx context.Context, govulncheck, db, program string) (findings, error) {
	cmd := exec.CommandContext(ctx, govulncheck, "-db", "file://"+filepath.ToSlash(db), "-mode", "binary", "-scan", "symbol", "-format", "json", program)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	found, err := read(out)
	if err != nil {
		_, _ = io.Copy(io.Discard, out) // or it waits for a reader
	}
	return found, errors.Join(err, cmd.Wait())
}
