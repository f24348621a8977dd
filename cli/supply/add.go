package supply

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/images"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/containers/acquire"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/registries"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/imageref"
)

type bundleAddOptions struct {
	source.Local
	trust        images.Trust
	force, plain bool
}

// NewBundleAdd is slipway bundle add.
func NewBundleAdd(p *source.Program) *cobra.Command {
	var o bundleAddOptions
	cmd := &cobra.Command{
		Use: "add DIR [REF[=SOURCE]]...", Short: "Add images to a bundle, for clusters without a network",
		Long: `Add images to a bundle, so that manifests and charts that name them work without a network.

REF is a reference as in a manifest, by tag or digest. Without SOURCE, the image comes from its own
registry, with the credentials of docker login. SOURCE is another reference, or the path of an OCI
layout or archive (also of docker save); PATH:NAME if the image has another name there. From an image
for several platforms, Slipway takes the bundle's.

Without REF, Slipway adds all images that the platform release runs and the bundle lacks.

If --bundle-digest or its variable names the bundle as it was, your commands accept it with the
added images. Everybody else, and dagger call until make bundle has run again, needs the new
digest, which is in the last line.

Images in the bundle stay. After an interrupt, run the same command again.`,
		Example: `  slipway bundle add DIR --platform ./my-platform
  slipway bundle add DIR redis:8.2=redis.tar registry.k8s.io/pause:3.10=mirror.example.com/k8s/pause:3.10`,
		Args: usage.Takes(1, math.MaxInt, "give the directory of a bundle: slipway bundle add DIR REF=FILE"), RunE: console.AtOnce(o.run),
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&o.force, "force", false, "replace an image that the bundle has under the same reference")
	cmd.Flags().BoolVar(&o.plain, "plain-http", false, "allow HTTP without TLS to other machines")
	o.trust.AddFlags(cmd.Flags())
	o.Declare(cmd, p)
	return cmd
}

func (o *bundleAddOptions) run(ctx context.Context, io console.Streams, args []string) error {
	add := acquire.Options{
		Dir: args[0], Replace: o.force, PlainHTTP: o.plain,
		Observe: transferPrinter(io.Err, "added"),
		Keep: func(before, after string) {
			all, err := bundle.OwnAdditions()
			if err == nil {
				err = all.Keep(before, after)
			}
			if err != nil {
				fmt.Fprintf(io.Err, "warning: %v; what uses the bundle needs --bundle-digest %s\n", err, fault.Quote(after))
			}
		},
		Waiting: func() { fmt.Fprintln(io.Err, "waiting for another slipway bundle add on "+fault.Quote(args[0])) },
	}
	b, _, err := o.trust.Read(ctx, args[0])
	if err != nil {
		return err
	}
	for _, text := range args[1:] {
		r, err := acquire.ParseRequest(text)
		if err != nil {
			return err
		}
		add.Images = append(add.Images, r)
	}
	if len(add.Images) == 0 {
		if add.Images, err = o.missingImages(ctx, io, b); err != nil {
			return err
		}
		if len(add.Images) == 0 {
			_, err = fmt.Fprintf(io.Text(), "nothing is missing in %s\n", args[0])
			return err
		}
	}
	if err := acquire.Add(ctx, add); err != nil {
		return err
	}
	if b, err = bundle.Read(args[0]); err != nil {
		return err
	}
	fmt.Fprintf(io.Text(), "the images are in %s; to list them: slipway bundle list %s\nits digest is %s\n", args[0], fault.Quote(args[0]), b.ReadDigest())
	return nil
}

// missingImages are the images that the release runs and that b does not have.
func (o *bundleAddOptions) missingImages(ctx context.Context, io console.Streams, b *bundle.Bundle) ([]acquire.Request, error) {
	cfg, r, err := o.Load(io)
	if err != nil {
		return nil, err
	}
	check := source.Check{Program: o.Source.Program, Config: cfg, Release: r, Provider: o.Provider(cfg), Images: containers.Describe(b), Manifests: os.DirFS(b.Path("manifests")), Known: true}
	uses, err := check.Missing(ctx, io.Err)
	if err != nil {
		return nil, err
	}
	var out []acquire.Request
	var short, refused []error
	for _, u := range uses {
		if imageref.IsShort(u.Image) {
			short = append(short, fmt.Errorf("component %s (%s) runs the image %s of the bundle", u.Component, source.PlaceOf(r, u), u.Image))
			continue
		}
		request, err := acquire.ParseRequest(u.Image)
		if err != nil {
			refused = append(refused, fmt.Errorf("component %s (%s): %w", u.Component, source.PlaceOf(r, u), err))
			continue
		}
		same := func(r acquire.Request) bool { return r.Image.String() == request.Image.String() }
		if !slices.ContainsFunc(out, same) {
			out = append(out, request)
		}
	}
	if len(short) > 0 {
		refused = append(refused, usage.Errorf("%w, which only another bundle can have: make bundle PLATFORM=DIR", errors.Join(short...)))
	}
	return out, console.Together(refused...)
}

// transferPrinter prints each image when it is done, and its progress every five seconds.
func transferPrinter(w io.Writer, done string) func(registries.Progress) {
	last := time.Now()
	return func(p registries.Progress) {
		line := fmt.Sprintf("%2d/%d %s", p.N, p.Of, p.Image)
		switch {
		case p.There:
			fmt.Fprintln(w, line, "there already")
		case p.Finished:
			fmt.Fprintf(w, "%s %s, %.1f MB in %.1f s\n", line, done, float64(p.Total)/1e6, p.Took.Seconds())
		case time.Since(last) < 5*time.Second:
			return
		default:
			fmt.Fprintf(w, "%s, %.0f %% of %.1f MB\n", line, 100*float64(p.Done)/float64(max(p.Total, 1)), float64(p.Total)/1e6)
		}
		last = time.Now()
	}
}
