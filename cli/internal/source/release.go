package source

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

// Release says where the platform release is, where the configuration does not.
type Release struct {
	Dir string
	ID  string // file with the Dagger id of its directory, from the module
}

// AddFlags declares them.
func (f *Release) AddFlags(set *pflag.FlagSet) {
	set.StringVar(&f.Dir, "platform", "", "directory of the platform release; replaces platform.release")
	usage.Group(set, usage.Deployment, "platform")
}

// AddID declares the flag of the Dagger module.
func (f *Release) AddID(set *pflag.FlagSet) {
	set.StringVar(&f.ID, "platform-id", "", "file with the Dagger id of the platform release's directory")
	_ = set.MarkHidden("platform-id")
}

// Load reads the platform release without an engine. path resolves a path in the configuration.
func (f *Release) Load(cfg *config.Config, path func(string) string) (*platform.Release, error) {
	r, err := f.load(cfg, path)
	if err == nil && cfg.Git.URL != "" {
		return r.ForRepository(), nil
	}
	return r, err
}

func (f *Release) load(cfg *config.Config, path func(string) string) (*platform.Release, error) {
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
	root, err := os.OpenRoot(dir) // no link leads out of it
	if err != nil {
		return nil, fmt.Errorf("open the platform release: %w", err)
	}
	r, err := platform.Open(root.FS())
	return platform.In(dir, r, err)
}

// Known is Load without errors: nil if the release cannot be read here or does not fit the configuration.
func (f *Release) Known(path func(string) string) func(*config.Config) *platform.Release {
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

// Anew calls do with a new session on the engine; nil if the current one has read nothing yet.
type Anew func(ctx context.Context, do func(*dagger.Client)) error

// Open loads the platform release and hands it to the engine. path resolves a path in the configuration.
func (f *Release) Open(ctx context.Context, cfg *config.Config, path func(string) string, anew Anew, opts *conductor.Options) error {
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
	if err = opts.UsePlatformDir(ctx, from); f.ID != "" { // its directory is elsewhere
		return err
	}
	opts.ReleaseFrom = f.Dir
	opts.Release, err = platform.In(dir, opts.Release, err)
	return err
}

// The codes of releases in Git repositories.
const (
	// CodeFetch: the release is in a Git repository, and the engine cannot fetch it or the command needs it here.
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

// codeOtherVersion: the release is of another version than the command line names.
const codeOtherVersion fault.Code = "PLT-022"

// Choose sets the release of a configuration to a version: a release of the reference platform, or a tag, branch
// or commit. It leaves directories alone; an empty version changes nothing.
func (f *Release) Choose(cfg *config.Config, version string) {
	git, inGit := cfg.ReleaseInGit()
	switch {
	case version == "" || f.Dir != "" || f.ID != "" || cfg.ReleaseIsPath():
	case inGit:
		git.Version, git.Digest = version, "" // the digest was for the other version
		cfg.Platform.Release = git.String()
	default:
		cfg.Platform.Release = version
	}
}

// CheckVersion returns a fault unless the release has that version, which in a repository may be a branch.
func (f *Release) CheckVersion(cfg *config.Config, r *platform.Release, version string) error {
	if _, inGit := cfg.ReleaseInGit(); version == "" || version == r.Version || inGit && f.Dir == "" {
		return nil
	}
	return &fault.Fault{
		Code: codeOtherVersion, Class: fault.Usage, Op: "find release " + version, Err: fmt.Errorf("the platform release is %s %s", r.Name, r.Version),
		Fix: "name the directory of release " + version + ": --platform DIR",
	}
}

// IsReference reports whether a configuration's release is one of the reference platform.
func (f *Release) IsReference(cfg *config.Config) bool {
	_, inGit := cfg.ReleaseInGit()
	return f.Dir == "" && f.ID == "" && !cfg.ReleaseIsPath() && !inGit
}

// Route returns the versions between two releases, each to install over the one before. Only the reference
// platform has more than one.
func (f *Release) Route(cfg *config.Config, from, version string) ([]string, error) {
	if !f.IsReference(cfg) {
		return []string{version}, nil
	}
	if version == "" {
		version = cfg.Platform.Release
	}
	var all []*platform.Release
	for _, known := range platforms.Versions() {
		dir, err := platforms.Release(known)
		if err != nil {
			return nil, err
		}
		r, err := platform.Load(dir)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	over, err := platform.Route(all, from, version)
	if err != nil {
		return nil, err
	}
	if len(over) == 0 {
		return nil, platform.Same(from, "slipway install")
	}
	var out []string
	for _, r := range over {
		out = append(out, r.Version)
	}
	return out, nil
}
