package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/images"
	"github.com/slipway-sh/slipway/cli/internal/secrets"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/trust"
	"github.com/slipway-sh/slipway/containers/trust/sigstore"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

// oneBundle is the one argument of commands on a bundle.
func oneBundle() cobra.PositionalArgs { return takes(1, 1, "give the directory of one bundle") }

// readBundle reads a bundle, and checks it if trust says which one is wanted.
func readBundle(ctx context.Context, dir string, t *images.Trust) (*bundle.Bundle, trust.Vouched, error) {
	b, err := bundle.Read(dir)
	var v trust.Vouched
	if err == nil && t.Given() {
		v, err = t.Check(ctx, b)
	}
	return b, v, err
}

func newBundleList() *cobra.Command {
	var as format
	cmd := &cobra.Command{
		Use: "list DIR", Short: "List the tools, manifests and images of a bundle", Example: `  slipway bundle list "$SLIPWAY_BUNDLE"`, Args: oneBundle(),
		RunE: atOnce(func(_ context.Context, streams console.Streams, args []string) error {
			b, err := bundle.Read(args[0])
			if err != nil {
				return err
			}
			return as.print(streams.Out, b.Index, func(w io.Writer) error { return listBundle(w, b.Index) })
		}),
	}
	as.addFlag(cmd.Flags())
	return cmd
}

// listBundle prints a line per tool, manifest and image, and one more for each further
// reference that an image stands for.
func listBundle(w io.Writer, x bundle.Index) error {
	fmt.Fprintf(w, "for %s\n\n", x.Platform)
	table := newTable(w)
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

func newBundleVerify() *cobra.Command {
	var t images.Trust
	cmd := &cobra.Command{
		Use: "verify DIR", Short: "Check a bundle against its digest, and each file against the bundle's index", Example: `  slipway bundle verify "$SLIPWAY_BUNDLE"`, Args: oneBundle(),
		Long: `Compare a bundle with its digest, and every file of it with its index.

Whoever can write the files can write the index as well: without --bundle-digest,
--bundle-key, --certificate-identity or their variables this only finds damage, and the last
line says what the digest is.`,
		RunE: atOnce(func(ctx context.Context, io console.Streams, args []string) error {
			b, v, err := readBundle(ctx, args[0], &t)
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

func newBundleSign() *cobra.Command {
	var t images.Trust
	var place string
	cmd := &cobra.Command{
		Use: "sign DIR --key KEY", Short: "Sign a bundle", Args: takes(1, 1, "give the directory of one bundle: slipway bundle sign DIR --key KEY"),
		Long: `Sign a bundle, for those who have the public key: they give it as --bundle-key in place of
a digest.

It signs a statement about the bundle's index, with the bundle's provenance (SLSA), and writes
it into the bundle as a sigstore bundle, ` + bundle.SignatureFile + `, which cosign verifies too.
It compares every file with the index first. After slipway bundle add, sign again for others.`,
		Example: `  openssl genpkey -algorithm ed25519 -out key.pem && openssl pkey -in key.pem -pubout -out key.pub.pem
  slipway bundle sign DIR --key key.pem
  slipway install --bundle DIR --bundle-key key.pub.pem`,
		RunE: atOnce(func(ctx context.Context, io console.Streams, args []string) error {
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
	b, _, err := readBundle(ctx, dir, t)
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
	signer, err := sigstore.ByKey(private.Public())
	if err != nil {
		return err
	}
	v, err := trust.Anchor{Signer: signer}.Check(ctx, b, nil)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(io.Text(), "bundle.json is %s, %s\nuse it with the public key: --bundle %s --bundle-key FILE\n", v.Digest, v.By, fault.Quote(dir))
	return err
}
