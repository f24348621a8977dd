package contract

import (
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
)

// Inputs are what a workflow is wired from, by the conductor and, in a container, for a plan.
type Inputs struct {
	Config        *config.Config    `json:"-"` // see PlanRequest
	Release       *platform.Release `json:"-"` // nil where it is removed
	ReleaseDigest string            `json:"release"`
	Site          Site              `json:"site"`
	Images        map[string]string `json:"refs"` // see containers.Images.In
	ImagesDigest  string            `json:"images"`
	Rewrite       map[string]string `json:"rewrite,omitempty"` // see ComponentInput
	Tools         map[string]string `json:"tools"`             // version, by name, without a leading v
	UserSecrets   []string          `json:"given"`             // names of the secrets that the configuration gives
	RunOptions
}
