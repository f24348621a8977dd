// Slipway installs and removes a Kubernetes-hosted platform
// with containerised steps on a Dagger engine.
package main

import (
	"context"
	"os"

	"github.com/slipway-sh/slipway/cli"
)

// version is set by the linker.
var version = "dev"

func main() {
	os.Exit(cli.Run(context.Background(), version, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
