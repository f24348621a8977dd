package platform

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// ApprovalData is what the template of a release's approval is filled in with. It holds no
// secret.
type ApprovalData struct {
	Platform   string   // name of the release
	Version    string   // its version
	Deployment string   // name of the deployment
	Domain     string   // its parent domain
	Scale      string   // name of its scale profile
	Provider   string   // name of the provider
	Cluster    string   // the cluster
	Region     string   // region of the provider, or empty
	Components []string // names of the components that are on

	// The configuration's `platform.settings`, JSON: `.Setting "a.b"` is one of them.
	Settings json.RawMessage
}

// On reports whether a component is on.
func (d ApprovalData) On(component string) bool { return slices.Contains(d.Components, component) }

// Setting is a value of the settings by its path; nil if the configuration does not have it.
func (d ApprovalData) Setting(path string) any { return valueOf(d.Settings, path) }

// Approve is what the release has people agree to: plain text, empty if it does not ask.
func (r *Release) Approve(data ApprovalData) (string, error) {
	if r.approval == nil {
		return "", nil
	}
	text, err := fill(r.approval, data)
	if err != nil {
		return "", fmt.Errorf("fill in the platform's approval: %w", err)
	}
	return strings.TrimSpace(text), nil
}
