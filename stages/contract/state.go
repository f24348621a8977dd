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

// Action is what `slipway state` does with a deployment's state, declared once for both sides: what
// it works with, and what it answers as JSON in ResultFile; Nothing: no answer.
type Action[In, Out any] string

// The actions on a deployment's state. Those with a HeldInput need a run that has the lock.
const (
	ShowState       Action[Nothing, *Stored]             = "show"
	ListRuns        Action[Nothing, []RunSummary]        = "runs"
	ShowRun         Action[RecordInput, *RunDetail]      = "run"
	ListBackups     Action[Nothing, []BackupSummary]     = "backups"
	ReadBackup      Action[RecordInput, *BackupRelease]  = "backup"
	ListIndex       Action[Nothing, []string]            = "index"
	ListDeployments Action[Nothing, []DeploymentSummary] = "list"
	ReadKubeconfig  Action[Nothing, []byte]              = "kubeconfig" // empty: there is no cluster
	WriteReport     Action[RecordInput, string]          = "report"     // answers the run's id
	OpenState       Action[HeldInput, Opened]            = "open"
	KeepRun         Action[RecordInput, Nothing]         = "keep"
	PurgeState      Action[HeldInput, Nothing]           = "purge"
	WatchLock       Action[HeldInput, Nothing]           = "watch"
	WipeCluster     Action[HeldInput, Nothing]           = "wipe" // by the command that follows
	HoldLock        Action[HoldInput, Nothing]           = "hold"
	BreakLock       Action[UnlockInput, lock.Record]     = "unlock"
	AwaitPods       Action[Nothing, Nothing]             = "await-pods"
)

// RecordInput says which record an action is about.
type RecordInput struct {
	ID   string `json:"id,omitempty"`   // of the run or the backup; WriteReport: empty is the last run
	Path string `json:"path,omitempty"` // KeepRun: file with RunFiles; WriteReport: directory to make
}

// HeldInput is the input of an action for a run that has the lock.
type HeldInput struct {
	Who        lock.Holder `json:"who,omitzero"`
	Deployment string      `json:"deployment,omitempty"` // OpenState: its name
	Entry      string      `json:"entry,omitempty"`      // OpenState, PurgeState: its file in the engine's index
}

// HoldInput is the input of HoldLock.
type HoldInput struct {
	Who      lock.Holder `json:"who,omitzero"`
	Patience Duration    `json:"patience,omitzero"` // how long to wait for a holder that is alive
	Port     int         `json:"port,omitempty"`    // where to listen once the lock is held
}

// UnlockInput is the input of BreakLock.
type UnlockInput struct {
	Who   lock.Holder `json:"who,omitzero"`
	Force bool        `json:"force,omitempty"` // also when the holder is alive
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
