package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/images"
	"github.com/slipway-sh/slipway/cli/internal/key"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/trust"
	"github.com/slipway-sh/slipway/containers/trust/sigstore"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
)

type bundleSignOptions struct {
	trust images.Trust
	key   string
}

func newBundleSign() *cobra.Command {
	var o bundleSignOptions
	cmd := &cobra.Command{
		Use: "sign DIR --key KEY", Short: "Sign a bundle",
		Args: takes(1, 1, "give the directory of one bundle: slipway bundle sign DIR --key KEY"), RunE: atOnce(o.run),
		Long: `Sign a bundle, for those who have the public key: they give it as --bundle-key in place of
a digest.

It signs a statement about the bundle's index, with the bundle's provenance (SLSA), and writes
it into the bundle as a sigstore bundle, ` + bundle.SignatureFile + `, which cosign verifies too.
It compares every file with the index first. After slipway bundle add, sign again for others.`,
		Example: `  openssl genpkey -algorithm ed25519 -out key.pem && openssl pkey -in key.pem -pubout -out key.pub.pem
  slipway bundle sign DIR --key key.pem
  slipway install --bundle DIR --bundle-key key.pub.pem`,
	}
	cmd.Flags().StringVar(&o.key, "key", "", "private key that signs: a PEM file (ECDSA P-256 or Ed25519), or env:NAME")
	o.trust.AddFlags(cmd.Flags())
	return cmd
}

func (o *bundleSignOptions) run(ctx context.Context, io console.Streams, args []string) error {
	if o.key == "" {
		return usage.Errorf("bundle sign needs --key KEY")
	}
	private, _, err := key.Private(o.key)
	if err != nil {
		return err
	}
	b, err := bundle.Read(args[0])
	if err == nil && o.trust.Given() {
		_, err = o.trust.Check(ctx, b)
	}
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
	_, err = fmt.Fprintf(io.Text(), "bundle.json is %s, %s\nuse it with the public key: --bundle %s --bundle-key FILE\n", v.Digest, v.By, fault.Quote(args[0]))
	return err
}
