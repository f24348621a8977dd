package contract

import "github.com/slipway-sh/slipway/providers"

// TerraformDir is where a step finds the provider's Terraform root, read-only.
const TerraformDir = "/slipway/terraform"

// DiskReserve is the free space for a deployment whose cluster is there: what it stored, and is to
// store, was required when it was begun.
const DiskReserve = 1 << 30

// PreflightInput is what infrastructure/preflight looks at.
type PreflightInput struct {
	Requirements providers.Requirements `json:"requirements"`
	TLS          *UserTLS               `json:"tls,omitempty"` // nil: the certificate is not the user's
}

// UserTLS is a certificate that the user brings; its private key is in TLSKeyFile.
type UserTLS struct {
	Certificate string   `json:"certificate"` // PEM
	CA          string   `json:"ca"`          // PEM; may be empty
	Hosts       []string `json:"hosts"`       // that it must be for
}

// Preflight is what infrastructure/preflight saw.
type Preflight struct {
	MemoryBytes int64  `json:"memoryBytes"` // total, limited by the container's cgroup
	DiskBytes   int64  `json:"diskBytes"`   // free on the state volume
	CPUs        int    `json:"cpus"`
	Kernel      string `json:"kernel,omitempty"` // release of the engine's
	// Raises says which sysctls of the machine the cluster will raise, from what and to what.
	Raises []string `json:"raises,omitempty"`
}

// TerraformInput is what infrastructure/terraform and
// infrastructure/terraform-destroy work on. The root is in TerraformDir.
type TerraformInput struct {
	Vars map[string]any `json:"vars"` // the root's variables; no secret
	Root string         `json:"root"` // digest of the root's files
}

// TerraformDestroyed is what infrastructure/terraform-destroy left.
type TerraformDestroyed struct {
	Resources int   `json:"resources"` // in the state: always 0
	Serial    int64 `json:"serial"`    // of the state; 0 when there is no state
	Changed   bool  `json:"changed"`   // false: there was nothing to destroy
}

// ClusterPreflightInput is what infrastructure/cluster-preflight expects of a cluster that
// is there already.
type ClusterPreflightInput struct {
	Kubernetes   string `json:"kubernetes"`             // version that Slipway is built for, without a leading v
	StorageClass string `json:"storageClass,omitempty"` // empty: the default one
	// Admin says that every right is required: the platform hands them on.
	Admin bool `json:"admin,omitempty"`
	Label bool `json:"label,omitempty"` // a node is to be labelled
	Proxy bool `json:"proxy,omitempty"` // Services are asked through the API server
	Exec  bool `json:"exec,omitempty"`  // commands are run in pods
	// TakeOwnership takes a deployment of this name over that is in the cluster and not in the state.
	TakeOwnership bool `json:"takeOwnership,omitempty"`
}

// CacheKey leaves out what only one run is told.
func (in ClusterPreflightInput) CacheKey() any { in.TakeOwnership = false; return in }

// ClusterPreflight is what infrastructure/cluster-preflight saw.
type ClusterPreflight struct {
	APIEndpoint  string `json:"apiEndpoint"` // https://host:port as the step reaches it
	Version      string `json:"version"`     // of the API server, "v1.37.2"
	StorageClass string `json:"storageClass"`
}

// ClusterInput is what infrastructure/cluster waits for.
type ClusterInput struct {
	APIEndpoint string `json:"apiEndpoint"` // https://host:port as the step reaches it
	// Existing says that the cluster is not Slipway's: some of its nodes may be away.
	Existing bool `json:"existing,omitempty"`
}

// OwnershipInput is what infrastructure/ownership looks for.
type OwnershipInput struct {
	Components    []ComponentInput `json:"components"`              // those that are installed, but for apps
	Apps          *TreeValues      `json:"apps,omitempty"`          // of the tree that is pushed; without images
	TakeOwnership bool             `json:"takeOwnership,omitempty"` // take over what is somebody else's
	PullSecret    bool             `json:"pullSecret,omitempty"`    // each namespace gets kube.PullSecret
	// Upgrade says that the run brings the platform to another release than it has.
	Upgrade bool `json:"upgrade,omitempty"`
	Change
}

// CacheKey leaves out what only one run is told.
func (in OwnershipInput) CacheKey() any {
	in.TakeOwnership, in.Upgrade, in.Change = false, false, Change{}
	return in
}

// Ownership is what infrastructure/ownership saw.
type Ownership struct {
	Objects   int      `json:"objects"`             // that were looked for
	TakenOver []string `json:"takenOver,omitempty"` // taken over: "Kind namespace/name"
}

// AddonsInput is what infrastructure/local-addons applies.
type AddonsInput struct {
	providers.Addons
	Images map[string]string `json:"images"` // reference by digest, by name
}

// StorageInput is what infrastructure/storage verifies.
type StorageInput struct {
	StorageClass string `json:"storageClass"`
	Image        string `json:"image"` // of the pods that use a volume
	// Existing says that the cluster is not Slipway's: the class need not be the default.
	Existing bool `json:"existing,omitempty"`
}

// LoadBalancerInput is what infrastructure/loadbalancer verifies with.
type LoadBalancerInput struct {
	Image string `json:"image"` // of the web server behind the Service
	// Unused says that nothing of the platform is reached through a load balancer: the
	// cluster need not have one.
	Unused bool `json:"unused,omitempty"`
}

// Addons is what infrastructure/local-addons applied.
type Addons struct {
	Applied   int `json:"applied"`   // objects in the manifests
	Changed   int `json:"changed"`   // of them created or changed
	Workloads int `json:"workloads"` // rollouts that completed
}

// StorageCheck is what infrastructure/storage verified by use.
type StorageCheck struct {
	Class       string `json:"class"`       // the default StorageClass
	Provisioner string `json:"provisioner"` // its provisioner
}

// LoadBalancerCheck is what infrastructure/loadbalancer verified by use.
type LoadBalancerCheck struct {
	Address string `json:"address"` // host:port that responded; empty if none is used
}

// RemoveInput is what infrastructure/platform-remove and infrastructure/crds-remove remove.
type RemoveInput struct {
	// CRDs has CustomResourceDefinitions that the release keeps, or that others use,
	// go as well, with all objects of theirs.
	CRDs bool `json:"crds,omitempty"`
}

// Removed is what one of these took away.
type Removed struct {
	Components   []string `json:"components"`   // in the order in which they went
	Applications []string `json:"applications"` // namespace/name, in the order in which they went
	Namespaces   []string `json:"namespaces"`   // that Slipway had made
	Objects      []string `json:"objects"`      // in other namespaces, "Kind namespace/name"
	Volumes      []string `json:"volumes"`      // PersistentVolumes
	Cluster      []string `json:"cluster"`      // other cluster-scoped objects, kind/name
	Nodes        []string `json:"nodes"`        // that lost labels of Slipway's
	// Kept stays because the release says so, or because others use it: "Kind namespace/name".
	Kept []string `json:"kept"`
	// Stripped are the finalizers that nobody removed: "kind namespace/name: finalizer".
	Stripped []string `json:"stripped"`
	// Unreachable says why nothing could be looked at; empty otherwise.
	Unreachable string `json:"unreachable,omitempty"`
}

// InventoryInput is what infrastructure/inventory looks for.
type InventoryInput struct {
	MustBeEmpty bool `json:"mustBeEmpty"` // fail when anything is left
	// SkipUnreachable ends the step with success when the API does not respond.
	SkipUnreachable bool `json:"skipUnreachable,omitempty"`
	// Gone says that the cluster was removed as a whole: there is nothing to look at.
	Gone bool `json:"gone,omitempty"`
	// CRDs counts CustomResourceDefinitions that the release keeps, too: see RemoveInput.
	CRDs bool `json:"crds,omitempty"`
}

// Inventory is what the deployment has in the cluster, and nothing of others; what a
// destroy keeps on purpose is not in it.
type Inventory struct {
	Objects     []string `json:"objects,omitempty"` // "Kind namespace/name"; "label key of Node name"; "Terraform resource address"
	Unreachable string   `json:"unreachable,omitempty"`
}
