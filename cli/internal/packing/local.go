package packing

import (
	"fmt"
	"path/filepath"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/answers"
	"github.com/slipway-sh/slipway/pipeline/atomicfile"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/providers/local"
)

// Localise makes the configuration of a source of the package one with which the same is
// installed on a fresh local deployment, and returns what was substituted by what, a line each.
func (s *Source) Localise(sections []config.Section) (substituted []string, err error) {
	text, err := bounded.File(s.Config, bounded.Written)
	if err == nil {
		if text, substituted, err = localised(text, sections); err != nil {
			return nil, incomplete("make the configuration of the package one of a local deployment", fixAgain, err)
		}
	}
	at := filepath.Join(filepath.Dir(s.Config), "local-"+filepath.Base(s.Config))
	if err == nil {
		err = atomicfile.Write(at, text, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("make the configuration of the package one of a local deployment: %w", err)
	}
	s.Config = at
	return substituted, nil
}

func localised(text []byte, sections []config.Section) ([]byte, []string, error) {
	d, err := answers.NewDraft(answers.NewSchema(config.Describe(sections), nil), text)
	if err != nil {
		return nil, nil, err
	}
	var substituted []string
	if provider := d.Get("provider"); provider != "" && provider != local.Name {
		substituted = append(substituted, fmt.Sprintf("provider %s by %s, a Kubernetes that Slipway runs itself", redact.OneLine(provider), local.Name))
		d.SetText("provider", local.Name)
		d.Remove(provider)
	}
	if d.Has("state") {
		substituted = append(substituted, "the bucket with the deployment's state by a volume of the engine")
		d.Remove("state")
	}
	if bind := d.Get("local.bind"); bind != "" {
		substituted = append(substituted, "the address "+redact.OneLine(bind)+", on which the cluster is published, by 127.0.0.1")
		d.Remove("local.bind")
	}
	text, err = d.Bytes()
	return text, substituted, err
}
