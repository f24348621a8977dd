package contract

import (
	"slices"
	"time"

	"github.com/slipway-sh/slipway/pipeline"
)

// The stages of a run of tests: a step for each test, and for each workload what is done
// with it.
const (
	StageTest        = "test"
	StageAppsDeploy  = "apps-deploy"
	StageAppsCheck   = "apps-check"
	StageAppsDestroy = "apps-destroy"
)

// afterDeadline is what a step may take besides the deadline of its test: to begin, and to
// remove what was made.
const afterDeadline = 3 * time.Minute

// SuiteInput is what the step of a test or of a workload works on. The platform release is
// in PlatformDir.
type SuiteInput struct {
	Name    string            `json:"name"`              // of the test or the workload
	Images  map[string]string `json:"images,omitempty"`  // reference by digest, by name: those that it names
	Rewrite map[string]string `json:"rewrite,omitempty"` // as in ComponentInput
	// PullSecret is as in ComponentInput.
	PullSecret bool `json:"pullSecret,omitempty"`
}

// Tested is what the step of a test saw.
type Tested struct {
	Gates []string `json:"gates,omitempty"` // that were open
	Jobs  []string `json:"jobs,omitempty"`  // namespace/name; they have completed
}

// Workload is what a step has made of a workload, or removed.
type Workload struct {
	Objects   []string `json:"objects,omitempty"`   // "Kind namespace/name"
	Workloads []string `json:"workloads,omitempty"` // "Deployment/web": rolled out
}

// LeftoversInput is what infrastructure/leftovers works on.
type LeftoversInput struct {
	// Platform and Version are those of the release whose tests are run: the cluster must
	// have it. Empty at the end of a run.
	Platform string `json:"platform,omitempty"`
	Version  string `json:"version,omitempty"`
	// Pods is the URL that answers with 200 once the pods that ran before the cluster was
	// stopped run again; empty where nobody knows.
	Pods string `json:"pods,omitempty"`
}

// Leftovers are objects of tests that were not removed by these.
type Leftovers struct {
	Removed []string `json:"removed,omitempty"` // "Kind namespace/name"
}

// suiteStep is the code of a stage's steps; each step is ForEach test or workload.
func suiteStep[Out any](stage string) Step[SuiteInput, Out] {
	return Step[SuiteInput, Out]{Spec{Key: key(stage, "each"), Platform: true}}
}

// ForEach is the step of one test or workload, with its deadline.
func (s Step[In, Out]) ForEach(name string, deadline time.Duration) Step[In, Out] {
	s.Timeout = deadline + afterDeadline
	return s.Named(s.Stage, name)
}

// TestStep carries a test out, and removes what was made for it.
func TestStep() Step[SuiteInput, Tested] { return suiteStep[Tested](StageTest) }

// AppsDeployStep deploys a workload, or brings it to what the release has.
func AppsDeployStep() Step[SuiteInput, Workload] { return suiteStep[Workload](StageAppsDeploy) }

// AppsCheckStep looks at a workload that is deployed.
func AppsCheckStep() Step[SuiteInput, Tested] { return suiteStep[Tested](StageAppsCheck) }

// AppsDestroyStep removes a workload with its data.
func AppsDestroyStep() Step[SuiteInput, Workload] { return suiteStep[Workload](StageAppsDestroy) }

// LeftoversStep removes what tests have left whose run was killed.
func LeftoversStep() Step[LeftoversInput, Leftovers] {
	return Step[LeftoversInput, Leftovers]{Spec{Key: key(StageInfrastructure, "leftovers"), Timeout: leftoversLimit}}
}

// CleanUpStep is LeftoversStep at the end of a run, which may have been interrupted.
func CleanUpStep() Step[LeftoversInput, Leftovers] {
	return LeftoversStep().Named(StagePostOrchestrator, "leftovers")
}

// leftoversLimit is how long it may take until pods run again and leftovers are gone.
const leftoversLimit = 5 * time.Minute

// OfSuite reports whether a step is that of a test or of a workload.
func OfSuite(k pipeline.Key) bool {
	return slices.Contains([]string{StageTest, StageAppsDeploy, StageAppsCheck, StageAppsDestroy}, k.Stage)
}
