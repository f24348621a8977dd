package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/images"
	"github.com/slipway-sh/slipway/containers/bundle"
)

type bundleVerifyOptions struct{ trust images.Trust }

func newBundleVerify() *cobra.Command {
	var o bundleVerifyOptions
	cmd := &cobra.Command{
		Use: "verify DIR", Short: "Check a bundle against its digest, and each file against the bundle's index", Example: `  slipway bundle verify "$SLIPWAY_BUNDLE"`,
		Args: takes(1, 1, "give the directory of one bundle"), RunE: atOnce(o.run),
		Long: `Compare a bundle with its digest, and every file of it with its index.

Whoever can write the files can write the index as well: without --bundle-digest,
--bundle-key, --certificate-identity or their variables this only finds damage, and the last
line says what the digest is.`,
	}
	o.trust.AddFlags(cmd.Flags())
	return cmd
}

func (o *bundleVerifyOptions) run(ctx context.Context, io console.Streams, args []string) error {
	b, err := bundle.Read(args[0])
	if err != nil {
		return err
	}
	vouched := "nothing says that this is the one you want"
	if o.trust.Given() {
		v, err := o.trust.Check(ctx, b)
		if err != nil {
			return err
		}
		vouched = v.By
	}
	if err := b.Verify(ctx); err != nil {
		return err
	}
	_, err = fmt.Fprintf(io.Text(), "every file is the one that bundle.json names\nbundle.json is %s, %s\n", b.ReadDigest(), vouched)
	return err
}
