package packing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/pipeline/runpackage"
	"github.com/slipway-sh/slipway/stages/contract"
)

// origin is what an upgrade began from.
type origin struct {
	about  runpackage.Before
	config []byte // canonical
	files  fs.FS  // of the release
}

// before takes over what an upgrade began from. Where that cannot be, p.lacks says why; the
// run is packed all the same. It comes before the run is cleaned, for the secrets of that
// configuration may be in it, too.
func (p *packer) before(ctx context.Context, id, dir string) error {
	text, err := bounded.File(filepath.Join(dir, report.RecordFile), bounded.Generated)
	if err != nil {
		return fmt.Errorf("read the record of run %s: %w", id, err)
	}
	record, err := report.Decode(text)
	if err != nil || record.Workflow != config.Upgrade {
		return err
	}
	o, why, err := p.findOrigin(ctx, dir)
	if err == nil && why == "" {
		why, err = p.takeOrigin(o)
	}
	p.lacks = why
	return err
}

// findOrigin finds what the upgrade began from, in the backup on which it rests.
func (p *packer) findOrigin(ctx context.Context, dir string) (_ origin, why string, _ error) {
	var result contract.Result
	var rests contract.BackupSummary
	step := contract.BackupStep()
	text, err := bounded.File(filepath.Join(dir, "steps", step.Stage+"."+step.Name, "result.json"), bounded.Generated)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return origin{}, "", err
	}
	if json.Unmarshal(text, &result) != nil || json.Unmarshal(result.Output, &rests) != nil || rests.ID == "" {
		return origin{}, "it ended before its backup", nil
	}
	b, files, err := p.deployment.Backup(ctx, rests.ID)
	if class := fault.ClassOf(err); class == fault.Usage || class == fault.Step { // newer ones have taken its place, or it is damaged
		return origin{}, err.Error(), nil
	}
	if err != nil {
		return origin{}, "", fmt.Errorf("find what the upgrade began from: %w", err)
	}
	return origin{runpackage.Before{Platform: runpackage.Platform{Name: b.Platform, Version: b.From}, Style: b.Style}, b.Config, files}, "", nil
}

// takeOrigin adds it to the package, unless a secret would have to be in there, and learns
// what looks like a secret in its configuration in any case.
func (p *packer) takeOrigin(o origin) (why string, _ error) {
	what := "the configuration of release " + o.about.Version
	cfg, err := config.Load(o.config, config.Options{File: what})
	if err != nil { // one that today's rules refuse
		return err.Error(), nil
	}
	p.lack(" before the upgrade", cfg)
	clean, hidden, err := p.clean.config(o.config)
	if err != nil {
		return "", err
	}
	if len(hidden) > 0 {
		return fmt.Sprintf("what looks like a secret is in its configuration (%s)", hidden[0]), nil
	}
	files := runpackage.Files{}
	err = files.Add(path.Join(runpackage.BeforeDir, runpackage.ReleaseDir), o.files)
	if err == nil {
		o.about.Digest, err = platform.Digest(o.files)
	}
	if err != nil {
		return "", fmt.Errorf("read release %s, which the upgrade began from: %w", o.about.Version, err)
	}
	for name, f := range files {
		if p.clean.known.In(f.Data) {
			return "a secret is in its file " + name, nil
		}
		p.files[name] = f
	}
	p.files[path.Join(runpackage.BeforeDir, runpackage.ConfigFile)] = runpackage.File{Data: clean}
	p.info.Before = &o.about
	return "", nil
}
