// Slipway installs and removes a Kubernetes-hosted platform
// with containerised steps on a Dagger engine.
package main

import (
	"context"
	"os"

	"github.com/slipway-sh/slipway/cli"
	"github.com/slipway-sh/slipway/pipeline/store/buckets"
	providers "github.com/slipway-sh/slipway/providers/all"
	"github.com/slipway-sh/slipway/stages/incontainer"
)

// Set by the linker.
var (
	version = cli.Unversioned
	source  string //nolint:gochecknoglobals // digest of the sources, "sha256:<hex>"; see ci/dev/sources
)

func main() {
	program := cli.Program{
		Version:   version,
		Source:    source,
		Providers: providers.All(),
		Stores:    buckets.All(),
		Steps:     incontainer.Steps,
		Contents:  incontainer.Contents,
		Render:    incontainer.Render,
	}
	os.Exit(cli.Run(context.Background(), program, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
