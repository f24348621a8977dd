package platform

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"text/template"

	"github.com/slipway-sh/slipway/bounded"
)

// GuidanceData is what the template of a release's guidance is filled in with. It holds
// no secret.
type GuidanceData struct {
	Platform   string         // name of the release
	Version    string         // its version
	Deployment string         // name of the deployment
	Domain     string         // its parent domain
	Scale      string         // name of its scale profile
	AdminEmail string         // mail address of its administrator
	Links      []GuidanceLink // addresses of the platform: Name and URL of each
	Components []string       // names of those that are on

	// Settings are `platform.settings` of the configuration, JSON: `.Setting "a.b"` is one of them.
	Settings json.RawMessage
}

// GuidanceLink is an address of the platform.
type GuidanceLink struct{ Name, URL string }

// On reports whether a component is on.
func (d GuidanceData) On(component string) bool {
	for _, name := range d.Components {
		if name == component {
			return true
		}
	}
	return false
}

// Setting is a value of the settings by its path; nil if the configuration does not have it.
func (d GuidanceData) Setting(path string) any { return valueOf(d.Settings, path) }

// valueOf is Setting for templates, in which what is not there is nil.
func valueOf(settings json.RawMessage, path string) any {
	v, _ := Setting(settings, path)
	return v
}

// parseTemplate reads a template and tries it with data.
func parseTemplate(fsys fs.FS, name string, data any) (*template.Template, error) {
	text, err := bounded.FS(fsys, name, bounded.Written)
	if err != nil {
		return nil, err
	}
	t, err := template.New(name).Option("missingkey=error").Parse(string(text))
	if err != nil {
		return nil, err
	}
	return t, t.Execute(io.Discard, data)
}

// Guide is the release's guidance: plain text, empty if it has none.
func (r *Release) Guide(data GuidanceData) (string, error) {
	if r.guidance == nil {
		return "", nil
	}
	var out bytes.Buffer
	if err := r.guidance.Execute(&out, data); err != nil {
		return "", fmt.Errorf("fill in the platform's guidance: %w", err)
	}
	return strings.TrimSpace(out.String()), nil
}
