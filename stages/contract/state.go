package contract

import (
	"time"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/report"
)

// CodeNotThere: nothing is installed under that name.
const CodeNotThere fault.Code = "DEP-001"

// RuntimeVersion is the version of the runtime state that this program writes. It reads older ones.
const RuntimeVersion = 1

// RuntimeState is what a deployment's steps found out: state.yaml. It holds no secret.
type RuntimeState struct {
	Version        int             `json:"version"` // see RuntimeVersion
	Deployment     string          `json:"deployment"`
	Provider       string          `json:"provider"`
	Platform       string          `json:"platform"` // version of the release that was installed to the end
	Run            string          `json:"run"`      // that wrote this
	Infrastructure *Infrastructure `json:"infrastructure,omitempty"`
	Revision       string          `json:"revision,omitempty"` // commit of the GitOps tree
	Access         *Access         `json:"access,omitempty"`
}

// RunFiles are what `slipway state keep` writes into the deployment's state.
type RunFiles struct {
	Run     string            `json:"run"`
	Files   map[string]string `json:"files"`             // of the run's directory, by name
	Runtime *RuntimeState     `json:"runtime,omitempty"` // for state.yaml; nil: left as it is
}

// Stored is what `slipway state show` prints: what the deployment's state knows.
type Stored struct {
	Record  *report.Run `json:"record,omitempty"`  // of the last run that was not refused, if there is one
	Refused *Refusal    `json:"refused,omitempty"` // of the last run; nil: it was not
	Cluster bool        `json:"cluster"`           // something was installed on a cluster
	// Platform is the version of the release that was installed to the end; empty: none was.
	Platform string `json:"platform,omitempty"`
	// ID tells the deployment from others of its name; empty where nothing was installed.
	ID string `json:"id,omitempty"`
	// Lost says that this engine has no volume of Slipway's cluster: it has removed it or, if the state
	// is in a bucket, may never have had it.
	Lost  bool   `json:"lost,omitempty"`
	Waits []Wait `json:"waits,omitempty"` // what the steps that run wait for, if they run on this engine
}

// Refusal is a run that was refused before it had changed anything.
type Refusal struct {
	Run      string     `json:"run"`
	Workflow string     `json:"workflow"`
	Code     fault.Code `json:"code"`
	Error    string     `json:"error"`
}

// Wait is something that a step waits for.
type Wait struct {
	Step  string    `json:"step"`           // "stage/step"
	For   string    `json:"for"`            // "the gate http shop/web:80/healthz"
	Since time.Time `json:"since"`          // when it began to wait
	Until time.Time `json:"until,omitzero"` // when it gives up
	Seen  string    `json:"seen"`           // last
}

// WaitsFile, in a step's directory of the run's record, holds a JSON list of what it waits
// for; it is not there while that is nothing.
const WaitsFile = "waits.json"

// RunSummary is a run in a list.
type RunSummary struct {
	ID       string         `json:"id"`
	Workflow string         `json:"workflow"`
	Outcome  report.Outcome `json:"outcome"`
	Exit     fault.Class    `json:"exit"` // 0 too when it has not ended
	Started  time.Time      `json:"started,omitzero"`
	Seconds  float64        `json:"seconds"`           // 0 when it has not ended
	Problem  string         `json:"problem,omitempty"` // why its record cannot be used; only ID is set then
}

// Summarise is a run's line in a list.
func Summarise(id string, record *report.Run) RunSummary {
	return RunSummary{
		ID: id, Workflow: record.Workflow, Outcome: record.Outcome, Exit: record.Exit,
		Started: record.Started, Seconds: record.Elapsed().Seconds(),
	}
}

// RunDetail is a run with its record.
type RunDetail struct {
	ID      string      `json:"id"`
	Record  *report.Run `json:"record,omitempty"`  // none when it was killed early
	Problem string      `json:"problem,omitempty"` // why its record cannot be used
}

// Identity tells a deployment from others of the same name: deployment/ in its state.
type Identity struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
}

// Opened is what a run finds when it has taken the lock.
type Opened struct {
	Lost  bool `json:"lost,omitempty"`  // as that of Stored
	First bool `json:"first,omitempty"` // no install has succeeded yet
	Known int  `json:"known,omitempty"` // steps that the journal knows
	// Phases are those of the last run: a removal has no release that says what they are.
	Phases []report.Phase `json:"phases,omitempty"`
}

// StateRequest is what an action of `slipway state` works with; most need nothing. The action's
// answer, if it has one, is JSON in ResultFile.
type StateRequest struct {
	Who        lock.Holder `json:"who,omitzero"`         // hold, unlock: who does it; open, purge, watch, wipe: the run that has the lock
	Deployment string      `json:"deployment,omitempty"` // open: its name
	ID         string      `json:"id,omitempty"`         // run, report: of a run; backup: of a backup
	Entry      string      `json:"entry,omitempty"`      // open, purge: the deployment's file in the engine's index
	Path       string      `json:"path,omitempty"`       // keep: file with RunFiles; report: directory to make
	Patience   Duration    `json:"patience,omitzero"`    // hold: how long to wait for a holder that is alive
	Port       int         `json:"port,omitempty"`       // hold: where to listen once the lock is held
	Force      bool        `json:"force,omitempty"`      // unlock: also when the holder is alive
}

// Progress is how far an install is: what `slipway status` says, and, for those who look at
// the cluster and do not have Slipway, the ConfigMap slipway-system/slipway-status.
type Progress string

// How far an install is. Before it is in progress, the cluster says nothing.
const (
	NotStarted Progress = "NotStarted"
	InProgress Progress = "InProgress"
	Waiting    Progress = "Waiting" // for what the message says
	Success    Progress = "Success"
	Failure    Progress = "Failed"
	Cancelled  Progress = "Cancelled" // on request; no step is left that could tell the cluster
	// Interrupted: the run was killed; no step is left that could tell the cluster.
	Interrupted Progress = "Interrupted"
	Lost        Progress = "Lost" // with the volume that the engine has removed; never in a cluster
)
