package platform

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/config/document"
)

func (r *Release) readSchema(fsys fs.FS) (err error) {
	if r.settingsText, err = bounded.FS(fsys, r.Settings, bounded.Written); err == nil {
		r.schema, err = document.CompileSchema(r.settingsText)
	}
	return err
}

// CheckSettings checks platform.settings of a configuration against the release's own
// schema. A release without a schema accepts no settings.
func (r *Release) CheckSettings(settings json.RawMessage) error {
	problems, err := r.SettingsProblems(settings)
	if err == nil && len(problems) == 0 {
		return nil
	}
	if err == nil {
		err = errors.New(document.InLines(problems, "\n  "))
	}
	return unfit(fmt.Sprintf("check platform.settings for %s %s", r.Name, r.Version), err, "correct platform.settings in the configuration")
}

// SettingsProblems returns the problems of the settings by field.
func (r *Release) SettingsProblems(settings json.RawMessage) ([]Problem, error) {
	if r.schema == nil {
		if len(settings) > 0 && string(settings) != "{}" {
			return nil, errors.New("this platform release has no settings")
		}
		return nil, nil
	}
	if len(settings) == 0 {
		settings = json.RawMessage("{}")
	}
	return r.schema.Problems(settings, "platform", "settings")
}

// SettingsSchema returns the release's own schema of platform.settings, JSON; nil for a
// release without one.
func (r *Release) SettingsSchema() []byte { return r.settingsText }
