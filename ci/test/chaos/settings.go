package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/providers/all"
)

// settings are the flags.
type settings struct {
	root     string // the checkout
	bundle   string
	lock     string
	platform string
	config   string
	own      bool // its cluster is one that Slipway runs on the engine
	rounds   int
	seed     uint64
	kinds    []kind
	pause    time.Duration
	bucket   bool
	other    string
	name     string
	at       string
	logs     string
}

// parse reads the command line of a program that runs in ci/test. What paths in it are
// relative to is the checkout.
func parse(args []string, errw io.Writer) (settings, error) {
	var s settings
	var list string
	set := flag.NewFlagSet("chaos", flag.ContinueOnError)
	set.SetOutput(errw)
	set.StringVar(&s.bundle, "bundle", os.Getenv("SLIPWAY_BUNDLE"), "the bundle's directory (env SLIPWAY_BUNDLE); paths are relative to the checkout")
	set.StringVar(&s.lock, "lock", "", "file with the digests of a registry, which images then come from; provider existing needs it")
	set.StringVar(&s.platform, "platform", "", "directory of the platform release; that of the configuration if not given, else the reference platform")
	set.StringVar(&s.config, "config", "", "the deployment's configuration; its name is replaced by --name")
	set.IntVar(&s.rounds, "rounds", 30, "how many installs are disturbed")
	set.Uint64Var(&s.seed, "seed", 0, "seed of all that is random; 0 takes one from the clock and prints it")
	set.StringVar(&list, "kinds", "", "what is done, in turn, see below; all that --bucket allows if not given")
	set.DurationVar(&s.pause, "pause", 2*time.Minute, "how long something is stopped or cut off")
	set.BoolVar(&s.bucket, "bucket", false, "keep the deployment's state in a bucket, of an S3 server on this machine")
	set.StringVar(&s.other, "other-engine", "", "address of a second engine, unix://…, for the other install of the kinds contend…; needs --bucket and provider existing")
	set.StringVar(&s.name, "name", "chaos", "name of the deployment, which is removed first and last")
	set.StringVar(&s.at, "at", "", "disturb within five seconds of this step's beginning, STAGE/STEP; at any moment of the install if not given")
	set.StringVar(&s.logs, "logs", "", "directory for what the installs print; a temporary one if not given")
	set.Usage = func() {
		fmt.Fprintln(errw, "Disturbs real installs, lets each continue, and checks what comes out.")
		set.PrintDefaults()
		fmt.Fprintln(errw, "Kinds:")
		for _, k := range kinds {
			fmt.Fprintf(errw, "  %s\n    \t%s\n", k.name, k.does)
		}
	}
	if err := set.Parse(args); err != nil {
		return s, err
	}
	switch {
	case set.NArg() > 0:
		return s, fmt.Errorf("unexpected argument %q", set.Arg(0))
	case s.rounds < 1:
		return s, fmt.Errorf("%d rounds are too few: give 1 or more", s.rounds)
	case s.pause <= 0:
		return s, fmt.Errorf("--pause %s is too short", s.pause)
	case s.bundle == "":
		return s, errors.New("no bundle: give --bundle DIR, or run make chaos")
	}
	if s.seed == 0 {
		s.seed = uint64(time.Now().UnixNano())
	}
	err := s.resolve()
	if err == nil {
		s.own, err = clusterOf(s.config)
	}
	if err == nil {
		err = s.choose(list)
	}
	if err == nil && s.other != "" && (s.own || !s.bucket) {
		err = errors.New("two engines have only a bucket and a cluster that is there already in common: --other-engine needs --bucket and provider existing")
	}
	return s, err
}

// resolve makes paths absolute.
func (s *settings) resolve() (err error) {
	if s.root, err = filepath.Abs(filepath.Join("..", "..")); err != nil { // go run -C ci/test
		return fmt.Errorf("find the checkout: %w", err)
	}
	for _, path := range []*string{&s.bundle, &s.lock, &s.platform, &s.config, &s.logs} {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(s.root, *path)
		}
	}
	return nil
}

// clusterOf reports whether Slipway itself runs the cluster of a configuration. file may be empty,
// for the defaults.
func clusterOf(file string) (own bool, err error) {
	var text []byte
	if file != "" {
		if text, err = os.ReadFile(file); err != nil {
			return false, fmt.Errorf("read the configuration: %w", err)
		}
	}
	known := all.All()
	opts := known.Options()
	opts.File, opts.Env = file, os.LookupEnv
	cfg, err := config.Load(text, opts)
	if err != nil {
		return false, err
	}
	p, err := known.Get(cfg.Provider)
	if err != nil {
		return false, err
	}
	_, own = p.(interface {
		Node(providers.Deployment) providers.NodeSpec
	})
	return own, nil
}
