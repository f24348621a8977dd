package contract

import (
	"slices"
	"time"

	"github.com/slipway-sh/slipway/pipeline"
)

// The stages that run on a deployment. Configuring, the first one, happens before a
// run exists; diagnosis looks at a deployment, after a failure or for its status.
const (
	StageInfrastructure   = "infrastructure"
	StagePreOrchestrator  = "preorchestrator"
	StageOrchestrator     = "orchestrator"
	StagePostOrchestrator = "postorchestrator"
	StageDiagnosis        = "diagnosis"
)

// OfComponents reports whether a stage has steps that are named for the components of a release.
func OfComponents(stage string) bool {
	return stage == StagePreOrchestrator || stage == StageOrchestrator
}

// Spec is a step without its types: its name, and what its container gets besides the input.
type Spec struct {
	pipeline.Key

	// Code names the step whose code this one runs; zero: its own.
	Code pipeline.Key

	Offline     bool // not connected to the cluster
	Terraform   bool // gets the provider's Terraform root, in TerraformDir
	Platform    bool // gets the platform release, in PlatformDir
	Manifests   bool // gets the bundle's manifests, in BundleDir
	TLSKey      bool // gets the private key of the user's certificate, in TLSKeyFile
	UserSecrets bool // gets the secrets of the configuration, in UserSecretsDir
	Account     bool // gets the account with which nodes pull, if there is one, in RegistryAuthFile
	Harmless    bool // changes nothing, so it need not wait for the lock
	// Timeout limits the step; 0 is the limit of the configuration.
	Timeout time.Duration
}

// Step declares a step that takes In and returns Out. Wiring and step code both start from it, so that a
// disagreement between them does not compile.
type Step[In, Out any] struct{ Spec }

// Named is a step of another name that runs the code of s: each component has one, for example.
func (s Step[In, Out]) Named(stage, name string) Step[In, Out] {
	s.Code, s.Key = s.Key, key(stage, name)
	return s
}

func key(stage, name string) pipeline.Key { return pipeline.Key{Stage: stage, Name: name} }

// PreflightStep checks the machine and the tools before anything is changed.
func PreflightStep() Step[PreflightInput, Preflight] {
	return Step[PreflightInput, Preflight]{Spec{Key: key(StageInfrastructure, "preflight"), Offline: true, TLSKey: true, Harmless: true}}
}

// NodeKey is the action that starts the local Kubernetes node. It runs in the conductor,
// not in a container of its own.
func NodeKey() pipeline.Key { return key(StageInfrastructure, "node") }

// NodeRemoveKey is the action that deletes the local Kubernetes node.
func NodeRemoveKey() pipeline.Key { return key(StageInfrastructure, "node-remove") }

// CheckEarlierSpec checks in one container which earlier results still hold: see PlanRequest.
func CheckEarlierSpec() Spec {
	return Spec{Key: key(StageInfrastructure, "verify"), Platform: true, Manifests: true, TLSKey: true, UserSecrets: true, Account: true}
}

// ClusterPreflightStep checks an existing cluster before anything is changed.
func ClusterPreflightStep() Step[ClusterPreflightInput, ClusterPreflight] {
	return Step[ClusterPreflightInput, ClusterPreflight]{Spec{Key: key(StageInfrastructure, "cluster-preflight")}}
}

// TerraformStep applies the provider's Terraform root.
func TerraformStep() Step[TerraformInput, Infrastructure] {
	return Step[TerraformInput, Infrastructure]{Spec{Key: key(StageInfrastructure, "terraform"), Offline: true, Terraform: true}}
}

// TerraformDestroyStep destroys what TerraformStep made.
func TerraformDestroyStep() Step[TerraformInput, TerraformDestroyed] {
	return Step[TerraformInput, TerraformDestroyed]{Spec{Key: key(StageInfrastructure, "terraform-destroy"), Offline: true, Terraform: true}}
}

// ClusterStep waits until the cluster's API responds and its nodes are ready.
func ClusterStep() Step[ClusterInput, Cluster] {
	return Step[ClusterInput, Cluster]{Spec{Key: key(StageInfrastructure, "cluster")}}
}

// OwnershipStep looks, before anything is made in the cluster, whether what the platform
// is made of is there and somebody else's.
func OwnershipStep() Step[OwnershipInput, Ownership] {
	return Step[OwnershipInput, Ownership]{Spec{Key: key(StageInfrastructure, "ownership"), Platform: true, Manifests: true}}
}

// AddonsStep brings cluster DNS and storage to a fresh cluster that lacks them.
func AddonsStep() Step[AddonsInput, Addons] {
	return Step[AddonsInput, Addons]{Spec{Key: key(StageInfrastructure, "local-addons")}}
}

// StorageStep verifies the default StorageClass by use.
func StorageStep() Step[StorageInput, StorageCheck] {
	return Step[StorageInput, StorageCheck]{Spec{Key: key(StageInfrastructure, "storage"), Account: true}}
}

// LoadBalancerStep verifies Services of type LoadBalancer by use.
func LoadBalancerStep() Step[LoadBalancerInput, LoadBalancerCheck] {
	return Step[LoadBalancerInput, LoadBalancerCheck]{Spec{Key: key(StageInfrastructure, "loadbalancer"), Account: true}}
}

// PlatformRemoveStep takes the platform out of a cluster that stays.
func PlatformRemoveStep() Step[RemoveInput, Removed] {
	return Step[RemoveInput, Removed]{Spec{Key: key(StageInfrastructure, "platform-remove")}}
}

// CRDsRemoveStep takes the CustomResourceDefinitions of the platform out of that cluster,
// and at last how it is removed.
func CRDsRemoveStep() Step[RemoveInput, Removed] {
	return Step[RemoveInput, Removed]{Spec{Key: key(StageInfrastructure, "crds-remove")}}
}

// PlatformInventoryStep looks for what these two left.
func PlatformInventoryStep() Step[InventoryInput, Inventory] {
	return Step[InventoryInput, Inventory]{Spec{Key: key(StageInfrastructure, "platform-inventory")}}
}

// InventoryStep looks for what would outlive the deployment.
func InventoryStep() Step[InventoryInput, Inventory] {
	return Step[InventoryInput, Inventory]{Spec{Key: key(StageInfrastructure, "inventory"), Offline: true}}
}

// NamespacesStep makes the platform's namespaces.
func NamespacesStep() Step[NamespacesInput, Namespaces] {
	return Step[NamespacesInput, Namespaces]{Spec{Key: key(StagePreOrchestrator, "namespaces"), Platform: true, Account: true}}
}

// SecretsStep makes the platform's secrets.
func SecretsStep() Step[SecretsInput, Secrets] {
	return Step[SecretsInput, Secrets]{Spec{Key: key(StagePreOrchestrator, "secrets"), Platform: true, UserSecrets: true}}
}

// TLSStep makes or checks the platform's certificate.
func TLSStep() Step[TLSInput, TLS] {
	return Step[TLSInput, TLS]{Spec{Key: key(StagePreOrchestrator, "tls"), Platform: true, TLSKey: true}}
}

// ConfigMapsStep makes the platform's ConfigMaps.
func ConfigMapsStep() Step[ConfigMapsInput, ConfigMaps] {
	return Step[ConfigMapsInput, ConfigMaps]{Spec{Key: key(StagePreOrchestrator, "configmaps"), Platform: true}}
}

// RequiresStep waits for what somebody else puts into the cluster.
func RequiresStep() Step[Nothing, Requirements] {
	return Step[Nothing, Requirements]{Spec{Key: key(StagePreOrchestrator, "requires"), Platform: true}}
}

// ComponentStep installs a component of the platform and waits for its gates. Each is Named for its
// component, in StagePreOrchestrator for what apps rest on.
func ComponentStep() Step[ComponentInput, Component] {
	return Step[ComponentInput, Component]{Spec{Key: key(StageOrchestrator, "component"), Platform: true, Manifests: true}}
}

// HandoverStep hands a component over to Argo CD, which ComponentStep has installed in
// StagePreOrchestrator. Each is Named for its component.
func HandoverStep() Step[HandoverInput, Component] {
	return Step[HandoverInput, Component]{Spec{Key: key(StageOrchestrator, "handover"), Platform: true}}
}

// GitStep verifies the git server by use.
func GitStep() Step[GitInput, Git] {
	return Step[GitInput, Git]{Spec{Key: key(StagePreOrchestrator, "git"), Platform: true}}
}

// RepositoryStep registers a repository of the user's with Argo CD.
func RepositoryStep() Step[RepositoryInput, Repository] {
	return Step[RepositoryInput, Repository]{Spec{Key: key(StagePreOrchestrator, "repository"), UserSecrets: true}}
}

// BackupDataStep dumps data into the deployment's state, and proves that by restoring it. Each is
// Named by BackupDataKey.
func BackupDataStep() Step[BackupDataInput, BackedUp] {
	return Step[BackupDataInput, BackedUp]{Spec{Key: BackupDataKey("data"), Platform: true}}
}

// BackupDataKey is the step that backs data up.
func BackupDataKey(data string) pipeline.Key { return key(StagePreOrchestrator, "backup-"+data) }

// BackupStep completes a backup by release and configuration.
func BackupStep() Step[BackupInput, BackupSummary] {
	return Step[BackupInput, BackupSummary]{Spec{Key: key(StagePreOrchestrator, "backup"), Platform: true}}
}

// MigrateBeforeStep carries out the migrations before the components of a release.
func MigrateBeforeStep() Step[MigrateInput, Migrated] {
	return Step[MigrateInput, Migrated]{Spec{Key: key(StagePreOrchestrator, "migrate-before"), Platform: true}}
}

// MigrateAfterStep carries out the migrations after the components, and checks the data.
func MigrateAfterStep() Step[MigrateInput, Migrated] {
	return Step[MigrateInput, Migrated]{Spec{Key: key(StageOrchestrator, "migrate-after"), Platform: true}}
}

// RestoreStep takes migrations of data back, or puts a backup in its place.
func RestoreStep() Step[RestoreInput, Restored] {
	return Step[RestoreInput, Restored]{Spec{Key: key(StagePreOrchestrator, "restore"), Platform: true}}
}

// DataCheckStep checks the data after a rollback.
func DataCheckStep() Step[RestoreInput, Migrated] {
	return Step[RestoreInput, Migrated]{Spec{Key: key(StageOrchestrator, "data-check"), Platform: true}}
}

// PublishStep pushes the GitOps tree.
func PublishStep() Step[PublishInput, Publication] {
	return Step[PublishInput, Publication]{Spec{Key: key(StageOrchestrator, "publish"), Platform: true}}
}

// ProjectsStep bounds what the tree of the apps may bring about.
func ProjectsStep() Step[ProjectsInput, Projects] {
	return Step[ProjectsInput, Projects]{Spec{Key: key(StageOrchestrator, "projects"), Platform: true}}
}

// SyncStep waits until Argo CD has brought the apps to the tree's revision.
func SyncStep() Step[AppsInput, Apps] {
	return Step[AppsInput, Apps]{Spec{Key: key(StageOrchestrator, "sync"), Platform: true}}
}

// StatusStep looks at apps and gates as they are now. No workflow has it.
func StatusStep() Step[LiveInput, Live] {
	return Step[LiveInput, Live]{Spec{Key: key(StageDiagnosis, "status")}}
}

// PruneStep removes the components that the release has no more, or that are off now.
func PruneStep() Step[PruneInput, Pruned] {
	return Step[PruneInput, Pruned]{Spec{Key: key(StageOrchestrator, "prune"), Platform: true}}
}

// AccessStep reaches the platform as its users do.
func AccessStep() Step[AccessInput, Access] {
	return Step[AccessInput, Access]{Spec{Key: key(StagePostOrchestrator, "access"), Platform: true}}
}

// DiagnosisStep looks in the cluster for the cause of a failure. It takes twenty
// seconds at most; the rest of its time is for the container.
func DiagnosisStep() Step[DiagnosisInput, Diagnosis] {
	return Step[DiagnosisInput, Diagnosis]{Spec{Key: key(StageDiagnosis, "collect"), Timeout: 30 * time.Second}}
}

// The stages of a run of tests, with a step for each test or workload.
const (
	StageTest        = "test"
	StageAppsDeploy  = "apps-deploy"
	StageAppsCheck   = "apps-check"
	StageAppsDestroy = "apps-destroy"
)

// afterDeadline is what a step may take besides the deadline of its test: to begin, and to
// remove what was made.
const afterDeadline = 3 * time.Minute

// TestInput is what the step of a test or of a workload works on.
type TestInput struct {
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

// testStep is the code of a stage's steps; each step is ForEach test or workload.
func testStep[Out any](stage string) Step[TestInput, Out] {
	return Step[TestInput, Out]{Spec{Key: key(stage, "each"), Platform: true}}
}

// ForEach is the step of one test or workload, with its deadline.
func (s Step[In, Out]) ForEach(name string, deadline time.Duration) Step[In, Out] {
	s.Timeout = deadline + afterDeadline
	return s.Named(s.Stage, name)
}

// TestStep carries a test out, and removes what was made for it.
func TestStep() Step[TestInput, Tested] { return testStep[Tested](StageTest) }

// AppsDeployStep deploys a workload, or brings it to what the release has.
func AppsDeployStep() Step[TestInput, Workload] { return testStep[Workload](StageAppsDeploy) }

// AppsCheckStep looks at a workload that is deployed.
func AppsCheckStep() Step[TestInput, Tested] { return testStep[Tested](StageAppsCheck) }

// AppsDestroyStep removes a workload with its data.
func AppsDestroyStep() Step[TestInput, Workload] { return testStep[Workload](StageAppsDestroy) }

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

// OfTest reports whether a step belongs to a test or a workload.
func OfTest(k pipeline.Key) bool {
	return slices.Contains([]string{StageTest, StageAppsDeploy, StageAppsCheck, StageAppsDestroy}, k.Stage)
}
