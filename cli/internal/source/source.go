// Package source finds the configuration and the platform release that a command works on, and checks them.
package source

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/document"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages"
)

// EnvDeployment names the deployment to work on, where no flag does.
const EnvDeployment = "SLIPWAY_DEPLOYMENT"

// codeOtherName: a stored configuration names another deployment, whose state it would use.
const codeOtherName fault.Code = "CFG-011"

// Source is the configuration that a command works on, as its flags say.
type Source struct {
	// Release reads the platform release, for the names of its steps; nil, or a nil release: unknown.
	Release func(*config.Config) *platform.Release

	*Program        // the providers and stores that it may name
	File     string // path, "-" or ""
	Name     string // of the deployment, as the command line has it
	State    string // URL of the bucket; replaces the configuration's

	Stored     bool   // File is the configuration stored under Deployment
	Deployment string // name of the stored configuration that was chosen; empty: none
	// Brought says that File came in a package: no variable of the environment is read.
	Brought bool
	Stdin   []byte // the configuration that was read from standard input

	flags *pflag.FlagSet
}

// Declare declares the flags of a command that reads a configuration.
func (s *Source) Declare(cmd *cobra.Command, p *Program) {
	s.Program = p
	cmd.Flags().SortFlags = false
	s.AddFlags(cmd.Flags())
	CompleteName(cmd, "name")
}

// AddFlags declares --config and --name; see choose.
func (s *Source) AddFlags(set *pflag.FlagSet) {
	s.flags = set
	set.StringVarP(&s.File, "config", "c", "", "configuration of the deployment, YAML; - is standard input")
	set.StringVarP(&s.Name, "name", "n", "", "name of the deployment, stored or new (env "+EnvDeployment+")")
	usage.Group(set, usage.Deployment, "config", "name")
}

// AddState declares --state.
func (s *Source) AddState(set *pflag.FlagSet) {
	set.StringVar(&s.State, "state", "", "bucket with the deployment's state, as a URL; replaces state.url")
	usage.Group(set, usage.Deployment, "state")
}

// Load reads and validates the configuration. What an older version would be now is printed.
func (s *Source) Load(io console.Streams) (*config.Config, error) {
	data, err := s.Read(io)
	if err != nil {
		return nil, err
	}
	cfg, err := s.Parse(data, s.printMigration(io.Err))
	if err != nil {
		return nil, err
	}
	return cfg, s.CheckName(cfg)
}

// Warn prints doubts about a valid configuration.
func Warn(w io.Writer, cfg *config.Config) {
	for _, p := range cfg.Doubts() {
		fmt.Fprintf(w, "warning: %s\n", p)
	}
}

// Default makes every setting have its default.
func (s *Source) Default() {
	s.File, s.Name, s.State, s.Stored, s.Deployment = "", "", "", true, config.Default().Global.Name
}

// FileName names the configuration in messages.
func (s *Source) FileName() string {
	if s.File == "-" {
		return "standard input"
	}
	return s.File
}

// Read reads the chosen configuration; empty if there is none.
func (s *Source) Read(streams console.Streams) (data []byte, err error) {
	if err := s.choose(streams.Err); err != nil {
		return nil, err
	}
	switch s.File {
	case "":
	case "-":
		if s.Stdin == nil { // a command may read its configuration more than once
			s.Stdin, err = Contents("-", streams)
		}
		data = s.Stdin
	default:
		data, err = bounded.File(s.File, bounded.Written)
	}
	if err != nil {
		fix := "give the path of a file that exists: --config slipway.yaml"
		if s.Stored {
			fix = "give yourself access to the file, or choose another deployment: slipway use NAME"
		}
		return nil, &fault.Fault{Code: config.CodeUnreadable, Class: fault.Usage, Op: "read the configuration", Fix: fix, Err: err}
	}
	return data, nil
}

// Parse validates a configuration.
func (s *Source) Parse(data []byte, migrated func([]config.Change)) (*config.Config, error) {
	name := s.Name
	if s.Stored { // the stored name applies
		name = ""
	}
	opts := s.Providers.Options()
	opts.File, opts.Name, opts.StateURL, opts.Env, opts.Migrated = s.FileName(), name, s.State, os.LookupEnv, migrated
	opts.Stores = map[string][]string{}
	if s.Brought || usage.InModule() {
		opts.Env = func(string) (string, bool) { return "", false } // the caller's variables are not here
	}
	buckets := store.Options{Openers: s.Stores}
	for scheme, opener := range buckets.Openers {
		opts.Stores[scheme] = opener.Credentials()
	}
	opts.Store = func(url string) error {
		_, err := store.CheckURL(url, buckets)
		return err
	}
	opts.Steps = func(cfg *config.Config) (map[string][]string, error) {
		provider, err := s.Providers.Get(cfg.Provider)
		if err != nil && slices.Contains(s.Providers.Names(), cfg.Provider) {
			return nil, nil // it cannot be installed, so it has no steps
		}
		if err != nil {
			return nil, err
		}
		if s.Release == nil {
			return stages.Steps(provider, cfg, nil)
		}
		return stages.Steps(provider, cfg, s.Release(cfg))
	}
	return config.Load(data, opts)
}

// CheckName rejects a configuration that is stored under another name.
func (s *Source) CheckName(cfg *config.Config) error {
	if !s.Stored || cfg.Global.Name == s.Deployment {
		return nil
	}
	return &fault.Fault{Code: codeOtherName, Class: fault.Usage, Op: "read " + s.File,
		Fix: fmt.Sprintf("set global.name to %s there, or rename the file to %s.yaml", s.Deployment, cfg.Global.Name),
		Err: fmt.Errorf("it is kept as deployment %s, and global.name in it is %s: its state would be that one's", s.Deployment, cfg.Global.Name)}
}

// Path resolves a path in the configuration, relative to its directory.
func (s *Source) Path(path string) string {
	if s.File != "" && s.File != "-" && !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(s.File), path)
	}
	return path
}

// printMigration lists the changes of a migration that was not written.
func (s *Source) printMigration(w io.Writer) func([]config.Change) {
	return func(changes []config.Change) {
		fmt.Fprintf(w, "slipway: %s is of an older version; it is read as if it were of %s:\n", s.FileName(), config.APIVersion)
		for _, c := range changes {
			fmt.Fprintf(w, "  %s\n", c)
		}
		which := "--config " + fault.Quote(s.File)
		if s.Stored {
			which = "--name " + fault.Quote(s.Deployment)
		}
		fmt.Fprintf(w, "  slipway config migrate %s writes it so\n", which)
	}
}

// choose finds the configuration: the file of --config; the one stored under --name, if any; else the one of the
// environment or of slipway use, which it reports on w. The Dagger module has no stored ones.
func (s *Source) choose(w io.Writer) error {
	switch {
	case s.Stored: // it was chosen before
		return nil
	case s.Name == "" && s.flags != nil && s.flags.Changed("name"): // as "$NAME" is where NAME is not set
		return usage.Errorf("--name is empty; give a name")
	case usage.InModule() || s.File != "":
		return nil
	}
	folder, err := config.DefaultFolder()
	if err != nil {
		return err
	}
	name, how, err := s.storedName(w, folder)
	if err != nil || name == "" {
		return err
	}
	file, err := folder.Find(name)
	if err != nil && how == EnvDeployment {
		err = fmt.Errorf("%s: %w", EnvDeployment, err)
	}
	if err != nil {
		return err
	}
	s.Deployment, s.File, s.Stored = name, file, true
	if how != "" {
		fmt.Fprintf(w, "slipway: deployment %s (chosen with %s; --name chooses another)\n", name, how)
	}
	return nil
}

// storedName is the stored deployment to use and, without --name, how it was chosen; no name: none. It warns of a name
// that is similar to a stored one.
func (s *Source) storedName(w io.Writer, folder config.Folder) (name, how string, err error) {
	if s.Name != "" {
		there, err := folder.Has(s.Name)
		if there || err != nil {
			return s.Name, "", err
		}
		stored, err := folder.Names()
		if near := document.Nearest(s.Name, stored); near != "" {
			fmt.Fprintf(w, "slipway: no configuration is stored as %s, so the defaults apply; did you mean %s?\n", document.Quote(s.Name), near)
		}
		return "", "", err
	}
	if name := os.Getenv(EnvDeployment); name != "" {
		return name, EnvDeployment, nil
	}
	name, err = folder.Current()
	return name, "slipway use", err
}

// Recorded reads a configuration, or the recorded one in the directory of a run.
func Recorded(file string, io console.Streams) (text []byte, recorded bool, err error) {
	if info, err := os.Stat(file); file == "-" || err != nil || !info.IsDir() {
		text, err = Contents(file, io)
		return text, false, err
	}
	name := filepath.Join(file, "config.yaml")
	info, err := os.Lstat(name)
	if err == nil && !info.Mode().IsRegular() { // a stranger may have made it a link or a pipe
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err == nil {
		text, err = bounded.File(name, bounded.Written)
	}
	return text, true, err
}

// Contents is what a file holds, or standard input (-), which an interruption leaves.
func Contents(file string, io console.Streams) ([]byte, error) {
	if file != "-" {
		return bounded.File(file, bounded.Written)
	}
	var text []byte
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		text, err = bounded.Read(io.In, bounded.Written)
	}()
	select {
	case <-done:
		return text, err
	case <-io.Stop:
		return nil, console.Interrupted("read standard input", "run the same command again")
	}
}
