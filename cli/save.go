package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/deployment"
	"github.com/slipway-sh/slipway/cli/internal/packing"
	"github.com/slipway-sh/slipway/cli/internal/secrets"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/pipeline/runpackage"
)

type saveOptions struct {
	deployment  deployment.Flags
	packing     packing.Options
	key, verify string
	signer      string // public key
}

func newSave(p *Program) *cobra.Command {
	var o saveOptions
	cmd := &cobra.Command{
		Use: "save", Short: "Pack a run into one file, or verify such a file", Example: `  slipway save --out run.tar.zst   # the last run
  slipway save --verify run.tar.zst --package-key key.pub.pem`,
		Args: usage.NoArgs, RunE: console.AtOnce(o.do),
	}
	set := cmd.Flags()
	o.deployment.AddFlags(cmd, p)
	o.deployment.Release.AddFlags(set)
	addRunID(set, &o.packing.Run)
	set.StringVar(&o.packing.Out, "out", "", "file to write; slipway-NAME-RUN"+runpackage.Suffix+" if left out")
	set.StringVar(&o.key, "key", "", "private key that signs the package: a PEM file, or env:NAME; else advanced.save.key")
	set.StringVar(&o.verify, "verify", "", "verify this package instead of making one")
	packing.AddKey(set, &o.signer)
	return cmd
}

func (o *saveOptions) do(ctx context.Context, streams console.Streams, _ []string) error {
	if o.verify != "" {
		return o.check(streams)
	}
	if o.signer != "" {
		return usage.Errorf("--package-key goes with --verify FILE")
	}
	what := &o.packing
	if what.Out != "" && !strings.HasSuffix(what.Out, runpackage.Suffix) {
		return usage.Errorf("--out is %s; give a file that ends with %s", what.Out, runpackage.Suffix)
	}
	if o.key != "" {
		private, text, err := secrets.PrivateKey(o.key)
		if err != nil {
			return err
		}
		what.Key, what.Secrets = private, []string{text}
	}
	return o.deployment.Do(ctx, streams, deployment.Run{}, func(ctx context.Context, d *deployment.Deployment) error {
		made, err := packing.Make(ctx, &o.deployment, d, *what)
		if err == nil {
			printPacked(streams, made)
		}
		return err
	})
}

func printPacked(streams console.Streams, made *packing.Packed) {
	streams.Err.End() // both streams may be the same terminal
	if len(made.Absent) > 0 {
		fmt.Fprintf(streams.Err, "slipway: these secrets are not at hand, and so could not be searched for once more: %s\n", strings.Join(made.Absent, ", "))
	}
	if len(made.Info.Hidden) > 0 {
		fmt.Fprintf(streams.Err, "slipway: the package has no value for what looks like a secret: %s\n", strings.Join(made.Info.Hidden, ", "))
	}
	if made.Info.OtherImages {
		fmt.Fprintln(streams.Err, "slipway: the bundle or lock is another than that of the run: the package has the digests of the run's tools, and none of its images")
	}
	if made.Lacks != "" {
		fmt.Fprintf(streams.Err, "slipway: the package has nothing of what was there before the upgrade, which so is reproduced by an install on an empty cluster: %s\n", made.Lacks)
	}
	fmt.Fprintf(streams.Out, "%s: run %s, %d files, %d KiB\n", made.File, made.Info.Run, made.Files, (made.Bytes+1023)>>10)
}

func (o *saveOptions) check(io console.Streams) error {
	if o.packing.Run != "" || o.packing.Out != "" || o.key != "" {
		return usage.Errorf("--run, --out and --key make a package; --verify looks at one, with --package-key FILE")
	}
	p, err := packing.Verify(o.verify, o.signer)
	if err != nil {
		return err
	}
	fmt.Fprintf(io.Text(), "%s is whole: %d files, %s\n", redact.OneLine(o.verify), len(p.Files), p.Digest)
	fmt.Fprintf(io.Text(), "run %s, %s of %s: %s\n", p.Run, p.Workflow, p.Deployment, strings.TrimSpace(p.Outcome+" "+p.Code+" "+p.Step))
	if p.OtherImages {
		fmt.Fprintln(io.Text(), "its images are not known: it was made with another bundle or lock than the run")
	}
	switch {
	case !p.Signed:
		fmt.Fprintln(io.Text(), "nobody has signed it")
	case o.signer == "":
		fmt.Fprintln(io.Text(), "it has a signature; --package-key FILE verifies whose")
	default:
		fmt.Fprintln(io.Text(), p.SignedBy)
	}
	return nil
}
