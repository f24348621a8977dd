package packing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/pipeline/runpackage"
	"github.com/slipway-sh/slipway/stages/conductor"
	"github.com/slipway-sh/slipway/stages/contract"
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

// mayOpen reports whether the user names the release's location. Otherwise anyone who can write the state could
// make Slipway read directories of this machine. In the user's own repository, any version is allowed.
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

func (p *packer) otherRelease(op string, why error) error {
	return &fault.Fault{Code: codeOtherRelease, Class: fault.Usage, Op: op, Err: why,
		Fix: "run the same command again, and name the directory of the release that was installed: --run " + fault.Quote(p.record.ID) + " --platform DIR"}
}

// vouch rejects a signature for a stored configuration with references, hooks or locations that the user's lacks,
// because a signed package is trusted as a whole.
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
	return &fault.Fault{Code: codeOtherRelease, Class: fault.Usage, Op: "sign the package of run " + id,
		Err: fmt.Errorf("the configuration stored with the run has what yours has not: %s", strings.Join(others, ", ")),
		Fix: "give the configuration with which the run was made: --config FILE; or pack it without a key: slipway save --run " + fault.Quote(id)}
}

// before adds what an upgrade began from, or sets p.lacks. It runs before the run is cleaned, because the run may
// contain secrets of that configuration.
func (p *packer) before(ctx context.Context, id, dir string) error {
	text, err := bounded.File(filepath.Join(dir, report.RecordFile), bounded.Generated)
	if err != nil {
		return fmt.Errorf("read the record of run %s: %w", id, err)
	}
	record, err := report.Decode(text)
	if err != nil || record.Workflow != config.Upgrade {
		return err
	}
	b, release, why, err := p.findOrigin(ctx, dir)
	if err == nil && why == "" {
		why, err = p.takeOrigin(b, release)
	}
	p.lacks = why
	return err
}

// findOrigin finds it in the backup of the upgrade.
func (p *packer) findOrigin(ctx context.Context, dir string) (b *contract.Backup, release fs.FS, why string, err error) {
	var result contract.Result
	var rests contract.BackupSummary
	step := contract.BackupStep()
	text, err := bounded.File(filepath.Join(dir, "steps", step.Stage+"."+step.Name, "result.json"), bounded.Generated)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, "", err
	}
	if json.Unmarshal(text, &result) != nil || json.Unmarshal(result.Output, &rests) != nil || rests.ID == "" {
		return nil, nil, "it ended before its backup", nil
	}
	b, release, err = p.deployment.Backup(ctx, rests.ID)
	if class := fault.ClassOf(err); class == fault.Usage || class == fault.Step { // newer ones have taken its place, or it is damaged
		return nil, nil, err.Error(), nil
	}
	if err != nil {
		return nil, nil, "", fmt.Errorf("find what the upgrade began from: %w", err)
	}
	return b, release, "", nil
}

// takeOrigin adds it to the package unless it contains a secret, and learns the secrets of its configuration.
func (p *packer) takeOrigin(b *contract.Backup, release fs.FS) (why string, _ error) {
	cfg, err := config.Load(b.Config, config.Options{File: "the configuration of release " + b.From})
	if err != nil { // today's rules reject it
		return err.Error(), nil
	}
	p.lack(" before the upgrade", cfg)
	clean, hidden, err := p.clean.config(b.Config)
	if err != nil {
		return "", err
	}
	if len(hidden) > 0 {
		return fmt.Sprintf("what looks like a secret is in its configuration (%s)", hidden[0]), nil
	}
	about := &runpackage.Before{Platform: runpackage.Platform{Name: b.Platform, Version: b.From}, Style: b.Style}
	files := runpackage.Files{}
	err = files.Add(path.Join(runpackage.BeforeDir, runpackage.ReleaseDir), release)
	if err == nil {
		about.Digest, err = platform.Digest(release)
	}
	if err != nil {
		return "", fmt.Errorf("read release %s, which the upgrade began from: %w", b.From, err)
	}
	for name, f := range files {
		if p.clean.known.In(f.Data) {
			return "a secret is in its file " + name, nil
		}
		p.files[name] = f
	}
	p.files[path.Join(runpackage.BeforeDir, runpackage.ConfigFile)] = runpackage.File{Data: clean}
	p.info.Before = about
	return "", nil
}
