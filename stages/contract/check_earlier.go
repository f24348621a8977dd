package contract

import (
	"bytes"
	"encoding/json"

	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/journal"
)

// Paths in the container of infrastructure/verify.
const (
	PlanFile     = "/slipway/plan.json"
	VerifiedFile = "/slipway/verified.json"
)

// Plan is what `slipway verify` wires the graph of a workflow from: the same one
// as its conductor.
type Plan struct {
	Workflow    string            `json:"workflow"`
	Run         string            `json:"run"`
	Config      json.RawMessage   `json:"config"` // canonical
	Site        Site              `json:"site"`
	Refs        map[string]string `json:"refs"` // of the images
	Rewrite     map[string]string `json:"rewrite,omitempty"`
	Images      string            `json:"images"` // their digest
	Release     string            `json:"release"`
	Tools       map[string]string `json:"tools"`
	UserSecrets []string          `json:"given"`
	RunOptions
	Selection pipeline.Select `json:"selection"`
	// Hooked are the steps and stages with hooks around them. Hooks may change what a check
	// would see, so these steps and their dependents are not checked here.
	Hooked []string `json:"hooked"`
}

// Verified is what `slipway verify` leaves in VerifiedFile.
type Verified struct {
	Steps map[string]Seen `json:"steps"` // those whose results hold, by "stage/name"
	Total int             `json:"total"` // steps of the graph that can be checked
}

// Seen is the earlier result of a step that was found to hold for an input.
type Seen struct {
	Digests journal.Digests `json:"digests"`
	Input   json.RawMessage `json:"input"`
	Result  Result          `json:"result"`
}

// For reports whether s is the result for req.
func (s Seen) For(req Request) bool {
	return s.Digests == req.Digests && bytes.Equal(s.Input, req.Input)
}
