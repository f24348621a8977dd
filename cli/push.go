package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/containers/publish"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

// bundleCommand is `slipway bundle`: verify compares a bundle with its index,
// push puts it into a registry.
func bundleCommand(set *pflag.FlagSet) func(context.Context, streams, []string) error {
	to := set.String("to", "", "push: where, host[:port]/path; an image gets its short name below it")
	out := set.String("lock-out", "slipway.lock.json", "push: the file to write with every digest, for --lock")
	plain := set.Bool("plain-http", false, "push: allow HTTP without TLS to other hosts than this one")
	return func(ctx context.Context, io streams, args []string) error {
		switch {
		case len(args) == 2 && args[0] == "verify":
			if err := bundle.Verify(ctx, args[1]); err != nil {
				return err
			}
			fmt.Fprintln(io.out, "every file is the one that bundle.json names")
			return nil
		case len(args) == 2 && args[0] == "push" && *to == "":
			return errUsage{errors.New("push needs --to host[:port]/path")}
		case len(args) == 2 && args[0] == "push":
			ctx, release := endsWith(ctx, io.stop)
			defer release()
			return push(ctx, io, publish.Options{Dir: args[1], To: *to, PlainHTTP: *plain}, *out)
		}
		return errUsage{errors.New("give: verify DIR, or push DIR")}
	}
}

// endsWith is a context that the first interrupt ends.
func endsWith(ctx context.Context, stop <-chan struct{}) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-stop:
			cancel(errInterrupted)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

func push(ctx context.Context, io streams, o publish.Options, file string) error {
	pins, err := lock.Load()
	if err != nil {
		return fmt.Errorf("read the lock: %w", err)
	}
	o.Lock, o.Observe = pins, pushPrinter(io.err)
	fmt.Fprintf(io.err, "checking %s, then asking %s\n", o.Dir, o.To)
	pushed, err := publish.Push(ctx, o)
	if err != nil {
		return err
	}
	text, err := pushed.Marshal()
	if err != nil {
		return err
	}
	if err := atomicfile.Write(file, text, 0o644); err != nil {
		return fmt.Errorf("write the lock: %w", err)
	}
	fmt.Fprintf(io.out, "%s holds the digests; install with: slipway install --lock %s\n", file, file)
	return nil
}

// pushPrinter prints a line when an image is there, and every five seconds while
// one is on its way.
func pushPrinter(w io.Writer) func(publish.Progress) {
	last := time.Now()
	return func(p publish.Progress) {
		line := fmt.Sprintf("%2d/%d %-22s %6.1f MB", p.N, p.Of, p.Image, float64(p.Total)/1e6)
		switch {
		case p.There:
			fmt.Fprintln(w, line, "there already")
		case p.Finished:
			fmt.Fprintf(w, "%s pushed in %.1f s\n", line, p.Took.Seconds())
		case time.Since(last) < 5*time.Second:
			return
		default:
			fmt.Fprintf(w, "%s, %.0f %%\n", line, 100*float64(p.Done)/float64(max(p.Total, 1)))
		}
		last = time.Now()
	}
}
