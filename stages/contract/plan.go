package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// PlannedPath is what the plan of an upgrade is told besides the release.
type PlannedPath struct {
	Flags string   `json:"flags,omitempty"` // that slipway plan needs besides the workflow: "--to 2.0.0"
	Later []string `json:"later,omitempty"` // versions of the releases that follow
}

// Plan is what a workflow would do to a deployment. It holds no secret.
type Plan struct {
	Version    int       `json:"version"`    // of this format
	Digest     string    `json:"digest"`     // of all but itself, the time, the phases and what follows: "sha256:…"
	Made       time.Time `json:"made"`       // when
	Deployment string    `json:"deployment"` // its name
	Workflow   string    `json:"workflow"`   // "install", "upgrade" or "destroy"

	Release       PlannedRelease   `json:"release"`
	Phases        []string         `json:"phases,omitempty"` // names of those that the run would have, as users of the release know them
	Style         string           `json:"style,omitempty"`  // of an upgrade: see Change
	Configuration []Difference     `json:"configuration"`    // from that of the last run that succeeded
	Changes       []PlannedChange  `json:"changes"`
	Unchanged     int              `json:"unchanged"` // objects that would not change
	Unknown       []PlannedUnknown `json:"unknown"`   // what only a run finds out
	Refused       []PlannedUnknown `json:"refused"`   // what the run would end with
	Later         []string         `json:"later"`     // versions of the releases to which upgrades follow this one

	Basis PlanBasis `json:"basis"`
}

// PlannedRelease is the platform release before and after.
type PlannedRelease struct {
	Name   string `json:"name"`
	From   string `json:"from,omitempty"`   // version that is installed; empty: none
	To     string `json:"to,omitempty"`     // version; empty: it is removed
	Digest string `json:"digest,omitempty"` // of the files of To
}

// What a PlannedChange is of, in the order in which a plan has them.
const (
	PlanComponents   = "components"
	PlanBackups      = "backups"    // that an upgrade makes, and proves by restoring them
	PlanMigrations   = "migrations" // of data, in the order in which they are carried out
	PlanTerraform    = "terraform"  // resources
	PlanOutputs      = "terraformOutputs"
	PlanObjects      = "objects" // of the cluster
	PlanJobs         = "jobs"
	PlanFiles        = "files" // that are pushed to the Git server
	PlanApplications = "applications"
	PlanImages       = "images" // that objects begin or cease to name
)

// The actions of a PlannedChange.
const (
	PlanAdd     = "add"
	PlanChange  = "change"
	PlanRemove  = "remove"
	PlanReplace = "replace" // by Terraform
	PlanRun     = "run"
)

// PlannedChange is one thing that a run would do.
type PlannedChange struct {
	Of      string       `json:"of"`
	Action  string       `json:"action"`
	Name    string       `json:"name"`           // "Deployment shop/web"
	Step    string       `json:"step,omitempty"` // "stage/step" that does it
	Fields  []Difference `json:"fields,omitempty"`
	Note    string       `json:"note,omitempty"`
	Content string       `json:"content,omitempty"` // digest of an object that is added
	// Destroys says, in a sentence, what is gone then.
	Destroys string `json:"destroys,omitempty"`
}

// Difference is a value that changes.
type Difference struct {
	Path string `json:"path"`          // "spec.replicas"
	Old  string `json:"old,omitempty"` // as JSON; empty: there is none
	New  string `json:"new,omitempty"` // as JSON; empty: it is removed
}

// PlannedStyle is that of an upgrade, as its step tells it.
type PlannedStyle string

// PlannedUnknown is what a plan cannot say, or what the run would end with.
type PlannedUnknown struct {
	What string `json:"what"` // a step, "stage/step"
	Why  string `json:"why"`
	Code string `json:"code,omitempty"` // of the fault
	Exit int    `json:"exit,omitempty"` // class of the fault
	Fix  string `json:"fix,omitempty"`  // remedy of the fault
}

// PlanBasis is what a plan was made from: digests of each part.
type PlanBasis struct {
	Configuration string            `json:"configuration"`
	Release       string            `json:"release,omitempty"`
	Tools         string            `json:"tools"`
	Installed     string            `json:"installed,omitempty"` // version of the release that is installed
	Terraform     string            `json:"terraform,omitempty"` // lineage and serial of the state
	Git           string            `json:"git,omitempty"`       // repository of the tree and the commit that it is at: "slipway/platform@…"
	Objects       map[string]string `json:"objects"`             // "Kind namespace/name" as it is
}

// Empty reports whether the workflow would change nothing.
func (p *Plan) Empty() bool {
	return len(p.Changes)+len(p.Configuration)+len(p.Later) == 0 && p.Release.From == p.Release.To
}

// Seal gives a plan its digest: that of all that is in it but the digest itself, the time, the
// phases, which are only names, and the releases that follow.
func (p *Plan) Seal() error {
	plain := *p
	plain.Digest, plain.Made, plain.Phases, plain.Later = "", time.Time{}, nil, nil
	text, err := json.Marshal(plain)
	if err != nil {
		return fmt.Errorf("encode the plan: %w", err)
	}
	sum := sha256.Sum256(text)
	p.Digest = "sha256:" + hex.EncodeToString(sum[:])
	return nil
}
