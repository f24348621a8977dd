// Package release finds the platform release of a configuration.
package release

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"dagger.io/dagger"
	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/cli/internal/session"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/containers"
	platforms "github.com/slipway-sh/slipway/examples/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/conductor"
)

// Flags say where the platform release is, where the configuration does not.
type Flags struct {
	Dir string
	ID  string // file with the Dagger id of its directory: how the module hands it on
}

// AddFlags declares them.
func (f *Flags) AddFlags(set *pflag.FlagSet) {
	set.StringVar(&f.Dir, "platform", "", "directory of the platform release; replaces platform.release")
	usage.Group(set, usage.Deployment, "platform")
}

// AddID declares the flag of the Dagger module.
func (f *Flags) AddID(set *pflag.FlagSet) {
	set.StringVar(&f.ID, "platform-id", "", "file with the Dagger id of the platform release's directory")
	_ = set.MarkHidden("platform-id")
}

// Load reads the platform release of a configuration without an engine. path is what a
// path in the configuration leads to.
func (f *Flags) Load(cfg *config.Config, path func(string) string) (*platform.Release, error) {
	r, err := f.load(cfg, path)
	if err == nil && cfg.Git.URL != "" {
		return r.ForRepository(), nil
	}
	return r, err
}

func (f *Flags) load(cfg *config.Config, path func(string) string) (*platform.Release, error) {
	dir := f.Dir
	if dir == "" && cfg.ReleaseIsPath() {
		dir = path(cfg.Platform.Release)
	}
	if _, inGit := cfg.ReleaseInGit(); dir == "" && inGit {
		return nil, &fault.Fault{Code: CodeFetch, Class: fault.Usage, Op: "open the platform release " + cfg.Platform.Release,
			Fix: "check the repository out, and name the directory: --platform DIR", Err: errors.New("it is in a Git repository, and the engine fetches it when it is installed")}
	}
	if dir == "" {
		fsys, err := platforms.Release(cfg.Platform.Release)
		if err != nil {
			return nil, err
		}
		return platform.Load(fsys)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, &fault.Fault{Code: config.CodeUnreadable, Class: fault.Usage, Op: "open " + dir,
			Fix: "give the path of a directory that exists", Err: errors.Join(err, errors.New("a platform release is a directory"))}
	}
	root, err := os.OpenRoot(dir) // no link leads out of it, whenever somebody puts it there
	if err != nil {
		return nil, fmt.Errorf("open the platform release: %w", err)
	}
	r, err := platform.Open(root.FS())
	return platform.In(dir, r, err)
}

// Known is Load for who can do without: nil where the release cannot be read here, or
// does not fit the configuration, which others report.
func (f *Flags) Known(path func(string) string) func(*config.Config) *platform.Release {
	return func(cfg *config.Config) *platform.Release {
		if f.ID != "" {
			return nil
		}
		r, err := f.Load(cfg, path)
		if err == nil {
			_, err = Settings(nil, cfg, r)
		}
		if err != nil {
			return nil
		}
		return r
	}
}

// Anew calls do with a session on the engine that has read nothing yet. It is nil where
// the session at hand has not, either.
type Anew func(ctx context.Context, do func(*dagger.Client)) error

// Open loads the platform release of a configuration and hands it to the engine. path
// is what a path in the configuration leads to.
func (f *Flags) Open(ctx context.Context, cfg *config.Config, path func(string) string, anew Anew, opts *conductor.Options) error {
	dir := f.Dir
	if dir == "" && f.ID == "" && cfg.ReleaseIsPath() {
		if usage.InModule() {
			return &fault.Fault{Code: config.CodeUnreadable, Class: fault.Usage, Op: "open the platform release " + cfg.Platform.Release,
				Fix: "name the directory on the command line too: dagger call install --platform DIR",
				Err: errors.New("it is on the machine that calls, and dagger call hands over only what a flag names")}
		}
		dir = path(cfg.Platform.Release)
	}
	if git, inGit := cfg.ReleaseInGit(); dir == "" && f.ID == "" && inGit {
		return fetch(ctx, git, anew, opts)
	}
	if dir == "" && f.ID == "" {
		files, err := platforms.Release(cfg.Platform.Release)
		if err != nil {
			return err
		}
		return opts.UsePlatform(ctx, files)
	}
	from, err := session.Directory(opts.Client, dir, f.ID, anew != nil)
	if err != nil {
		return err
	}
	if err = opts.UsePlatformDir(ctx, from); f.ID != "" { // whose directory is somewhere else
		return err
	}
	opts.ReleaseFrom = f.Dir
	opts.Release, err = platform.In(dir, opts.Release, err)
	return err
}

// The codes of releases in Git repositories.
const (
	// CodeFetch: the release is in a Git repository, and the command needs it here, or the
	// engine cannot fetch it.
	CodeFetch fault.Code = "PLT-014"
	// codeDigest: the release is another one than the configuration says.
	codeDigest fault.Code = "PLT-015"
)

// fetch has the engine fetch a release from a Git repository.
func fetch(ctx context.Context, git config.GitRelease, anew Anew, opts *conductor.Options) error {
	what := "fetch the platform release " + git.Version + " of " + git.URL
	ref, err := git.Version, error(nil)
	find := func(client *dagger.Client) {
		opts.ReleaseCommit, err = client.Git(git.URL).Ref(git.Version).Commit(ctx)
	}
	if anew == nil {
		find(opts.Client)
	} else {
		if err := anew(ctx, find); err != nil {
			return err
		}
		ref = opts.ReleaseCommit
	}
	dir := opts.Client.Git(git.URL).Ref(ref).Tree(dagger.GitRefTreeOpts{DiscardGitDir: true, Depth: 1})
	if git.Folder != "" {
		dir = dir.Directory(git.Folder)
	}
	if err == nil {
		dir, err = dir.Sync(ctx)
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, &fault.Fault{Code: containers.CodeSessionEnded}) {
		return &fault.Fault{Code: CodeFetch, Class: fault.Preflight, Op: what, Err: err,
			Fix: "correct platform.release, or give the engine access to the server; a private repository is checked out, and its directory named: --platform DIR"}
	}
	if err != nil {
		return err
	}
	if err := opts.UsePlatformDir(ctx, dir); err != nil {
		return err
	}
	if git.Digest != "" && git.Digest != opts.ReleaseDigest {
		return &fault.Fault{Code: codeDigest, Class: fault.Preflight, Op: what,
			Err: fmt.Errorf("its digest is %s, not %s", opts.ReleaseDigest, git.Digest),
			Fix: "find out who changed it; if the change is intended, set the new digest in platform.release"}
	}
	return nil
}

// Settings adds to all what the platform release decides: which components are on.
func Settings(all []config.Setting, cfg *config.Config, release *platform.Release) ([]config.Setting, error) {
	if err := release.Fits(cfg); err != nil {
		return nil, err
	}
	off, err := release.Off(cfg.Choices())
	if err != nil {
		return nil, err
	}
	for _, c := range release.Components {
		path := "platform.components." + c.Name + ".enabled"
		if slices.ContainsFunc(all, func(s config.Setting) bool { return s.Path == path }) {
			continue
		}
		origin := fmt.Sprintf("platform %s %s", release.Name, release.Version)
		all = append(all, config.Setting{Path: path, Value: strconv.FormatBool(!slices.Contains(off, c.Name)), Origin: origin})
	}
	slices.SortStableFunc(all, func(a, b config.Setting) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}
