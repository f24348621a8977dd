package contract

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/journal"
)

// Paths inside a step's container.
const (
	StateDir         = "/slipway/state"    // the deployment's state volume
	PlatformDir      = "/slipway/platform" // the platform release, read-only
	BundleDir        = "/slipway/bundle"   // the bundle's manifests, read-only
	ToolsDir         = "/usr/local/bin"    // the pinned tools
	RequestFile      = "/slipway/request.json"
	ResultFile       = "/slipway/result.json"
	TLSKeyFile       = "/slipway/tls.key"               // private key of a given certificate
	UserSecretsDir   = "/slipway/given"                 // secrets of the configuration, by name
	StateKeyFile     = "/slipway/state.key"             // key of the deployment's secrets, where one is given
	KubeconfigFile   = StateDir + "/secrets/kubeconfig" // mode 0600; of a cluster that Slipway runs
	AccessFile       = "/slipway/access.yaml"           // kubeconfig of an existing cluster
	IndexDir         = "/slipway/deployments"           // a file for each deployment whose state is on the engine
	StatesDir        = "/slipway/states"                // the state volumes of these deployments, by name
	RegistryAuthFile = "/slipway/registry.json"         // docker config.json with the account with which its nodes pull
)

// Variables of a container's environment that say where the deployment's state is, and what
// the configuration says of the deployment.
const (
	// StateURLVariable is the URL of its bucket; empty where it is in StateDir.
	StateURLVariable = "SLIPWAY_STATE_URL"
	// StateMakeKeyVariable is set where the key of its secrets, if none is given,
	// is generated and stored in StateDir.
	StateMakeKeyVariable = "SLIPWAY_STATE_MAKE_KEY"
	// NodeDirVariable is where the volume of the cluster's node is mounted; empty where it is
	// not.
	NodeDirVariable = "SLIPWAY_NODE_DIR"
	// ProviderVariable is the provider of the configuration that a run works with.
	ProviderVariable = "SLIPWAY_PROVIDER"
)

// Request is what the conductor hands to `slipway step`.
type Request struct {
	Run     string          `json:"run"`            // id of the run
	Stage   string          `json:"stage"`          // "infrastructure"
	Step    string          `json:"step"`           // "terraform"
	Code    string          `json:"code,omitempty"` // the step whose code it runs, "stage/step"; empty: its own
	Timeout Duration        `json:"timeout"`        // of the whole step
	Input   json.RawMessage `json:"input"`

	Deployment string          `json:"deployment"`
	Digests    journal.Digests `json:"digests"` // hex sha256 each; an earlier result counts for the same only
	// Locked says that the run holds the deployment's lock: the step fails when it
	// does not any more.
	Locked bool `json:"locked,omitempty"`
	// Cluster says that the step works on the cluster.
	Cluster bool `json:"cluster,omitempty"`
	// VerifyOnly forbids to run the step: an earlier result is reused, or it fails.
	VerifyOnly bool `json:"verifyOnly,omitempty"`
}

// ID is "stage/step".
func (r Request) ID() string { return r.Stage + "/" + r.Step }

// Result is what `slipway step` leaves in ResultFile, whether it succeeded or not.
type Result struct {
	Status   Status          `json:"status"`
	Output   json.RawMessage `json:"output,omitempty"`
	Fault    *fault.Fault    `json:"fault,omitempty"`
	Started  time.Time       `json:"started"`
	Finished time.Time       `json:"finished"`
	// Began is when the step's code was called; missing when an earlier result was reused, or the step
	// could not begin.
	Began time.Time `json:"began,omitzero"`
	// Counts are what the step has counted, by name, whether it succeeded or not.
	Counts map[string]int64 `json:"counts,omitempty"`
}

// Status is how a step ended.
type Status = pipeline.Status

// The statuses that a step reports of itself.
const (
	Succeeded = pipeline.Succeeded
	Reused    = pipeline.Reused // an earlier result still holds
	Failed    = pipeline.Failed
)

// Duration is a time.Duration that is written as "1m30s".
type Duration time.Duration

// MarshalText writes d as time.Duration does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads what time.ParseDuration reads.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = Duration(v)
	return err
}

// Decode decodes the output of step id into out, or returns its fault.
func (r Result) Decode(id string, out any) error {
	if r.Fault != nil {
		return r.Fault
	}
	if err := json.Unmarshal(r.Output, out); err != nil {
		return fmt.Errorf("decode the output of %s: %w", id, err)
	}
	return nil
}

// Volatile is an input of which a part may change from run to run without making
// an earlier result invalid, such as the address of a load balancer.
type Volatile interface {
	// CacheKey is the input without that part.
	CacheKey() any
}
