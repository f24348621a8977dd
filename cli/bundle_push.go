package cli

import (
	"context"
	"crypto"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/images"
	"github.com/slipway-sh/slipway/cli/internal/key"
	"github.com/slipway-sh/slipway/cli/internal/output"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/containers/publish"
	"github.com/slipway-sh/slipway/containers/trust"
	"github.com/slipway-sh/slipway/containers/trust/sigstore"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

type bundlePushOptions struct {
	to, lock, key string
	merge, plain  bool
	trust         images.Trust
}

func newBundlePush() *cobra.Command {
	var o bundlePushOptions
	cmd := &cobra.Command{
		Use: "push DIR --to host[:port]/path", Short: "Push a bundle to a registry and write its lock file", Example: `  slipway bundle push "$SLIPWAY_BUNDLE" --to registry.example.com/team/slipway`,
		Args: takes(1, 1, "give the directory of one bundle"), RunE: run("stopping", o.run),
	}
	cmd.Flags().StringVar(&o.to, "to", "", "where, host[:port]/path; an image gets its short name below it")
	output.Var(cmd.Flags(), &o.lock, "lock-out", "slipway.lock.json", "the file to write with every digest, for --lock")
	cmd.Flags().BoolVar(&o.merge, "merge", false, "keep what that file, which is there, has of other platforms: of a bundle for another architecture that was pushed to the same place; with --key, that file must be signed with it")
	cmd.Flags().StringVar(&o.key, "key", "", "private key to sign that file with, as slipway bundle sign does the bundle; the signature is beside it, with "+trust.Suffix+" after its name")
	cmd.Flags().BoolVar(&o.plain, "plain-http", false, "allow HTTP without TLS to other hosts than this one")
	o.trust.AddFlags(cmd.Flags())
	return cmd
}

func (o *bundlePushOptions) run(ctx context.Context, io console.Streams, args []string) error {
	if o.to == "" {
		return usage.Errorf("push needs --to host[:port]/path")
	}
	for name, needs := range map[string]bool{o.lock: o.merge || o.key != "", o.lock + trust.Suffix: o.key != ""} {
		if !needs {
			continue
		}
		if _, err := atomicfile.Target(name); err != nil {
			return usage.Errorf("--lock-out, with --merge or --key: %w", err)
		}
	}
	ctx, release := console.UntilInterrupt(ctx, io.Stop, console.Interrupted("push the bundle", "run the same command again: images that are there are not pushed again"))
	defer release()
	var private crypto.Signer
	if o.key != "" {
		var err error
		if private, _, err = key.Private(o.key); err != nil {
			return err
		}
	}
	pins, err := lock.Load()
	if err != nil {
		return fmt.Errorf("read the lock: %w", err)
	}
	anchor, err := o.trust.Anchor()
	if err != nil {
		return err
	}
	var there *lock.Lock
	if o.merge {
		if there, err = o.others(pins, private); err != nil {
			return err
		}
	}
	fmt.Fprintf(io.Err, "checking %s, then asking %s\n", args[0], o.to)
	pushed, err := publish.Push(ctx, publish.Options{
		Dir: args[0], Anchor: anchor, To: o.to, PlainHTTP: o.plain, Lock: pins,
		Observe: pushPrinter(io.Err), Warn: func(text string) { fmt.Fprintln(io.Err, "warning: "+text) },
	})
	if err != nil {
		return err
	}
	if there != nil {
		if pushed, err = pushed.Merge(there); err != nil {
			return err
		}
	}
	text, err := pushed.Marshal()
	if err != nil {
		return err
	}
	if err := atomicfile.Write(o.lock, text, 0o644); err != nil {
		return usage.Wrap(fmt.Errorf("write the lock: %w", err))
	}
	if private != nil {
		if err := o.sign(ctx, args[0], text, private); err != nil {
			return err
		}
	}
	fmt.Fprintf(io.Text(), "%s holds the digests; install with: slipway install --lock %s\n", o.lock, fault.Quote(o.lock))
	return nil
}

// others is the lock file that is there, which must be one of this program, and of what is in the
// same place. With a key, which will sign what is taken from it, it must be signed with that one.
func (o *bundlePushOptions) others(pins *lock.Lock, private crypto.Signer) (*lock.Lock, error) {
	there, text, err := lock.Read(o.lock)
	if err != nil {
		return nil, err
	}
	if private != nil {
		signer, err := sigstore.ByKey(private.Public())
		if err != nil {
			return nil, err
		}
		if _, err := (trust.Anchor{Signer: signer}).CheckFile(o.lock, text); err != nil {
			return nil, err
		}
	}
	if err := pins.VerifyFile(there); err != nil {
		return nil, err
	}
	_, err = (&lock.Lock{Version: lock.Format, Suite: pins.Suite, Location: o.to}).Merge(there)
	return there, err
}

// sign writes the signature of the lock with this text.
func (o *bundlePushOptions) sign(ctx context.Context, dir string, text []byte, private crypto.Signer) error {
	b, err := bundle.Read(dir)
	if err != nil {
		return err
	}
	signature, err := trust.SignFile(ctx, b, filepath.Base(o.lock), text, private)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(o.lock+trust.Suffix, signature, 0o644); err != nil {
		return usage.Wrap(fmt.Errorf("write the lock's signature: %w", err))
	}
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
