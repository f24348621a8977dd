package contract

import (
	"bytes"
	"encoding/json"

	"github.com/slipway-sh/slipway/pipeline/journal"
)

// PlanRequest is what `slipway dry-run` carries out without changing anything. It wires the graph
// of the workflow from the same Inputs as the conductor. The answer is a Plan or, with Verify, a
// Verified.
type PlanRequest struct {
	Workflow   string          `json:"workflow"`
	Run        string          `json:"run"`    // id of the run, or of the plan
	ConfigText json.RawMessage `json:"config"` // canonical; with the release's files, the rest of Inputs
	Inputs

	Verify bool     `json:"verify,omitempty"` // only find which earlier results hold
	Until  []string `json:"until,omitempty"`  // with Verify: as in pipeline.Options
	// Hooked are, with Verify, the steps and stages with hooks around them. Hooks may change what
	// a check would see, so these steps and their dependents are not checked.
	Hooked []string `json:"hooked,omitempty"`

	Cluster  bool   `json:"cluster,omitempty"`  // there is one, and it runs
	Approved string `json:"approved,omitempty"` // digest of the plan that this one is compared with; empty: this one is kept
	PlannedPath
}

// Verified are the earlier results that hold.
type Verified struct {
	Steps map[string]CachedResult `json:"steps"` // by "stage/name"
}

// CachedResult is the earlier result of a step that holds for an input.
type CachedResult struct {
	Digests journal.Digests `json:"digests"`
	Input   json.RawMessage `json:"input"`
	Result  Result          `json:"result"`
}

// For reports whether c is the result for req.
func (c CachedResult) For(req Request) bool {
	return c.Digests == req.Digests && bytes.Equal(c.Input, req.Input)
}
