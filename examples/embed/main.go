// Embed installs the reference platform with Slipway's packages and a provider of its
// own; see README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/containers/trust"
	reference "github.com/slipway-sh/slipway/examples/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/conductor"
)

const configuration = `{apiVersion: slipway.sh/v1, global: {name: embedded}, lab: {port: 8443}}`

// digest is the variable with the digest of the bundle, which is looked at before anything of
// it runs.
const digest = "SLIPWAY_BUNDLE_DIGEST"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "embed:", err)
	}
	os.Exit(int(fault.ClassOf(err))) // as slipway's
}

func run(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return errors.New("give a workflow, install or destroy, and the directory of a bundle")
	}
	workflow, err := stages.Named(args[0])
	if err != nil {
		return err
	}
	cfg, err := config.Load([]byte(configuration), providers.NewRegistry(Provider{}).Options())
	if err != nil {
		return err
	}
	pins, err := lock.Load()
	if err != nil {
		return err
	}
	client, err := dagger.Connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	opts := conductor.Options{Client: client, Config: cfg, Provider: Provider{}, Tools: pins.Versions()}
	wanted := trust.Anchor{Digest: os.Getenv(digest), Name: digest}
	if opts.Images, err = containers.FromBundle(ctx, client, client.Host().Directory(args[1]), wanted); err != nil {
		return err
	}
	files, err := reference.Release(cfg.Platform.Release)
	if err != nil {
		return err
	}
	if err := opts.UsePlatform(ctx, files); err != nil {
		return err
	}
	c, err := conductor.New(opts)
	if err != nil {
		return err
	}
	record, err := c.Conduct(ctx, workflow)
	if record != nil {
		err = errors.Join(err, record.Summary(os.Stdout))
	}
	return err
}
