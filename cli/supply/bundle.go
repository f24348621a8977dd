// Package supply has the commands for what an install is supplied with: bundles, lock files and client programs.
package supply

import (
	"cmp"
	"context"
	"crypto"
	"errors"
	"fmt"
	"io"
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

// oneBundle accepts one argument.
func oneBundle() cobra.PositionalArgs { return usage.Takes(1, 1, "give the directory of one bundle") }

// NewBundleList is slipway bundle list.
func NewBundleList() *cobra.Command {
	var as console.Format
	cmd := &cobra.Command{
		Use: "list DIR", Short: "List the tools, manifests and images of a bundle", Example: `  slipway bundle list "$SLIPWAY_BUNDLE"`, Args: oneBundle(),
		RunE: console.AtOnce(func(_ context.Context, streams console.Streams, args []string) error {
			b, err := bundle.Read(args[0])
			if err != nil {
				return err
			}
			return as.Print(streams.Out, b.Index, func(w io.Writer) error { return listBundle(w, b.Index) })
		}),
	}
	as.AddFlag(cmd.Flags())
	return cmd
}

// listBundle prints a line per tool, manifest and image, and per further reference of an image.
func listBundle(w io.Writer, x bundle.Index) error {
	fmt.Fprintf(w, "for %s\n\n", x.Platform)
	table := console.NewTable(w)
	fmt.Fprintln(table, "KIND\tNAME\tVERSION\tDIGEST\tSTANDS FOR")
	for _, kind := range []bundle.Kind{bundle.Tool, bundle.Manifest} {
		for _, f := range x.Files {
			if f.Kind == kind {
				fmt.Fprintf(table, "%s\t%s\t%s\tsha256:%s…\t\n", kind, f.Name, f.Version, f.SHA256[:12])
			}
		}
	}
	for _, i := range x.Images {
		kind, name, version := "image", i.Name, i.Ref[strings.LastIndexByte(i.Ref, ':')+1:]
		if i.Added() { // it has no short name
			kind, name, version = "added", "-", "-"
		}
		first, rest := "", i.StandsFor
		if len(rest) > 0 {
			first, rest = rest[0], rest[1:]
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s…\t%s\n", kind, name, version, i.Digest[:19], first)
		for _, s := range rest {
			fmt.Fprintf(table, "\t\t\t\t%s\n", s)
		}
	}
	return table.Flush()
}

// NewBundleVerify is slipway bundle verify.
func NewBundleVerify() *cobra.Command {
	var t images.Trust
	cmd := &cobra.Command{
		Use: "verify DIR", Short: "Check a bundle against its digest, and each file against the bundle's index", Example: `  slipway bundle verify "$SLIPWAY_BUNDLE"`, Args: oneBundle(),
		Long: `Compare a bundle with its digest, and every file with the bundle's index.

Anyone who can write the files can write the index, too. Without --bundle-digest, --bundle-key,
--certificate-identity or their variables, this only finds damage and prints the digest.`,
		RunE: console.AtOnce(func(ctx context.Context, io console.Streams, args []string) error {
			b, v, err := t.Read(ctx, args[0])
			if err == nil {
				err = b.Verify(ctx)
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(io.Text(), "every file is the one that bundle.json names\nbundle.json is %s, %s\n", b.ReadDigest(), cmp.Or(v.By, "nothing says that this is the one you want"))
			return err
		}),
	}
	t.AddFlags(cmd.Flags())
	return cmd
}

// NewBundleSign is slipway bundle sign.
func NewBundleSign() *cobra.Command {
	var t images.Trust
	var place string
	cmd := &cobra.Command{
		Use: "sign DIR --key KEY", Short: "Sign a bundle", Args: usage.Takes(1, 1, "give the directory of one bundle: slipway bundle sign DIR --key KEY"),
		Long: `Sign a bundle, so that others can verify it with --bundle-key and the public key.

The signature covers the index and the bundle's provenance (SLSA). It is in the bundle as a sigstore
bundle, ` + bundle.SignatureFile + `, which cosign verifies, too. Slipway compares every file with the
index first. After slipway bundle add, sign again.`,
		Example: `  openssl genpkey -algorithm ed25519 -out key.pem && openssl pkey -in key.pem -pubout -out key.pub.pem
  slipway bundle sign DIR --key key.pem
  slipway install --bundle DIR --bundle-key key.pub.pem`,
		RunE: console.AtOnce(func(ctx context.Context, io console.Streams, args []string) error {
			return signBundle(ctx, io, args[0], place, &t)
		}),
	}
	cmd.Flags().StringVar(&place, "key", "", "private key that signs: a PEM file (ECDSA P-256 or Ed25519), or env:NAME")
	t.AddFlags(cmd.Flags())
	return cmd
}

func signBundle(ctx context.Context, io console.Streams, dir, place string, t *images.Trust) error {
	if place == "" {
		return usage.Errorf("bundle sign needs --key KEY")
	}
	private, _, err := secrets.PrivateKey(place)
	if err != nil {
		return err
	}
	b, _, err := t.Read(ctx, dir)
	if err != nil {
		return err
	}
	text, err := trust.Sign(ctx, b, private)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(b.Path(bundle.SignatureFile), text, 0o644); err != nil {
		return usage.Wrap(fmt.Errorf("write the bundle's signature: %w", err))
	}
	own, err := signedBy(private)
	if err != nil {
		return err
	}
	v, err := own.Check(ctx, b, nil)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(io.Text(), "bundle.json is %s, %s\nuse it with the public key: --bundle %s --bundle-key FILE\n", v.Digest, v.By, fault.Quote(dir))
	return err
}

// signedBy vouches for what a key has signed.
func signedBy(private crypto.Signer) (trust.Anchor, error) {
	signer, err := sigstore.ByKey(private.Public())
	return trust.Anchor{Signer: signer}, err
}

type bundlePushOptions struct {
	out, key string
	plain    bool
	trust    images.Trust
}

// NewBundlePush is slipway bundle push.
func NewBundlePush() *cobra.Command {
	var o bundlePushOptions
	cmd := &cobra.Command{
		Use: "push DIR HOST/PATH", Short: "Push a bundle to a registry and write its lock file",
		Long: `Push a bundle to a registry, and write a lock file with the digest of every image, for
slipway install --lock FILE. An image is at HOST/PATH/NAME.

To serve two architectures from one registry, push both bundles to the same HOST/PATH: the lock file
keeps the digests of the other one. With --key, the same key must have signed that lock file.`,
		Example: `  slipway bundle push "$SLIPWAY_BUNDLE" registry.example.com/team/slipway
  slipway bundle push DIR registry.example.com/slipway --key key.pem`,
		Args: usage.Takes(2, 2, "give the directory of a bundle and where it goes: slipway bundle push DIR HOST[:PORT]/PATH"), RunE: console.AtOnce(o.run),
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
	for _, name := range places { // before the push
		if _, err := atomicfile.Target(name); err != nil && (o.key != "" || !atomicfile.IsStream(name)) {
			return usage.Errorf("--out: %w", err)
		}
	}
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

// others is the existing lock file, if it has bundles for other platforms at the same location: their digests
// stay in it, so with a key it must have that key's signature. Any other file is replaced.
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
		own, err := signedBy(private)
		if err == nil {
			_, err = own.CheckFile(o.out, text)
		}
		if err != nil {
			return nil, err
		}
	}
	fmt.Fprintf(io.Err, "%s keeps its digests for %s\n", o.out, strings.Join(platforms, ", "))
	return there, nil
}
