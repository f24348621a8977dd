package contract

import (
	"bytes"
	"encoding/json"
	"io/fs"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/providers"
)

// Inputs are what a workflow is wired from, by the conductor and, in a container, for a plan.
type Inputs struct {
	Config        *config.Config    `json:"-"` // see PlanRequest
	Release       *platform.Release `json:"-"` // nil where it is removed
	ReleaseDigest string            `json:"release"`
	Environment   Environment       `json:"environment"`
	Images        map[string]string `json:"refs"` // see containers.Images.In
	ImagesDigest  string            `json:"images"`
	Rewrite       map[string]string `json:"rewrite,omitempty"` // see ComponentInput
	Tools         map[string]string `json:"tools"`             // version, by name, without a leading v
	UserSecrets   []string          `json:"userSecrets"`       // names of the secrets that the configuration gives
	RunOptions
}

// NodeHealth answers with 200, to a certificate of the cluster, when the local cluster's node is ready,
// NodePods when the pods that ran before its start run again, too.
const (
	NodeHealth = "https://cluster:6444/readyz"
	NodePods   = NodeHealth + "/pods"
)

// Environment is what a provider contributes to a deployment, as data: the container of a plan
// wires the same graph from it, without the provider. The zero value is that of no provider.
type Environment struct {
	Root      fs.FS          `json:"-"`         // Terraform root
	Terraform TerraformInput `json:"terraform"` // what the steps with the root work on
	providers.Cluster
	// Account tells the account apart with which that cluster's nodes pull, and nothing of it;
	// empty: they have none from Slipway.
	Account string `json:"account,omitempty"`
}

// RunOptions are what a command line says of a run, besides the configuration, that steps take
// into account. They reach the wiring of the workflow as they are, in every process, so a new one
// is a field here, a flag, and the input of the step that reads it.
type RunOptions struct {
	// TakeOwnership makes a run take over the platform's objects that exist and that others own, and a
	// deployment of this name that the state does not know; otherwise these end the run.
	TakeOwnership bool `json:"takeOwnership,omitempty"`
	// CRDs makes a destroy also delete CustomResourceDefinitions that the release keeps, or
	// that others use, with all their objects.
	CRDs bool `json:"crds,omitempty"`
	// Change says how an upgrade or a rollback is done.
	Change Change `json:"change,omitzero"`
}

// AsFlags are the flags of slipway plan that say the same; Change is in PlannedPath.Flags.
func (o RunOptions) AsFlags() (flags []string) {
	if o.TakeOwnership {
		flags = append(flags, "--take-ownership")
	}
	if o.CRDs {
		flags = append(flags, "--crds")
	}
	return flags
}

// PlanRequest is what `slipway dry-run` carries out without changing anything, with the graph that the
// conductor wires from the same Inputs. The answer is a Plan or, with Verify, a Verified.
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
