// Command engine makes a Dagger engine reachable: the one that answers already,
// or one that it builds from Go modules and Debian packages and runs, as root,
// in a root file system and a process namespace of its own.
//
//	go run -C ci/dev/engine . start|image|stop|programs|outdated|env
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/slipway-sh/slipway/ci/dev/build"
	"github.com/slipway-sh/slipway/ci/dev/build/debian"
	"github.com/slipway-sh/slipway/ci/dev/build/gotool"
	"github.com/slipway-sh/slipway/fault"
)

const usage = `usage: engine <command>

commands:
  start   make an engine reachable: use the one of _EXPERIMENTAL_DAGGER_RUNNER_HOST when
          it answers, or run one in Docker, of the image SLIPWAY_ENGINE_IMAGE or of
          Dagger's own, else build one and run it (as root)
          --own     build and run one even where another answers
          --config FILE   the same, with this engine.json: what it collects is that one's
                    to say, cache volumes included
  image   build the image of the engine for Docker, load it there, and print its reference
          --push HOST/PATH   push it there in place of that
  stop    end the engine that start ran, and nothing else
  programs  build the engine and print the paths of its Go programs
  outdated  name the Debian packages of the engine for which Debian has a security update
  env     print the shell lines that lead clients to it: eval "$(engine env)"
`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	if len(args) == 1 && args[0] == insideCommand {
		return inside()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	flags := flag.NewFlagSet("engine", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(stderr, usage) }
	own := flags.Bool("own", false, "")
	config := flags.String("config", "", "")
	push := flags.String("push", "", "")
	command := ""
	if len(args) > 0 {
		command, args = args[0], args[1:]
	}
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if flags.NArg() > 0 {
		fmt.Fprint(stderr, usage)
		return 2
	}
	c, err := newControl(stdout, stderr)
	if err != nil {
		return build.Exit(ctx, stderr, err)
	}
	switch command {
	case "start":
		if *config != "" {
			if c.config, err = os.ReadFile(*config); err != nil {
				return build.Exit(ctx, stderr, err)
			}
		}
		err = c.start(ctx, *own || c.config != nil)
	case "image":
		err = c.image(ctx, *push)
	case "stop":
		err = c.stop(ctx)
	case "programs":
		err = c.programs(ctx)
	case "outdated":
		err = c.outdated(ctx)
	case "env":
		err = c.env(ctx)
	case "help", "-h", "--help":
		fmt.Fprint(stdout, usage)
		return 0
	default:
		fmt.Fprint(stderr, usage)
		return 2
	}
	return build.Exit(ctx, stderr, err)
}

type control struct {
	stdout, stderr io.Writer
	checkout       string // root of the repository
	store          *build.Store
	paths          paths
	timeout        time.Duration // how long an engine may take to answer after its start
	config         []byte        // engine.json of an engine that is started; nil: its own
}

func newControl(stdout, stderr io.Writer) (*control, error) {
	checkout, err := gotool.Checkout()
	if err != nil {
		return nil, err
	}
	st, err := build.OpenStore("")
	if err != nil {
		return nil, &fault.Fault{Class: fault.Preflight, Code: debian.CodeBuild, Op: "find a place for builds", Err: err,
			Fix: "set SLIPWAY_CACHE to a folder that you may write to"}
	}
	return &control{stdout: stdout, stderr: stderr, checkout: checkout, store: st, paths: pathsOf(st.Path()), timeout: startTimeout}, nil
}

func (c *control) logf(format string, args ...any) { fmt.Fprintf(c.stderr, format+"\n", args...) }

// The codes of this program's errors, besides debian.CodeBuild.
const (
	// codeRoot: the engine must be started or stopped by root on Linux.
	codeRoot = "ENG-005"
	// codeStart: the engine did not start, has another version, or could not be stopped.
	codeStart = "ENG-006"
	// codeNone: no engine, or no dagger CLI, was found.
	codeNone = "ENG-008"
)

// insideCommand is how start calls this program again, inside the namespaces
// of the engine. It is no command for people.
const insideCommand = "inside-engine-namespaces"

// setup is what the process inside needs to know; it reads it, as JSON, from its
// standard input.
type setup struct {
	Root    string   // folder: the engine's root, left as it is
	Config  string   // path of engine.json; empty: the file in Root
	SDK     string   // folder: the Go SDK's image
	Mount   string   // where to put the root together
	State   string   // what the engine keeps
	Runtime string   // holds the socket
	Network string   // name of the containers' network
	CIDR    string   // and its range
	Args    []string // of the engine
	Env     []string // of the engine, all of it
}
