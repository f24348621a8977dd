// Command sources prints the digest of what the program slipway is compiled from, for the
// linker, wherever slipway runs. Given systems, it checks that the program compiles for them:
//
//	go run -C ci/dev ./sources darwin/arm64 windows/amd64
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/slipway-sh/slipway/ci/dev/build/gotool"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, systems []string) error {
	checkout, err := gotool.Checkout()
	if err != nil {
		return err
	}
	if len(systems) == 0 {
		_, digest, err := gotool.Sources(ctx, checkout)
		fmt.Println(digest)
		return err
	}
	for _, system := range systems {
		if err := check(checkout, system); err != nil {
			return err
		}
	}
	return nil
}
