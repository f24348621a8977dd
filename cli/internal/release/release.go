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

	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/cli/internal/directory"
	"github.com/slipway-sh/slipway/cli/internal/module"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
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
	set.StringVar(&f.Dir, "platform", "", "directory of the platform release; replaces platform.release of the configuration")
}

// AddID declares the flag of the Dagger module.
func (f *Flags) AddID(set *pflag.FlagSet) {
	set.StringVar(&f.ID, "platform-id", "", "file with the Dagger id of the platform release's directory")
	_ = set.MarkHidden("platform-id")
}

// Load reads the platform release of a configuration without an engine. path is what a
// path in the configuration leads to.
func (f *Flags) Load(cfg *config.Config, path func(string) string) (*platform.Release, error) {
	dir := f.Dir
	if dir == "" && cfg.ReleaseIsPath() {
		dir = path(cfg.Platform.Release)
	}
	if dir == "" {
		fsys, err := platforms.Release(cfg.Platform.Release)
		if err != nil {
			return nil, err
		}
		return platform.Load(fsys)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, &fault.Fault{Code: directory.CodeMissing, Class: fault.Usage, Op: "open " + dir,
			Fix: "give the path of a directory that exists", Err: errors.Join(err, errors.New("a platform release is a directory"))}
	}
	return platform.Load(os.DirFS(dir))
}

// Open loads the platform release of a configuration and hands it to the engine. path
// is what a path in the configuration leads to; see directory.Open for fresh.
func (f *Flags) Open(ctx context.Context, cfg *config.Config, path func(string) string, fresh bool, opts *conductor.Options) error {
	dir := f.Dir
	if dir == "" && f.ID == "" && cfg.ReleaseIsPath() {
		if module.Active() {
			return &fault.Fault{Code: directory.CodeMissing, Class: fault.Usage, Op: "open the platform release " + cfg.Platform.Release,
				Fix: "name the directory on the command line too: dagger call install --platform DIR",
				Err: errors.New("it is on the machine that calls, and dagger call hands over only what a flag names")}
		}
		dir = path(cfg.Platform.Release)
	}
	if dir == "" && f.ID == "" {
		files, err := platforms.Release(cfg.Platform.Release)
		if err != nil {
			return err
		}
		return opts.UsePlatform(ctx, files)
	}
	from, err := directory.Open(opts.Client, dir, f.ID, fresh)
	if err != nil {
		return err
	}
	return opts.UsePlatformDir(ctx, from)
}

// Settings adds to all what the platform release decides: which components are on.
func Settings(all []config.Setting, cfg *config.Config, release *platform.Release) ([]config.Setting, error) {
	off, err := release.Off(cfg.Choices())
	if err := errors.Join(err, release.Overrides(cfg.Overrides()), release.CheckSettings(cfg.Platform.Settings)); err != nil {
		return nil, err
	}
	for _, c := range release.Components {
		path := "platform.components." + c.Name + ".enabled"
		if slices.ContainsFunc(all, func(s config.Setting) bool { return s.Path == path }) {
			continue
		}
		origin := config.Origin(fmt.Sprintf("platform %s %s", release.Name, release.Version))
		all = append(all, config.Setting{Path: path, Value: strconv.FormatBool(!slices.Contains(off, c.Name)), Origin: origin})
	}
	slices.SortStableFunc(all, func(a, b config.Setting) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}
