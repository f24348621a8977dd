package packing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/runpackage"
	"github.com/slipway-sh/slipway/stages/conductor"
)

// release adds the platform release to the package. It must be the release of the run.
func (p *packer) release(ctx context.Context, dir string) error {
	want := p.record.Platform
	if want.Digest == "" { // a destroy needs none
		return nil
	}
	var from conductor.Options
	from.Client = p.deployment.Session.Client
	op := fmt.Sprintf("pack the platform release of run %s", p.record.ID)
	if !p.mayOpen() {
		return p.otherRelease(op, errors.New("the configuration of the run names a release, and yours another one: what only a stored configuration names is neither read nor fetched"))
	}
	if err := p.flags.Release.Open(ctx, p.config, p.flags.Source.Path, p.deployment.Inputs.Anew, &from); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	if from.ReleaseDigest != want.Digest {
		return p.otherRelease(op, fmt.Errorf("the run was of %s %s with the digest %s; found was %s %s with %s",
			want.Name, want.Version, want.Digest, from.Release.Name, from.Release.Version, from.ReleaseDigest))
	}
	if _, err := from.ReleaseDir.Export(ctx, dir); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return p.files.Add(runpackage.ReleaseDir, os.DirFS(dir))
}

// mayOpen reports whether the user names the place of the release. Otherwise, anyone who may write
// the state could have Slipway upload directories of this machine, and ask servers. In the user's
// own repository another version is allowed, as after an upgrade.
func (p *packer) mayOpen() bool {
	f, stored, users := p.flags.Release, p.config, p.deployment.Config
	if f.Dir != "" || f.ID != "" || stored.Platform.Release == users.Platform.Release {
		return true
	}
	git, inGit := stored.ReleaseInGit()
	if inGit {
		own, ok := users.ReleaseInGit()
		return ok && git.URL == own.URL && git.Folder == own.Folder
	}
	return !stored.ReleaseIsPath()
}

// otherRelease is the fault of a release that is not the run's, or may not be.
func (p *packer) otherRelease(op string, why error) error {
	return &fault.Fault{Code: codeOtherRelease, Class: fault.Usage, Op: op, Err: why,
		Fix: "name the directory of the release that was installed: " + p.options.again(p.record.ID) + " --platform DIR"}
}

// vouch refuses to sign a stored configuration with what runs or reads something where the package
// is installed, or leads elsewhere, and is not in the user's own: whoever installs a signed package
// takes all of it as vouched for.
func (p *packer) vouch(id string) error {
	if p.options.Key == nil {
		return nil
	}
	stored, users := p.config, p.deployment.Config
	var others []string
	own := users.References(p.sections())
	for setting, ref := range stored.References(p.sections()) {
		if own[setting] != ref {
			others = append(others, setting)
		}
	}
	for _, h := range stored.Hooks {
		if !slices.ContainsFunc(users.Hooks, func(o config.Hook) bool { return reflect.DeepEqual(o, h) }) {
			others = append(others, "hook "+h.Name)
		}
	}
	if stored.State.URL != "" && stored.State.URL != users.State.URL {
		others = append(others, "state.url")
	}
	if !p.mayOpen() {
		others = append(others, "platform.release")
	}
	if len(others) == 0 {
		return nil
	}
	slices.Sort(others)
	unsigned := Options{Out: p.options.Out}
	return &fault.Fault{Code: codeOtherRelease, Class: fault.Usage, Op: "sign the package of run " + id,
		Err: fmt.Errorf("the configuration stored with the run has what yours has not: %s", strings.Join(others, ", ")),
		Fix: "give the configuration with which the run was made: --config FILE; or pack it without a key: " + unsigned.again(id)}
}
