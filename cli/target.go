package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"dagger.io/dagger"
	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/migrate"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/containers/keeper"
	reference "github.com/slipway-sh/slipway/examples/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/progress"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/stages/conductor"
)

// target is what a command works on, as its flags say.
type target struct {
	config string // path, "-" or ""
	name   string
	// deployment is the one of --deployment; of one that is kept and that something
	// else chose, too. byName: config is the file that is kept under it.
	deployment string
	byName     bool
	bundle     string
	lock       string // path
	registry   string
	platform   string
	verbose    bool

	state, stateKey, stateCredentials string // URL, and paths

	// Ids of objects of this Dagger session, in files: how the Dagger module
	// hands its arguments on.
	bundleID, platformID string

	secrets string            // file with values for env:NAME
	values  map[string]string // in it; nil: not read yet

	flags *pflag.FlagSet
	given []byte // the configuration that was read from standard input
	cfg   *config.Config

	keep   keeping
	work   string         // the workflow of a run that changes something; empty: none
	joined *keeper.Client // whose session this one is; nil: its own
	ends   bool           // that one is to end with this process
	own    *opened        // the session that this process lends; nil: none
	shared keeper.Log     // of that session
}

// targetFlags declares the flags that every command on a deployment has.
func targetFlags(set *pflag.FlagSet) *target {
	t := &target{}
	configurationFlags(set, t)
	imageFlags(set, t)
	set.StringVarP(&t.name, "name", "n", "", "name of the deployment: one of slipway configure, or a new one; with --config it replaces the name there")
	set.StringVar(&t.state, "state", "", "URL of the bucket with the deployment's state, such as s3://bucket?region=eu-central-1; replaces state.url of the configuration")
	set.StringVar(&t.stateKey, "state-key", "", "file with the age identity that encrypts the deployment's secrets there; replaces state.key")
	set.StringVar(&t.stateCredentials, "state-credentials", "", "file with the credentials for it, NAME=value in each line; replaces state.credentials")
	set.BoolVarP(&t.verbose, "verbose", "v", false, "show everything the engine reports")
	set.StringVar(&t.platformID, "platform-id", "", "file with the Dagger id of the platform release's directory")
	_ = set.MarkHidden("platform-id")
	return t
}

// imageFlags declares the flags of commands that need the engine: where images come
// from, and secrets.
func imageFlags(set *pflag.FlagSet, t *target) {
	set.StringVar(&t.bundle, "bundle", os.Getenv("SLIPWAY_BUNDLE"), "directory with tools, images and manifests by digest, made by make bundle (env SLIPWAY_BUNDLE)")
	set.StringVar(&t.lock, "lock", os.Getenv("SLIPWAY_LOCK"), "file with the digests of a registry's images, written by slipway bundle push; in place of a bundle (env SLIPWAY_LOCK)")
	set.StringVar(&t.registry, "registry", "", "registry of these images, host[:port][/path]; replaces the one in the configuration and in the lock")
	set.StringVar(&t.secrets, "secrets", "", "file with secrets that the configuration refers to as env:NAME, NAME=value in each line; comes before the environment")
	set.StringVar(&t.bundleID, "bundle-id", "", "file with the Dagger id of the bundle's directory")
	_ = set.MarkHidden("bundle-id")
}

// platformFlags declares the flags of commands that need the platform release.
func platformFlags(set *pflag.FlagSet, t *target) {
	set.StringVar(&t.platform, "platform", "", "directory of the platform release; replaces platform.release of the configuration")
}

// load reads and validates the configuration. One of an older version is told of.
func (t *target) load(io streams) (*config.Config, error) {
	data, err := t.read(io)
	if err != nil {
		return nil, err
	}
	cfg, err := t.parse(data, t.tellMigrated(io.err))
	if err != nil {
		return nil, err
	}
	return cfg, t.itsName(cfg)
}

// fileName is the configuration's, for messages.
func (t *target) fileName() string {
	if t.config == "-" {
		return "standard input"
	}
	return t.config
}

// read reads the configuration that is taken; there is nothing in it when that is
// none.
func (t *target) read(streams streams) (data []byte, err error) {
	if err := t.choose(streams.err); err != nil {
		return nil, err
	}
	switch t.config {
	case "":
	case "-":
		data, err = contents("-", streams)
		t.given = data
	default:
		data, err = os.ReadFile(t.config)
	}
	if err != nil {
		fix := "give the path of a file that exists: --config slipway.yaml"
		if t.byName {
			fix = "give yourself access to the file, or choose another deployment: slipway use NAME"
		}
		return nil, &fault.Fault{Code: codeUnreadable, Class: fault.Usage, Op: "read the configuration", Fix: fix, Err: err}
	}
	return data, nil
}

// parse validates a configuration.
func (t *target) parse(data []byte, migrated func([]migrate.Change)) (*config.Config, error) {
	name := t.name
	if t.byName { // and so it has that name, or should
		name = ""
	}
	opts := config.Options{File: t.fileName(), Name: name, StateURL: t.state, Stores: map[string][]string{}, Env: os.LookupEnv, Migrated: migrated}
	if os.Getenv(moduleEnv) != "" {
		opts.Env = func(string) (string, bool) { return "", false } // the caller's are not here
	}
	buckets := store.Options{Openers: stores()}
	for scheme, opener := range buckets.Openers {
		opts.Stores[scheme] = opener.Credentials()
	}
	opts.Store = func(url string) error {
		_, err := store.CheckURL(url, buckets)
		return err
	}
	registry := providerRegistry()
	opts.Providers = registry.Names()
	opts.Section = registry.Validate
	opts.Steps = func(name string, section json.RawMessage) (map[string][]string, error) {
		provider, err := registry.Get(name)
		if errors.Is(err, &fault.Fault{Code: providers.CodeNoInstall}) {
			return nil, nil // it has no steps yet
		}
		if err != nil {
			return nil, err
		}
		return conductor.Steps(provider, section)
	}
	return config.Load(data, opts)
}

// conduct connects to the engine and calls do with a conductor. What can be
// checked without the engine is checked first, so that a wrong configuration
// starts nothing.
func (t *target) conduct(ctx context.Context, io streams, more func(*conductor.Options) error, do func(context.Context, *conductor.Conductor) error) error {
	cfg, err := t.load(io)
	if err != nil {
		return err
	}
	t.cfg = cfg
	credentials, err := t.givenCredentials()
	if err != nil {
		return err
	}
	provider, err := providerRegistry().Get(cfg.Provider)
	if err != nil {
		return err
	}
	pins, err := t.pins()
	if err != nil {
		return err
	}
	client, end, err := t.session(ctx, io)
	if err != nil {
		return err
	}
	defer end()

	opts := conductor.Options{Client: client, Config: cfg, Provider: provider, Version: io.version, Stop: io.stop, Hint: addressed(t.flags)}
	if t.joined != nil {
		opts.Kept = t.joined.Node
	}
	keep := t.watch(io.err, &opts)
	defer keep()
	opts.Tools = toolVersions(pins)
	opts.User, opts.Host = whoAmI()
	opts.Secret = func(ref config.SecretRef) (*dagger.Secret, error) { return t.secret(ctx, client, ref) }
	if opts.State, err = t.stateOf(opts, credentials); err != nil {
		return err
	}
	if opts.Images, err = t.images(ctx, client, pins, provider); err != nil {
		return err
	}
	if more != nil {
		if err := more(&opts); err != nil {
			return err
		}
	}
	return do(ctx, conductor.New(opts))
}

// directory is a directory of this machine, or the one whose id is in idFile.
func (t *target) directory(client *dagger.Client, path, idFile string) (*dagger.Directory, error) {
	if idFile != "" {
		id, err := os.ReadFile(idFile)
		if err != nil {
			return nil, fmt.Errorf("read the directory's id: %w", err)
		}
		return client.LoadDirectoryFromID(dagger.DirectoryID(id)), nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", path, err)
	}
	info, err := os.Stat(abs)
	if err == nil && !info.IsDir() {
		err = errors.New("it is not a directory")
	}
	if err != nil {
		return nil, &fault.Fault{Code: codeNoDirectory, Class: fault.Usage, Op: "open " + path,
			Fix: "give the path of a directory that exists", Err: err}
	}
	// A session that was joined may have read it before.
	return client.Host().Directory(abs, dagger.HostDirectoryOpts{NoCache: t.joined != nil}), nil
}

// release loads the platform release and hands it to the engine.
func (t *target) release(ctx context.Context, client *dagger.Client, opts *conductor.Options) error {
	var fsys fs.FS
	var err error
	path := t.platform
	if path == "" && t.platformID == "" && t.cfg.ReleaseIsPath() {
		path = t.cfg.Platform.Release
		if os.Getenv(moduleEnv) != "" {
			return &fault.Fault{Code: codeNoDirectory, Class: fault.Usage, Op: "open the platform release " + path,
				Fix: "name the directory on the command line too: dagger call install --platform DIR",
				Err: errors.New("it is on the machine that calls, and dagger call hands over only what a flag names")}
		}
		path = t.releasePath()
	}
	switch {
	case t.platformID != "" || path != "":
		if opts.ReleaseDir, err = t.directory(client, path, t.platformID); err != nil {
			return err
		}
		tmp, err := os.MkdirTemp("", "slipway-platform-")
		if err != nil {
			return fmt.Errorf("make a directory for the platform release: %w", err)
		}
		defer func() { _ = os.RemoveAll(tmp) }()
		if _, err := opts.ReleaseDir.Export(ctx, tmp); err != nil {
			return fmt.Errorf("read the platform release: %w", err)
		}
		fsys = os.DirFS(tmp)
		opts.Release, err = platform.Load(fsys)
		if err != nil {
			return err
		}
	default:
		if fsys, err = reference.Release(t.cfg.Platform.Release); err != nil {
			return err
		}
		if opts.Release, err = platform.Load(fsys); err != nil {
			return err
		}
		tmp, err := os.MkdirTemp("", "slipway-platform-")
		if err != nil {
			return fmt.Errorf("make a directory for the platform release: %w", err)
		}
		defer func() { _ = os.RemoveAll(tmp) }()
		if err := os.CopyFS(tmp, fsys); err != nil {
			return fmt.Errorf("unpack the platform release: %w", err)
		}
		if opts.ReleaseDir, err = client.Host().Directory(tmp).Sync(ctx); err != nil {
			return fmt.Errorf("hand the platform release to the engine: %w", err)
		}
	}
	opts.ReleaseDigest, err = platform.Digest(fsys)
	return err
}

// tlsKey hands the private key of a given certificate to the run: from file, or
// from where the configuration says.
func (t *target) tlsKey(opts *conductor.Options, file string) error {
	if t.cfg.TLS.Mode != config.Given {
		if file != "" {
			return errUsage{errors.New("--tls-key goes with tls.mode given in the configuration")}
		}
		return nil
	}
	var err error
	if file != "" {
		opts.TLSKey, err = t.secretFile(opts.Client, file)
	} else {
		opts.TLSKey, err = opts.Secret(t.cfg.TLS.Key)
	}
	if err != nil {
		return &fault.Fault{Code: codeNoKey, Class: fault.Usage, Op: "find the private key of the given certificate", Err: err,
			Fix: "put it where tls.key of the configuration says, or give --tls-key FILE"}
	}
	return nil
}

// engineLog shows the engine's log when it is wanted, else only the lines in
// which a step tells what goes on.
func engineLog(screen *progress.Screen, verbose bool) io.Writer {
	if verbose {
		return screen
	}
	return &progressLines{say: screen.Say}
}

// progressLines passes the part of each line after "slipway: ".
type progressLines struct {
	say  func(string)
	rest []byte
}

func (p *progressLines) Write(b []byte) (int, error) {
	p.rest = append(p.rest, b...)
	for {
		line, rest, ok := strings.Cut(string(p.rest), "\n")
		if !ok {
			return len(b), nil
		}
		p.rest = []byte(rest)
		if at := strings.Index(line, "slipway: "); at >= 0 && strings.Contains(line[at:], "/") {
			p.say(line[at+len("slipway: "):])
		}
	}
}
