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

// Localise writes a configuration with which the same is installed on a fresh local
// deployment, and returns its file, and what was substituted by what, a line each.
func (o *Opened) Localise(sections []config.Section) (file string, substituted []string, err error) {
	text, substituted, err := localised(o.Files[runpackage.AnswersFile].Data, sections, o.Workflow)
	file = filepath.Join(filepath.Dir(o.Config), "local.yaml")
	if err == nil {
		err = atomicfile.Write(file, text, 0o600)
	}
	if err != nil {
		return "", nil, fmt.Errorf("make the configuration of the package one of a local deployment: %w", err)
	}
	return file, substituted, nil
}

func localised(text []byte, sections []config.Section, workflow string) ([]byte, []string, error) {
	d, err := answers.NewDraft(answers.NewSchema(config.Describe(sections), nil), text)
	if err != nil {
		return nil, nil, err
	}
	var substituted []string
	if provider := d.Get("provider"); provider != local.Name {
		substituted = append(substituted, fmt.Sprintf("provider %s by %s, a Kubernetes that Slipway runs itself", provider, local.Name))
		d.SetText("provider", local.Name)
		d.Remove(provider)
	}
	if d.Has("state") {
		substituted = append(substituted, "the bucket with the deployment's state by a volume of the engine")
		d.Remove("state")
	}
	if workflow != config.Install {
		substituted = append(substituted, fmt.Sprintf("the %s of what was installed before by an install on an empty cluster", workflow))
	}
	text, err = d.Bytes()
	return text, substituted, err
}
