package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/containers/lock/update"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

// lockCommand is `slipway lock`: verify compares a bundle with the pins of this
// program, update looks for public origins that a lock.yaml does not have.
func lockCommand(set *pflag.FlagSet) func(context.Context, streams, []string) error {
	dir := set.String("bundle", os.Getenv("SLIPWAY_BUNDLE"), "verify: the bundle to compare with the lock (env SLIPWAY_BUNDLE)")
	file := set.String("file", "containers/lock/lock.yaml", "update: the lock.yaml to complete")
	platform := set.String("platform", "linux/amd64", "update: linux/amd64 or linux/arm64")
	return func(ctx context.Context, io streams, args []string) error {
		switch {
		case len(args) == 1 && args[0] == "verify":
			return verifyLock(io, *dir)
		case len(args) == 1 && args[0] == "update":
			return updateLock(ctx, io, *file, *platform)
		}
		return errUsage{errors.New("give verify or update")}
	}
}

func verifyLock(io streams, dir string) error {
	if dir == "" {
		return errUsage{errors.New("give --bundle DIR or set SLIPWAY_BUNDLE")}
	}
	pins, err := lock.Load()
	if err != nil {
		return err
	}
	b, err := bundle.Read(dir)
	if err != nil {
		return err
	}
	if err := pins.Verify(b); err != nil {
		return err
	}
	fmt.Fprintln(io.out, "the bundle holds what the lock says")
	return nil
}

// updateLock enters what two public sources agree on, and says what it could not
// find out. The file changes only when something was found.
func updateLock(ctx context.Context, io streams, file, platform string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return &fault.Fault{Code: codeNoLock, Class: fault.Usage, Op: "read the lock", Err: err,
			Fix: "give the path of a lock.yaml: slipway lock update --file containers/lock/lock.yaml"}
	}
	unusable := func(op string, err error) error {
		return &fault.Fault{Code: lock.CodeFile, Class: fault.Usage, Op: op + " " + file, Err: err,
			Fix: "correct the file, or give another lock.yaml that you may write: slipway lock update --file PATH"}
	}
	pins, err := lock.Parse(text)
	if err != nil {
		return unusable("read", err)
	}
	findings, err := update.Public().Resolve(ctx, pins, platform)
	if err != nil {
		return err
	}
	entered := 0
	for _, f := range findings {
		if f.Problem != "" {
			fmt.Fprintf(io.out, "%s: not entered: %s\n", f.Name, f.Problem)
			continue
		}
		entered++
		fmt.Fprintf(io.out, "%s: %s %s\n", f.Name, f.Place, f.Digest)
	}
	if entered == 0 {
		fmt.Fprintf(io.out, "%s is left as it is\n", file)
		return nil
	}
	text, err = update.Enter(text, findings)
	if err != nil {
		return unusable("complete", err)
	}
	if err := atomicfile.Write(file, text, 0o644); err != nil {
		return unusable("write", err)
	}
	return nil
}
