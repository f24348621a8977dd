package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/images"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/inventory"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/fault"
)

type lockVerifyOptions struct {
	program *Program
	bundle  string
	trust   images.Trust
}

func newLockVerify(p *Program) *cobra.Command {
	o := lockVerifyOptions{program: p}
	cmd := &cobra.Command{
		Use: "verify", Short: "Check that program, tools and images are those of the lock file", Example: `  slipway lock verify`, Args: noArgs, RunE: atOnce(o.run),
		Long: `Prove that what this machine runs is what the lock in this program pins:

- the bundle is the one that --bundle-digest names, or that --bundle-key or
  --certificate-identity signed
- this program and that of the bundle are compiled from the same sources
- every file of the bundle is the one that its index names, by sha256
- tools and manifests are of the pinned versions and origins
- every image is the one that the index names, down to each layer, by digest
- every Debian package in the images is of the pinned version

Everything that differs is named. The last line, "lock sha256:…", is the same wherever all
of this is the same; reports have it too. docs/lock.md says what goes into it.`,
	}
	images.AddBundle(cmd.Flags(), &o.bundle)
	o.trust.AddFlags(cmd.Flags())
	return cmd
}

// codeProgram: this program is not the one of the bundle, or nobody knows.
const codeProgram fault.Code = "LCK-006"

func (o *lockVerifyOptions) run(ctx context.Context, io console.Streams, _ []string) error {
	if o.bundle == "" {
		return usage.Errorf("give --bundle DIR or set SLIPWAY_BUNDLE")
	}
	pins, err := lock.Load()
	if err != nil {
		return err
	}
	b, err := bundle.Read(o.bundle)
	if err != nil {
		return err
	}
	vouched, unknown := o.trust.Check(ctx, b)
	damaged := b.Verify(ctx)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	contents, other := inventory.Read(ctx, b)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if other == nil {
		other = pins.VerifyPackages(b.Platform, contents)
	}
	if err := together(unknown, o.same(b), damaged, pins.Verify(b), other); err != nil {
		return err
	}
	line, err := lock.LineOf(pins, b.Index)
	if err != nil {
		return err
	}
	packages := map[string]bool{}
	for _, of := range contents {
		for name := range of {
			packages[name] = true
		}
	}
	pinned := "as pinned"
	if len(pins.Packages[b.Platform]) == 0 {
		pinned = "not pinned for " + b.Platform
	}
	_, err = fmt.Fprintf(io.Text(), "program: sources %s, as the bundle's\nbundle: %s, %s\n%d files for %s, %d images, by digest\nDebian packages: %d, %s\nlock %s\n",
		o.program.Source, vouched.Digest, vouched.By, len(b.Files), b.Platform, len(b.Index.Images), len(packages), pinned, line)
	return err
}

// same compares the sources of this program with those of the one in the bundle.
func (o *lockVerifyOptions) same(b *bundle.Bundle) error {
	tool, ok := b.Tool("slipway")
	f := &fault.Fault{Code: codeProgram, Class: fault.Preflight, Op: "compare this program with the bundle's"}
	want := strings.TrimPrefix(tool.Origin, "source:")
	switch {
	case !ok:
		f.Err, f.Fix = errors.New("the bundle has none"), bundle.Fix
	case o.program.Source == want && want != "":
		return nil
	case o.program.Source == "":
		f.Err = errors.New("this program does not know its sources")
		f.Fix = "run the bundle's own, or one that make build has built"
	default:
		f.Err = fmt.Errorf("its sources are %s, those of the bundle's program %s", o.program.Source, want)
		f.Fix = "run the bundle's own, or build both from one checkout: make build bundle"
	}
	return f
}
