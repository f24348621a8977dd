package contract

import "time"

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

	Release PlannedRelease `json:"release"`
	Phases  []string       `json:"phases,omitempty"` // names of those that the run would have, as users of the release know them
	PlannedChange
	Terraform    PlannedTerraform `json:"terraform"`
	Objects      []PlannedObject  `json:"objects"`   // that would change
	Unchanged    int              `json:"unchanged"` // objects that would not
	Jobs         []PlannedJob     `json:"jobs"`      // that would run
	Git          PlannedGit       `json:"git"`
	Applications []PlannedObject  `json:"applications"` // of Argo CD, that would change
	Images       PlannedImages    `json:"images"`
	Destructive  []string         `json:"destructive"` // what takes something away
	Unknown      []PlannedUnknown `json:"unknown"`     // what only a run finds out
	Refused      []PlannedUnknown `json:"refused"`     // what the run would end with
	Later        []string         `json:"later"`       // versions of the releases to which upgrades follow this one

	Basis PlanBasis `json:"basis"`
}

// PlannedRelease is the platform release before and after.
type PlannedRelease struct {
	Name   string `json:"name"`
	From   string `json:"from,omitempty"`   // version that is installed; empty: none
	To     string `json:"to,omitempty"`     // version; empty: it is removed
	Digest string `json:"digest,omitempty"` // of the files of To
}

// PlannedChange is what a release brings besides what its components are made of.
type PlannedChange struct {
	Configuration []Difference       `json:"configuration"`   // from that of the last run that succeeded
	Components    []PlannedComponent `json:"components"`      // that are added or removed
	Style         string             `json:"style,omitempty"` // of an upgrade: see Change
	Backups       []PlannedBackup    `json:"backups"`         // that an upgrade makes
	Migrations    []PlannedMigration `json:"migrations"`      // that an upgrade carries out, in their order
}

// PlannedComponent is a component of the release that would be on, or that was.
type PlannedComponent struct {
	Action string `json:"action"` // PlanAdd or PlanRemove
	Name   string `json:"name"`
	Kind   string `json:"kind"`
}

// PlannedBackup is data of which a backup is made and proved.
type PlannedBackup struct {
	Data string `json:"data"`           // its name
	Made string `json:"made,omitempty"` // id of the backup which is there already, of an upgrade that goes on
}

// PlannedMigration is a migration of data.
type PlannedMigration struct {
	Name  string   `json:"name"`
	Data  string   `json:"data"`
	When  string   `json:"when"`            // "before" or "after" the components
	Undo  bool     `json:"undo"`            // whether a rollback can take it back
	Stops []string `json:"stops,omitempty"` // workloads that do not run meanwhile, "Deployment shop/web"
}

// PlannedStyle is that of an upgrade, as its step tells it.
type PlannedStyle string

// Difference is a value that changes.
type Difference struct {
	Path string `json:"path"`          // "spec.replicas"
	Old  string `json:"old,omitempty"` // as JSON; empty: there is none
	New  string `json:"new,omitempty"` // as JSON; empty: it is removed
}

// The actions of a plan.
const (
	PlanAdd    = "add"
	PlanChange = "change"
	PlanRemove = "remove"
)

// PlannedObject is an object of the cluster that would change.
type PlannedObject struct {
	Action    string       `json:"action"` // "add", "change" or "remove"
	Kind      string       `json:"kind"`
	Namespace string       `json:"namespace,omitempty"`
	Name      string       `json:"name"`
	Step      string       `json:"step,omitempty"` // "stage/step" that does it
	Fields    []Difference `json:"fields,omitempty"`
	Note      string       `json:"note,omitempty"`
	Content   string       `json:"content,omitempty"` // digest of one that is added
}

// String is "Deployment shop/web".
func (o PlannedObject) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// PlannedJob is a Job that would run.
type PlannedJob struct {
	Object string `json:"object"` // "Job shop/migrate"
	Why    string `json:"why"`
}

// PlannedTerraform is what Terraform says.
type PlannedTerraform struct {
	Resources []PlannedResource `json:"resources,omitempty"` // that would change
	Outputs   []Difference      `json:"outputs,omitempty"`
	Serial    int64             `json:"serial"`            // of the state
	Lineage   string            `json:"lineage,omitempty"` // of the state; empty: there is none
}

// PlannedResource is a resource of Terraform's that would change.
type PlannedResource struct {
	Address string       `json:"address"`
	Action  string       `json:"action"` // "create", "update", "delete" or "replace"
	Fields  []Difference `json:"fields,omitempty"`
}

// PlannedGit is what would be pushed to the git server.
type PlannedGit struct {
	Repository string   `json:"repository,omitempty"`
	Revision   string   `json:"revision,omitempty"` // commit that it is at
	Added      []string `json:"added,omitempty"`    // files
	Changed    []string `json:"changed,omitempty"`
	Removed    []string `json:"removed,omitempty"`
}

// PlannedImages are the images that objects begin or cease to name.
type PlannedImages struct {
	Added   []string `json:"added,omitempty"`
	Removed []string `json:"removed,omitempty"`
}

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
	Git           string            `json:"git,omitempty"`       // commit of the tree
	Objects       map[string]string `json:"objects"`             // "Kind namespace/name" as it is
}

// Changes reports whether the workflow would change anything.
func (p *Plan) Changes() bool {
	return len(p.Terraform.Resources)+len(p.Terraform.Outputs)+len(p.Objects)+len(p.Jobs)+len(p.Applications)+len(p.Configuration)+
		len(p.Git.Added)+len(p.Git.Changed)+len(p.Git.Removed)+
		len(p.Components)+len(p.Migrations)+len(p.Later) > 0 || p.Release.From != p.Release.To
}
