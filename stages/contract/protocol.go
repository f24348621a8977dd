package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/config"
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
	// NodeDirVariable is where the volume of the cluster's node is mounted, if it is.
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
	// Locked says that the run holds the deployment's lock: without it the step fails.
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
type Duration = config.Duration

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

// OriginVariable names, in a step's container, the process that started it, where
// several work in one Dagger session: they all see what the engine logs.
const OriginVariable = "SLIPWAY_ORIGIN"

// Line is the line of standard error in which a container says what goes on: who says
// it, "stage/name", and the text. origin is the value of OriginVariable.
func Line(origin, id, text string) string {
	text = oneLine(text)
	if origin != "" {
		origin = "[" + origin + "]"
	}
	return "slipway" + origin + ": " + id + ": " + text + "\n"
}

var lineRE = regexp.MustCompile(`(?s)slipway(?:\[([^\[\] ]+)\])?: (.*/.*)`)

// ParseLine finds such a line in one of the engine's log, and returns its origin and
// what comes after it: "stage/name: text".
func ParseLine(line string) (origin, said string, ok bool) {
	m := lineRE.FindStringSubmatch(line)
	if m == nil {
		return "", "", false
	}
	return m[1], m[2], true
}

// oneLine joins the lines of a text: names of objects in a cluster may contain line breaks, after
// which they could pass for lines of Slipway's own.
func oneLine(text string) string { return strings.ReplaceAll(text, "\n", " ") }

// partSize is how long a secret of the engine may be, in bytes (Client.SetSecret of
// dagger.io/dagger v0.20.8; it mounts none of more than 500 KiB).
const partSize = 128000

// Parts splits text, which is UTF-8, into files in place of file that each fit into a secret of the
// engine: the engine shows all other arguments. ReadParts puts them together.
func Parts(file, text string) map[string]string {
	out := map[string]string{}
	for n := 0; n == 0 || text != ""; n++ {
		end := min(len(text), partSize)
		for end < len(text) && !utf8.RuneStart(text[end]) {
			end--
		}
		out[part(file, n)], text = text[:end], text[end:]
	}
	return out
}

// part is the name of a part of file: file itself, then file.1 and so on.
func part(file string, n int) string {
	if n == 0 {
		return file
	}
	return fmt.Sprintf("%s.%d", file, n)
}

// ReadParts returns the text that Parts split.
func ReadParts(file string) ([]byte, error) {
	text, err := bounded.File(file, bounded.Generated)
	for n := 1; err == nil; n++ {
		var more []byte
		more, err = bounded.File(part(file, n), bounded.Generated)
		text = append(text, more...)
		if errors.Is(err, fs.ErrNotExist) {
			return text, nil
		}
	}
	return nil, err
}
