package contract

import (
	"fmt"
	"time"

	"github.com/slipway-sh/slipway/fault"
)

// CallerVariable is the variable of a container's environment that holds the Caller as JSON;
// where it is empty, nothing is compared.
const CallerVariable = "SLIPWAY_CALLER"

// The codes of a deployment that a caller may not change.
const (
	// CodeTheirs: the deployment is somebody else's.
	CodeTheirs fault.Code = "DEP-014"
	// CodeElsewhere: the deployment's cluster is on another engine.
	CodeElsewhere fault.Code = "DEP-015"
)

// Claim says whose a deployment is and which engine has its cluster.
type Claim struct {
	// Owners are those who work on it, who made it first; none while nobody has said who
	// works.
	Owners []Owner `json:"owners,omitempty"`
	// Engine has the cluster; nil unless Slipway runs that and the state is in a bucket.
	Engine *Engine `json:"engine,omitempty"`
}

// Owner is somebody who works on a deployment.
type Owner struct {
	Name  string    `json:"name"` // as they call themselves, such as "alice@laptop"
	Since time.Time `json:"since"`
}

// Engine is a Dagger engine that has the cluster of a deployment.
type Engine struct {
	ID    string    `json:"id"`  // is on its volume, too
	By    string    `json:"by"`  // user@host whose run made it the deployment's
	Run   string    `json:"run"` // id of that run
	Since time.Time `json:"since"`
}

// Caller is who works on a deployment, and where.
type Caller struct {
	Deployment string `json:"deployment"` // its name
	// Owner is how they call themselves; empty: whose the deployment is is not compared.
	Owner string `json:"owner,omitempty"`
	// Join makes the deployment theirs, too.
	Join bool `json:"join,omitempty"`
	// Node says that the cluster is a service of this engine.
	Node bool `json:"node,omitempty"`
	// Here makes this engine the deployment's in place of the one that has the cluster.
	Here bool `json:"here,omitempty"`
}

// Elsewhere is the fault of what has to be done on the engine with the cluster of a
// deployment, if that is known; otherwise is what one can do on this one.
func Elsewhere(what, deployment string, at *Engine, otherwise string) error {
	text := fmt.Sprintf("the cluster of deployment %s is on another engine", deployment)
	if at != nil {
		text += fmt.Sprintf(", that of run %s of %s (%s)", at.Run, at.By, at.Since.UTC().Format(time.RFC3339))
	}
	return &fault.Fault{
		Code: CodeElsewhere, Class: fault.Usage, Op: what, Err: fmt.Errorf("%s; nothing was changed", text),
		Fix: "use the engine on which it was installed; " + otherwise,
	}
}
