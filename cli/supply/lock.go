package supply

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/images"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/containers/ociarchive"
	"github.com/slipway-sh/slipway/fault"
)

// NewLockVerify is slipway lock verify.
func NewLockVerify(p *source.Program) *cobra.Command {
	var dir string
	var t images.Trust
	cmd := &cobra.Command{
		Use: "verify", Short: "Check that program, tools and images are those of the lock file", Example: `  slipway lock verify`, Args: usage.NoArgs,
		RunE: console.AtOnce(func(ctx context.Context, io console.Streams, _ []string) error {
			return verifyLock(ctx, io, p.Source, dir, &t)
		}),
		Long: `Prove that this machine runs what the lock in this program pins:

- the bundle has the --bundle-digest, or a signature by --bundle-key or --certificate-identity
- this program and the bundle's are compiled from the same sources
- every file of the bundle has the sha256 of its index
- tools and manifests have the pinned versions and origins
- every image has the digests of the index, down to each layer
- every Debian package in the images has the pinned version

It names everything that differs. The last line, "lock sha256:…", is the same wherever all of this
is the same; reports have it, too. docs/lock.md says what it covers.`,
	}
	images.AddBundle(cmd.Flags(), &dir)
	t.AddFlags(cmd.Flags())
	return cmd
}

// codeProgram: this program is not the bundle's, or its sources are unknown.
const codeProgram fault.Code = "LCK-006"

func verifyLock(ctx context.Context, io console.Streams, sources, dir string, t *images.Trust) error {
	if dir == "" {
		return usage.Errorf("give --bundle DIR or set SLIPWAY_BUNDLE")
	}
	pins, err := lock.Load()
	if err != nil {
		return err
	}
	b, err := bundle.Read(dir)
	if err != nil {
		return err
	}
	vouched, unknown := t.Check(ctx, b)
	damaged := b.Verify(ctx)
	contents, other := ociarchive.Packages(ctx, b)
	if other == nil {
		other = pins.VerifyPackages(b.Platform, contents)
	}
	if err := console.Together(unknown, sameProgram(sources, b), damaged, pins.Verify(b), other); err != nil {
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
		sources, vouched.Digest, vouched.By, len(b.Files), b.Platform, len(b.Index.Images), len(packages), pinned, line)
	return err
}

// sameProgram compares the sources of this program with those of the one in the bundle.
func sameProgram(sources string, b *bundle.Bundle) error {
	tool, ok := b.Tool("slipway")
	f := &fault.Fault{Code: codeProgram, Class: fault.Preflight, Op: "compare this program with the bundle's"}
	want := strings.TrimPrefix(tool.Origin, "source:")
	switch {
	case !ok:
		f.Err, f.Fix = errors.New("the bundle has none"), bundle.Fix
	case sources == want && want != "":
		return nil
	case sources == "":
		f.Err = errors.New("this program does not know its sources")
		f.Fix = "run the bundle's own, or one that make build has built"
	default:
		f.Err = fmt.Errorf("its sources are %s, those of the bundle's program %s", sources, want)
		f.Fix = "run the bundle's own, or build both from one checkout: make build bundle"
	}
	return f
}
