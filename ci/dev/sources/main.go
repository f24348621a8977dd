// Command sources prints the digest of what the program slipway is compiled from, for the
// linker. It runs wherever slipway does.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/slipway-sh/slipway/ci/dev/build/gotool"
	"github.com/slipway-sh/slipway/ci/dev/build/sources"
)

func main() {
	root, err := gotool.Checkout()
	digest := ""
	if err == nil {
		_, digest, err = sources.OfSlipway(context.Background(), root)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	fmt.Println(digest)
}
