package packing

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/answers"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/runpackage"
	"github.com/slipway-sh/slipway/stages/contract"
)

// began is what an upgrade began from.
type began struct {
	about  runpackage.Before
	config []byte // canonical
	files  fs.FS  // of the release
}

// before takes over what an upgrade began from, where the deployment's state still has it.
func (p *packer) before(ctx context.Context) error {
	if p.record.Workflow != config.Upgrade {
		return nil
	}
	b, err := p.began(ctx)
	if err != nil || b == nil {
		return err
	}
	if b.about.Digest, err = platform.Digest(b.files); err != nil {
		return fmt.Errorf("read release %s, which the upgrade began from: %w", b.about.Version, err)
	}
	what := "the configuration of release " + b.about.Version
	cfg, err := config.Load(b.config, config.Options{File: what})
	if err != nil {
		return err
	}
	for setting, ref := range References(cfg) {
		if _, known := p.info.Secrets[setting]; !known {
			p.info.Secrets[setting] = string(ref)
			p.know(ctx, setting, ref)
		}
	}
	slices.Sort(p.absent)
	clean, hid, err := p.clean.config(b.config)
	if err != nil {
		return err
	}
	p.info.Hidden = append(p.info.Hidden, hid...)
	slices.Sort(p.info.Hidden)
	p.info.Hidden = slices.Compact(p.info.Hidden)
	text, err := answers.Readable(p.schema(), clean)
	if err != nil {
		return fmt.Errorf("read %s: %w", what, err)
	}
	p.files[path.Join(runpackage.BeforeDir, runpackage.AnswersFile)] = runpackage.File{Data: text}
	p.info.Before = &b.about
	return p.files.Add(path.Join(runpackage.BeforeDir, runpackage.ReleaseDir), b.files)
}

// began finds what the upgrade began from: in the backup on which it rests or, where it did
// not come that far, as what is installed. Nil: neither is there any more.
func (p *packer) began(ctx context.Context) (*began, error) {
	var result contract.Result
	var rests contract.BackupSummary
	step := contract.BackupStep()
	text := p.files[path.Join(runpackage.RunDir, "steps", step.Stage+"."+step.Name, "result.json")].Data
	if json.Unmarshal(text, &result) == nil && json.Unmarshal(result.Output, &rests) == nil && rests.ID != "" { // else it did not come so far
		b, files, err := p.deployment.Backup(ctx, rests.ID)
		if class := fault.ClassOf(err); class == fault.Usage || class == fault.Step { // newer ones have taken its place, or it is damaged
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("find what the upgrade began from: %w", err)
		}
		return &began{runpackage.Before{Platform: runpackage.Platform{Name: b.Platform, Version: b.From}, Style: b.Style}, b.Config, files}, nil
	}
	is, files, err := p.deployment.Kept(ctx)
	if err != nil {
		return nil, fmt.Errorf("find what the upgrade began from: %w", err)
	}
	if is == nil || is.Version == p.record.Platform.Version {
		return nil, nil
	}
	return &began{runpackage.Before{Platform: runpackage.Platform{Name: is.Platform, Version: is.Version}}, is.Config, files}, nil
}
