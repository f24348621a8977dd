package cli

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/images"
	"github.com/slipway-sh/slipway/cli/internal/secrets"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/containers/publish"
	"github.com/slipway-sh/slipway/containers/trust"
	"github.com/slipway-sh/slipway/containers/trust/sigstore"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
	"github.com/slipway-sh/slipway/pipeline/redact"
)

type bundlePushOptions struct {
	out, key string
	plain    bool
	trust    images.Trust
}

func newBundlePush() *cobra.Command {
	var o bundlePushOptions
	cmd := &cobra.Command{
		Use: "push DIR HOST/PATH", Short: "Push a bundle to a registry and write its lock file",
		Long: `Push a bundle to a registry, and write a lock file with the digest of every image, for
slipway install --lock FILE. An image is at HOST/PATH/NAME.

To serve two architectures from one registry, push both bundles to the same HOST/PATH: the lock
file keeps what it has of the other one. With --key, that must be signed with the same key.`,
		Example: `  slipway bundle push "$SLIPWAY_BUNDLE" registry.example.com/team/slipway
  slipway bundle push DIR registry.example.com/slipway --key key.pem`,
		Args: takes(2, 2, "give the directory of a bundle and where it goes: slipway bundle push DIR HOST[:PORT]/PATH"), RunE: run("stopping", o.run),
	}
	cmd.Flags().StringVar(&o.out, "out", "slipway.lock.json", "lock file to write")
	cmd.Flags().StringVar(&o.key, "key", "", "private key that signs the lock file: a PEM file, or env:NAME")
	cmd.Flags().BoolVar(&o.plain, "plain-http", false, "allow HTTP without TLS to other machines")
	o.trust.AddFlags(cmd.Flags())
	return cmd
}

func (o *bundlePushOptions) run(ctx context.Context, io console.Streams, args []string) error {
	places := []string{o.out}
	if o.key != "" {
		places = append(places, o.out+trust.Suffix)
	}
	for _, name := range places { // which would show only after the push
		if _, err := atomicfile.Target(name); err != nil && (o.key != "" || !atomicfile.IsStream(name)) {
			return usage.Errorf("--out: %w", err)
		}
	}
	ctx, release := console.UntilInterrupt(ctx, io.Stop, console.Interrupted("push the bundle", "run the same command again: images that are there are not pushed again"))
	defer release()
	var private crypto.Signer
	if o.key != "" {
		var err error
		if private, _, err = secrets.PrivateKey(o.key); err != nil {
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
	b, err := bundle.Read(args[0])
	if err != nil {
		return err
	}
	there, err := o.others(io, pins, b, args[1], private)
	if err != nil {
		return err
	}
	fmt.Fprintf(io.Err, "checking %s, then asking %s\n", args[0], args[1])
	pushed, err := publish.Push(ctx, publish.Options{
		Dir: args[0], Anchor: anchor, To: args[1], PlainHTTP: o.plain, Lock: pins,
		Observe: transferPrinter(io.Err, "pushed"), Warn: func(text string) { fmt.Fprintln(io.Err, "warning: "+text) },
	})
	if err != nil {
		return err
	}
	if there != nil {
		there.Bundles[b.Platform] = pushed.Bundles[b.Platform]
		pushed = there
	}
	text, err := pushed.Marshal()
	if err != nil {
		return err
	}
	if err := atomicfile.Write(o.out, text, 0o644); err != nil {
		return usage.Wrap(fmt.Errorf("write the lock: %w", err))
	}
	if private != nil {
		signature, err := trust.SignFile(ctx, b, filepath.Base(o.out), text, private)
		if err != nil {
			return err
		}
		if err := atomicfile.Write(o.out+trust.Suffix, signature, 0o644); err != nil {
			return usage.Wrap(fmt.Errorf("write the lock's signature: %w", err))
		}
	}
	fmt.Fprintf(io.Text(), "%s holds the digests; install with: slipway install --lock %s\n", o.out, fault.Quote(o.out))
	return nil
}

// others is the lock file that is there, where it has bundles of this program for other platforms
// than b in the same place: their digests stay in it. With a key, which will sign them, it must be
// signed with that key. A file of anything else is replaced, as one for b's platform alone is.
func (o *bundlePushOptions) others(io console.Streams, pins *lock.Lock, b *bundle.Bundle, to string, private crypto.Signer) (*lock.File, error) {
	if atomicfile.IsStream(o.out) {
		return nil, nil
	}
	there, text, err := lock.Read(o.out)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = pins.VerifyFile(there)
	}
	if err == nil && there.Location != to {
		err = fmt.Errorf("it is of what is in %s", there.Location)
	}
	if err != nil {
		fmt.Fprintf(io.Err, "%s will be replaced: %s\n", o.out, redact.OneLine(err.Error()))
		return nil, nil
	}
	platforms := slices.DeleteFunc(there.Platforms(), func(p string) bool { return p == b.Platform })
	if len(platforms) == 0 {
		return nil, nil
	}
	if private != nil {
		signer, err := sigstore.ByKey(private.Public())
		if err != nil {
			return nil, err
		}
		if _, err := (trust.Anchor{Signer: signer}).CheckFile(o.out, text); err != nil {
			return nil, err
		}
	}
	fmt.Fprintf(io.Err, "%s keeps its digests for %s\n", o.out, strings.Join(platforms, ", "))
	return there, nil
}
