// Command need makes sure that commands are on PATH and installs the Debian
// packages of those that are not: need chromium=chromium gcc=build-essential.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/slipway-sh/slipway/ci/dev/build/console"
	"github.com/slipway-sh/slipway/ci/dev/build/debian"
)

func main() { os.Exit(run(os.Args[1:], os.Stderr)) }

// run is main without the process: it returns the exit code.
func run(args []string, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var tools []debian.Tool
	for _, arg := range args {
		command, pkg, ok := strings.Cut(arg, "=")
		if !ok || command == "" || pkg == "" {
			fmt.Fprintf(stderr, "error: %q is not COMMAND=PACKAGE\n", arg)
			return 2
		}
		tools = append(tools, debian.Tool{Command: command, Package: pkg})
	}
	return console.Exit(ctx, stderr, debian.Need(ctx, func(text string) { fmt.Fprintln(stderr, text) }, tools...))
}
