package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	own      bool // the configuration's cluster is one that Slipway runs on the engine
	rounds   int
	seed     uint64
	kinds    []string
	name     string
	to       string
	logs     string
}

// parse reads the command line of a program that runs in ci/test. What paths in it are
// relative to is the checkout.
func parse(args []string, errw io.Writer) (settings, error) {
	var s settings
	var kinds string
	set := flag.NewFlagSet("chaos", flag.ContinueOnError)
	set.SetOutput(errw)
	set.StringVar(&s.bundle, "bundle", os.Getenv("SLIPWAY_BUNDLE"), "the bundle's directory (env SLIPWAY_BUNDLE); paths are relative to the checkout")
	set.StringVar(&s.lock, "lock", "", "file with the digests of a registry, which images then come from; provider existing needs it")
	set.StringVar(&s.platform, "platform", "", "directory of the platform release; that of the configuration if not given, else the reference platform")
	set.StringVar(&s.config, "config", "", "the deployment's configuration; its name is replaced by --name")
	set.IntVar(&s.rounds, "rounds", 30, "how many installs are interrupted")
	set.Uint64Var(&s.seed, "seed", 0, "seed of the random moments; 0 takes one from the clock and prints it")
	set.StringVar(&kinds, "kinds", "", "what is done, in turn: "+strings.Join(kindNames(true), ",")+"; all that the provider's cluster allows if not given")
	set.StringVar(&s.name, "name", "chaos", "name of the deployment, which is removed first and last")
	set.StringVar(&s.to, "to", "", "install only to this step, STAGE/STEP; everything if not given")
	set.StringVar(&s.logs, "logs", "", "directory for what the installs print; a temporary one if not given")
	if err := set.Parse(args); err != nil {
		return s, err
	}
	switch {
	case set.NArg() > 0:
		return s, fmt.Errorf("unexpected argument %q", set.Arg(0))
	case s.rounds < 1:
		return s, fmt.Errorf("%d rounds are too few: give 1 or more", s.rounds)
	case s.bundle == "":
		return s, errors.New("no bundle: give --bundle DIR, or run make chaos")
	}
	if s.seed == 0 {
		s.seed = uint64(time.Now().UnixNano())
	}
	if err := s.resolve(); err != nil {
		return s, err
	}
	provider, own, err := clusterOf(s.config)
	if err != nil {
		return s, err
	}
	s.own = own
	s.kinds, err = chosen(kinds, provider, own)
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

// clusterOf is the provider of a configuration, and whether Slipway runs its cluster itself.
// file may be empty, for the defaults.
func clusterOf(file string) (provider string, own bool, err error) {
	var text []byte
	if file != "" {
		if text, err = os.ReadFile(file); err != nil {
			return "", false, fmt.Errorf("read the configuration: %w", err)
		}
	}
	known := all.All()
	opts := known.Options()
	opts.File, opts.Env = file, os.LookupEnv
	cfg, err := config.Load(text, opts)
	if err != nil {
		return "", false, err
	}
	p, err := known.Get(cfg.Provider)
	if err != nil {
		return "", false, err
	}
	_, own = p.(interface {
		Node(providers.Deployment) providers.NodeSpec
	})
	return cfg.Provider, own, nil
}

// chosen are the kinds in list, which is empty for all that there can be.
func chosen(list, provider string, own bool) ([]string, error) {
	if list == "" {
		return kindNames(own), nil
	}
	kinds := strings.Split(list, ",")
	for _, k := range kinds {
		switch {
		case !slices.Contains(kindNames(true), k):
			return nil, fmt.Errorf("--kinds holds %q; there are %s", k, strings.Join(kindNames(true), ", "))
		case !slices.Contains(kindNames(own), k):
			return nil, fmt.Errorf("--kinds holds %q, which stops the API server of a node that Slipway runs; that of provider %s is not Slipway's: give --kinds %s",
				k, provider, strings.Join(kindNames(own), ","))
		}
	}
	return kinds, nil
}
