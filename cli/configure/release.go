package configure

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/packing"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/answers"
	"github.com/slipway-sh/slipway/config/document"
	"github.com/slipway-sh/slipway/config/platform"
	platforms "github.com/slipway-sh/slipway/examples/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/runpackage"
)

// resolve makes the path of a platform release absolute: a path of the earlier file is relative to that file.
func (c *Command) resolve(path string) (string, error) {
	if path == c.release && c.release != "" && !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(c.from), path)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", path, err)
	}
	return abs, nil
}

// text encodes a draft. A relative path of the platform release is relative to the file's destination.
func (c *Command) text(d *answers.Draft) ([]byte, error) {
	path := d.Get("platform.release")
	if usage.InModule() || !strings.Contains(path, "/") || filepath.IsAbs(path) || document.Refers(path) {
		return d.Bytes()
	}
	abs, err := c.resolve(path)
	if err != nil {
		return nil, err
	}
	file, err := c.destination(d.Get("global.name"))
	if err != nil && c.out != "" {
		return nil, err
	}
	if there, err := filepath.Abs(filepath.Join(filepath.Dir(file), path)); err != nil || there != abs {
		d.SetText("platform.release", abs)
	}
	return d.Bytes()
}

// platform returns the schema with the settings of a draft's platform release, and its components.
func (c *Command) platform(d *answers.Draft) (*answers.Schema, []answers.Component, error) {
	cfg := config.Default()
	if name := d.Get("platform.release"); name != "" {
		cfg.Platform.Release = name
	}
	release, err := c.releaseOf(cfg)
	if err != nil {
		return nil, nil, err
	}
	var components []answers.Component
	for _, part := range release.Components {
		if !part.Required {
			components = append(components, answers.Component{Name: part.Name, On: part.Enabled})
		}
	}
	return answers.NewSchema(c.describe(), release.SettingsSchema()), components, nil
}

// releaseOf loads the platform release, but no directory that only a package or a report names: it may be on a
// server of its sender.
func (c *Command) releaseOf(cfg *config.Config) (*platform.Release, error) {
	flags := c.releaseFlags
	if flags.Dir == "" && cfg.ReleaseIsPath() {
		if cfg.Platform.Release == c.sent {
			return nil, &fault.Fault{Code: config.CodeUnreadable, Class: fault.Usage, Op: "open " + c.sent,
				Fix: "name the directory yourself: --platform DIR", Err: fmt.Errorf("%s names it and does not hold it", c.from)}
		}
		var err error
		if flags.Dir, err = c.resolve(cfg.Platform.Release); err != nil {
			return nil, err
		}
	}
	return flags.Load(cfg, nil)
}

// check returns all problems of a file, including those with its platform release.
func (c *Command) check(text []byte) []config.Problem {
	cfg, err := c.source.Parse(text, nil)
	problems := config.Problems(err)
	if err != nil && len(problems) == 0 {
		problems = []config.Problem{{Got: err.Error(), Want: "a configuration of version " + config.APIVersion}}
	}
	if cfg == nil { // the platform section can be checked even so
		if cfg = c.platformOnly(text); cfg == nil {
			return problems
		}
	}
	release, err := c.releaseOf(cfg)
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return append(problems, config.Problem{Field: "platform.release", Got: f.Err.Error(), Want: "one that is there: " + f.Fix})
	}
	if err != nil {
		return append(problems, config.Problem{Field: "platform.release", Got: err.Error(), Want: "a platform release"})
	}
	if _, err := release.Off(cfg.Choices()); err != nil {
		problems = append(problems, config.Problem{Field: "platform.components", Got: err.Error(), Want: "components of this platform release"})
	} else if err := release.Overrides(cfg.Overrides()); err != nil {
		problems = append(problems, config.Problem{Field: "platform.components", Got: err.Error(), Want: "values for charts of this platform release"})
	}
	own, err := release.SettingsProblems(cfg.Platform.Settings)
	if err != nil {
		own = []config.Problem{{Field: "platform.settings", Got: err.Error(), Want: "none"}}
	}
	return append(problems, own...)
}

// platformOnly is the platform section of a file as a configuration; nil if it is invalid.
func (c *Command) platformOnly(text []byte) *config.Config {
	d, err := answers.NewDraft(nil, text)
	if err != nil {
		return nil
	}
	if text, err = d.Only("apiVersion", "platform").Bytes(); err != nil {
		return nil
	}
	cfg, err := c.source.Parse(text, nil)
	if err != nil {
		return nil
	}
	return cfg
}

// fromPackage returns the configuration in a package, with a release that this machine can open.
func (c *Command) fromPackage(io console.Streams) ([]byte, error) {
	p, err := packing.Verify(c.file, c.packageKey)
	if err != nil {
		return nil, err
	}
	for _, setting := range p.Hidden {
		fmt.Fprintf(io.Err, "slipway: the package has no value for %s, which looked like a secret: give one\n", setting)
	}
	text := p.Files[runpackage.ConfigFile].Data
	d, err := answers.NewDraft(answers.NewSchema(c.describe(), nil), text)
	if err != nil {
		return nil, fmt.Errorf("read the configuration in %s: %w", c.file, err)
	}
	name, err := c.packedRelease(io, p, d.Get("platform.release"))
	if err != nil || name == d.Get("platform.release") {
		return text, err
	}
	c.kept = name
	d.SetText("platform.release", name)
	return d.Bytes()
}

// packedRelease returns the name of a package's platform release: the package's own name if it leads to the
// same release here.
func (c *Command) packedRelease(io console.Streams, p *runpackage.Package, name string) (string, error) {
	cfg := config.Default()
	cfg.Platform.Release = name
	if git, ok := cfg.ReleaseInGit(); ok && p.Platform.Digest != "" {
		git.Digest = p.Platform.Digest // even if the version now leads elsewhere
		return git.String(), nil
	}
	if files, err := platforms.Release(name); err == nil {
		if digest, err := platform.Digest(files); err == nil && digest == p.Platform.Digest {
			return name, nil
		}
	}
	if p.Platform.Digest == "" || usage.InModule() { // which keeps no files
		return name, nil
	}
	folder, err := config.DefaultFolder()
	if err != nil {
		return "", err
	}
	parent := filepath.Join(string(folder), "releases")
	if folder == "" { // the user has no home directory
		if parent, err = os.Getwd(); err != nil {
			return "", err
		}
	}
	dir, err := packing.KeepRelease(c.file, p, parent, false)
	if err == nil {
		fmt.Fprintf(io.Err, "slipway: the platform release of the package is in %s\n", dir)
	}
	return dir, err
}
