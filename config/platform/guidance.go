package platform

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

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

// Guide is the release's guidance: plain text, empty if it has none.
func (r *Release) Guide(data GuidanceData) (string, error) {
	return filledIn(r.guidance, "guidance", data)
}

// Approve is what the release has people agree to: plain text, empty if it does not ask.
func (r *Release) Approve(data ApprovalData) (string, error) {
	return filledIn(r.approval, "approval", data)
}

func filledIn(t *bounded.Template, what string, data any) (string, error) {
	if t == nil {
		return "", nil
	}
	text, err := t.Fill(data)
	if err != nil {
		return "", fmt.Errorf("fill in the platform's %s: %w", what, err)
	}
	return strings.TrimSpace(text), nil
}
