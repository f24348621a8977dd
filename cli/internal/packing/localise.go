package packing

import (
	"fmt"
	"path/filepath"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/answers"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
	"github.com/slipway-sh/slipway/pipeline/runpackage"
	"github.com/slipway-sh/slipway/providers/local"
)

// Localise makes the configurations of a package ones with which the same is installed on a
// fresh local deployment, and returns what was substituted by what, a line each.
func (o *Opened) Localise(sections []config.Section) (substituted []string, err error) {
	if substituted, err = o.Made.localise("local.yaml", o.Files[runpackage.AnswersFile].Data, sections); err != nil {
		return nil, err
	}
	switch {
	case o.Before != nil:
		substituted = append(substituted, "the data of the deployment by that of a fresh install of release "+o.Before.Version)
		_, err = o.Began.localise("local-before.yaml", o.Files[runpackage.BeforeDir+"/"+runpackage.AnswersFile].Data, sections)
	case o.Workflow != config.Install:
		substituted = append(substituted, fmt.Sprintf("the %s of what was installed before by an install on an empty cluster", o.Workflow))
	}
	return substituted, err
}

// localise writes the configuration, as it is then, beside the one of the package.
func (m *Made) localise(name string, text []byte, sections []config.Section) ([]string, error) {
	text, substituted, err := localised(text, sections)
	at := filepath.Join(filepath.Dir(m.Config), name)
	if err == nil {
		err = atomicfile.Write(at, text, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("make the configuration of the package one of a local deployment: %w", err)
	}
	m.Config = at
	return substituted, nil
}

func localised(text []byte, sections []config.Section) ([]byte, []string, error) {
	d, err := answers.NewDraft(answers.NewSchema(config.Describe(sections), nil), text)
	if err != nil {
		return nil, nil, err
	}
	var substituted []string
	if provider := d.Get("provider"); provider != "" && provider != local.Name {
		substituted = append(substituted, fmt.Sprintf("provider %s by %s, a Kubernetes that Slipway runs itself", provider, local.Name))
		d.SetText("provider", local.Name)
		d.Remove(provider)
	}
	if d.Has("state") {
		substituted = append(substituted, "the bucket with the deployment's state by a volume of the engine")
		d.Remove("state")
	}
	text, err = d.Bytes()
	return text, substituted, err
}
