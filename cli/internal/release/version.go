package release

import (
	"fmt"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	platforms "github.com/slipway-sh/slipway/examples/platform"
	"github.com/slipway-sh/slipway/fault"
)

// codeOtherVersion: the release is of another version than the command line names.
const codeOtherVersion fault.Code = "PLT-022"

// Choose makes a configuration name the release of a version: of the reference platform,
// or a tag, branch or commit of the repository in which its release is. A directory is
// what it is: see CheckVersion. An empty version is the one that the configuration names.
func (f *Flags) Choose(cfg *config.Config, version string) {
	git, inGit := cfg.ReleaseInGit()
	switch {
	case version == "" || f.Dir != "" || f.ID != "" || cfg.ReleaseIsPath():
	case inGit:
		git.Version, git.Digest = version, "" // the digest is that of the other version
		cfg.Platform.Release = git.String()
	default:
		cfg.Platform.Release = version
	}
}

// CheckVersion returns a fault unless a release, wherever it was found, is the one of that
// version. In a repository a version may be the name of a branch, or have a leading v.
func (f *Flags) CheckVersion(cfg *config.Config, r *platform.Release, version string) error {
	if _, inGit := cfg.ReleaseInGit(); version == "" || version == r.Version || inGit && f.Dir == "" {
		return nil
	}
	return &fault.Fault{
		Code: codeOtherVersion, Class: fault.Usage, Op: "find release " + version, Err: fmt.Errorf("the platform release is %s %s", r.Name, r.Version),
		Fix: "name the directory of release " + version + ": --platform DIR",
	}
}

// IsReference reports whether a configuration's release is one of the reference platform.
func (f *Flags) IsReference(cfg *config.Config) bool {
	_, inGit := cfg.ReleaseInGit()
	return f.Dir == "" && f.ID == "" && !cfg.ReleaseIsPath() && !inGit
}

// Route returns the versions of the releases that bring the platform from one release to
// the one of a version, each installed over the one before it. Only of the reference
// platform is more than one release at hand.
func (f *Flags) Route(cfg *config.Config, from, version string) ([]string, error) {
	if !f.IsReference(cfg) {
		return []string{version}, nil
	}
	if version == "" {
		version = cfg.Platform.Release
	}
	var all []*platform.Release
	for _, known := range platforms.Versions() {
		r, _, err := Reference(known)
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

// Reference is the release of a version of the reference platform, and the digest of its
// files.
func Reference(version string) (*platform.Release, string, error) {
	dir, err := platforms.Release(version)
	if err != nil {
		return nil, "", err
	}
	digest, err := platform.Digest(dir)
	if err != nil {
		return nil, "", err
	}
	r, err := platform.Load(dir)
	return r, digest, err
}
