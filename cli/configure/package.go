package configure

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/packing"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/answers"
	"github.com/slipway-sh/slipway/config/deployments"
	"github.com/slipway-sh/slipway/config/platform"
	platforms "github.com/slipway-sh/slipway/examples/platform"
	"github.com/slipway-sh/slipway/pipeline/runpackage"
)

// fromPackage is the configuration in a package, which names the platform release in it.
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

// packedRelease is what names the platform release of a package, of which its configuration
// says name: the same if that leads to the same release here, too.
func (c *Command) packedRelease(io console.Streams, p *runpackage.Package, name string) (string, error) {
	cfg := config.Default()
	cfg.Platform.Release = name
	if git, ok := cfg.ReleaseInGit(); ok && p.Platform.Digest != "" {
		git.Digest = p.Platform.Digest // whatever the version leads to by now
		return git.String(), nil
	}
	if files, err := platforms.Release(name); err == nil {
		if digest, err := platform.Digest(files); err == nil && digest == p.Platform.Digest {
			return name, nil
		}
	}
	if p.Platform.Digest == "" || usage.InModule() { // where nothing is kept
		return name, nil
	}
	folder, err := deployments.Default()
	if err != nil {
		return "", err
	}
	parent := filepath.Join(string(folder), "releases")
	if folder == "" { // of a user without a home directory
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
