package platform

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"text/template"
	"time"

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
	AdminEmail string         // mail address of the administrator
	Links      []GuidanceLink // links: Name and URL of each
	Components []string       // names of the components that are on

	// The configuration's `platform.settings`, JSON: `.Setting "a.b"` is one of them.
	Settings json.RawMessage
}

// GuidanceLink is an address of the platform.
type GuidanceLink struct{ Name, URL string }

// On reports whether a component is on.
func (d GuidanceData) On(component string) bool { return slices.Contains(d.Components, component) }

// Setting is a value of the settings by its path; nil if the configuration does not have it.
func (d GuidanceData) Setting(path string) any {
	v, _ := Setting(d.Settings, path)
	return v
}

// ApprovalData is what the template of a release's approval is filled in with: what guidance gets,
// without links.
type ApprovalData struct {
	GuidanceData
	Provider string // name of the provider
	Cluster  string // the cluster
	Region   string // region of the provider, or empty
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
	_, err = fill(t, data)
	return t, err
}

// maxText is how long a text of a release may be, in bytes.
const maxText = 64 << 10

// fill fills a template in, which may have loops without end.
func fill(t *template.Template, data any) (string, error) {
	return limited(moments(), func() (string, error) {
		out := short{}
		err := t.Execute(&out, data)
		return out.b.String(), err
	})
}

// limited does work that ends with its limits, whatever its caller waits for.
func limited[T any](most bounded.Limits, do func() (T, error)) (T, error) {
	return bounded.Work(context.Background(), most, do) //nolint:forbidigo // the limits end it
}

// moments are the limits of work that is done in no time, unless somebody wants it to take long.
func moments() bounded.Limits {
	most := bounded.Usual()
	most.Time = 5 * time.Second
	return most
}

// short is text of at most maxText.
type short struct{ b strings.Builder }

func (s *short) Write(b []byte) (int, error) {
	if s.b.Len()+len(b) > maxText {
		return 0, fmt.Errorf("the text is longer than %d bytes", maxText)
	}
	return s.b.Write(b)
}

// Guide is the release's guidance: plain text, empty if it has none.
func (r *Release) Guide(data GuidanceData) (string, error) {
	return filledIn(r.guidance, "guidance", data)
}

// Approve is what the release has people agree to: plain text, empty if it does not ask.
func (r *Release) Approve(data ApprovalData) (string, error) {
	return filledIn(r.approval, "approval", data)
}

func filledIn(t *template.Template, what string, data any) (string, error) {
	if t == nil {
		return "", nil
	}
	text, err := fill(t, data)
	if err != nil {
		return "", fmt.Errorf("fill in the platform's %s: %w", what, err)
	}
	return strings.TrimSpace(text), nil
}
