package contract

import "encoding/json"

// Nothing is the input of a step that needs none.
type Nothing struct{}

// SecretsInput is what preorchestrator/secrets works on.
type SecretsInput struct {
	Domain     string `json:"domain"`
	AdminEmail string `json:"adminEmail"`
	// UserSecrets are the secrets of the configuration, by the names that
	// platform.GivenNames lists; each is a file in UserSecretsDir.
	UserSecrets []string `json:"given,omitempty"`
}

// NamespacesInput is what preorchestrator/namespaces works on.
type NamespacesInput struct {
	Account string `json:"account,omitempty"` // see Environment
}

// Namespaces is what preorchestrator/namespaces made sure of.
type Namespaces struct {
	Names   []string `json:"names"`   // all of the platform
	Created []string `json:"created"` // of them made now
}

// Secrets is what preorchestrator/secrets made sure of; names only.
type Secrets struct {
	Names   []string `json:"names"`   // namespace/name
	Created []string `json:"created"` // of them made now
	Added   []string `json:"added"`   // namespace/name/key that one that was there has got, or got another value of
}

// TLSInput is what preorchestrator/tls works on. The platform release is in
// PlatformDir, the private key of a given certificate in TLSKeyFile.
type TLSInput struct {
	Domain      string   `json:"domain"`                // parent domain: the platform's hosts are <app>.<domain>
	Disabled    []string `json:"disabled"`              // components that are switched off
	Mode        string   `json:"mode"`                  // "self-signed" or "given"
	Certificate string   `json:"certificate,omitempty"` // the given one and its chain, PEM
	CA          string   `json:"ca,omitempty"`          // what clients must trust for it, or besides the deployment's CA, PEM
}

// TLS is where the platform's certificate comes from.
type TLS struct {
	Issuer   string `json:"issuer"`   // "given" or "self-signed"
	NotAfter string `json:"notAfter"` // RFC 3339, of the one that ends first
	// GitHost is the host under which Argo CD reaches the platform's git server: the
	// first of its hosts that the certificate is for. Empty without such a server.
	GitHost string `json:"gitHost,omitempty"`
}

// ConfigMapsInput is what preorchestrator/configmaps works on.
type ConfigMapsInput struct {
	Fill map[string]any `json:"fill,omitempty"` // what the texts name: see platform.Fill
}

// ConfigMaps is what preorchestrator/configmaps made sure of.
type ConfigMaps struct {
	Names   []string `json:"names"`   // namespace/name
	Changed int      `json:"changed"` // of them made or changed now
}

// Requirements are the objects of somebody else's that preorchestrator/requires saw.
type Requirements struct {
	Names []string `json:"names"` // "secret namespace/name"
}

// ComponentInput is what the step of a component works on. The platform release is in
// PlatformDir, the manifests in BundleDir/manifests.
type ComponentInput struct {
	Component string            `json:"component"`        // its name
	Fill      map[string]any    `json:"fill,omitempty"`   // what the component's texts name: see platform.Fill
	Images    map[string]string `json:"images,omitempty"` // reference by digest, by name: those that the component names; and by what these stand for
	// Rewrite maps upstream references to the references by digest that objects get in
	// their place, where the cluster's nodes do not map them.
	Rewrite map[string]string `json:"rewrite,omitempty"`
	// PullSecret has pods with such images pull them with kube.PullSecret.
	PullSecret bool              `json:"pullSecret,omitempty"`
	Hosts      map[string]string `json:"hosts,omitempty"` // that its pods resolve, each to a Service "namespace/name"
	// Values replace those of the chart and of the release.
	Values json.RawMessage `json:"values,omitempty"`
}

// Component is what the step of a component saw.
type Component struct {
	Objects   int      `json:"objects"`             // that it is made of
	Changed   int      `json:"changed"`             // of them made, changed or deleted now
	Workloads []string `json:"workloads,omitempty"` // "Deployment/web": rolled out
	Gates     []string `json:"gates,omitempty"`     // that were open
}

// HandoverInput is what hands a component over to Argo CD.
type HandoverInput struct {
	ComponentInput
	Tree     Tree `json:"tree"`
	Deadline int  `json:"deadline"` // seconds it may take to become Synced and Healthy
}

// LiveInput is what diagnosis/status looks at. It comes from the caller's release, not from the state:
// whoever may write the state would choose what is read in the cluster.
type LiveInput struct {
	Components []LiveComponent `json:"components"` // of the last run
	// Engine is the namespace of Argo CD, where gates on apps look; empty if there is none.
	Engine string `json:"engine,omitempty"`
}

// LiveComponent is a component with gates.
type LiveComponent struct {
	Step  string          `json:"step"`  // "stage/step"
	Ready json.RawMessage `json:"ready"` // its gates, a list of platform.Await
}

// Live is how the platform is now.
type Live struct {
	Apps
	Gates []Gate `json:"gates"` // of the components that the steps have installed
}

// Gate is a gate of a component as it is now.
type Gate struct {
	Step string `json:"step"` // "stage/step" of the component
	Gate string `json:"gate"` // "http shop/web:80/healthz"
	Open bool   `json:"open"` // it holds
	Seen string `json:"seen"`
}

// PruneInput is what orchestrator/prune leaves alone.
type PruneInput struct {
	Components []string `json:"components"`     // that are installed
	Apps       bool     `json:"apps,omitempty"` // apps are installed, too
}

// Pruned is what orchestrator/prune removed.
type Pruned struct {
	Components []string `json:"components,omitempty"`
	Objects    []string `json:"objects,omitempty"`  // "Kind namespace/name"
	Kept       []string `json:"kept,omitempty"`     // what stays although the release has it no more, as in Objects, and ": why"
	Stripped   []string `json:"stripped,omitempty"` // see Removed
}

// GitInput is what preorchestrator/git works on. The platform release is in PlatformDir.
type GitInput struct {
	Domain  string `json:"domain"`
	GitHost string `json:"gitHost"` // see TLS
}

// The secrets of a repository of the user's among UserSecrets.
const (
	GitPassword = "git.password"
	GitKey      = "git.sshKey"
)

// RepositoryInput is what preorchestrator/repository registers with Argo CD. Its password
// or key is a file in UserSecretsDir.
type RepositoryInput struct {
	Namespace string `json:"namespace"` // of Argo CD
	URL       string `json:"url"`
	Host      string `json:"host"`
	Username  string `json:"username,omitempty"`
	CA        string `json:"ca,omitempty"` // PEM
	Password  bool   `json:"password,omitempty"`
	Key       bool   `json:"key,omitempty"` // it is read by SSH

}

// Repository is a repository of the user's that Argo CD may read.
type Repository struct {
	URL string `json:"url"`
}

// PublishInput is what orchestrator/publish works on.
type PublishInput struct {
	Git    Git        `json:"git"`
	Values TreeValues `json:"values"`
}

// TreeValues are what the chart of the root gets, besides what the release says.
type TreeValues struct {
	Domain       string            `json:"domain"`
	Scale        string            `json:"scale"`    // name of the scale profile
	Disabled     []string          `json:"disabled"` // components that are switched off
	Images       map[string]string `json:"images"`   // reference by digest, by name
	StorageClass string            `json:"storageClass"`
	Backing      Backing           `json:"backing"`
	// Values replace those of the apps' charts, by component.
	Values map[string]json.RawMessage `json:"values,omitempty"`
	// Settings are the release's own.
	Settings      json.RawMessage `json:"settings,omitempty"`
	SMTP          *SMTP           `json:"smtp,omitempty"`
	Observability *Observability  `json:"observability,omitempty"`
}

// SMTP is the mail server of the configuration, without the password.
type SMTP struct {
	Host     string `json:"host"`
	Port     int    `json:"port"`
	From     string `json:"from"`
	TLS      string `json:"tls"`
	Username string `json:"username,omitempty"`
}

// Observability is where metrics go, without the password.
type Observability struct {
	Endpoint string `json:"endpoint"`
	Username string `json:"username,omitempty"`
	CA       string `json:"ca,omitempty"`
}

// CacheKey leaves out the address, which a restarted cluster changes.
func (in PublishInput) CacheKey() any { in.Git.Address = ""; return in }

// AccessInput is what postorchestrator/access works on.
type AccessInput struct {
	Domain       string       `json:"domain"`
	AdminEmail   string       `json:"adminEmail"`
	Scale        string       `json:"scale"`    // name of the scale profile
	Disabled     []string     `json:"disabled"` // components that are switched off, or that the run has left out
	LoadBalancer LoadBalancer `json:"loadBalancer"`
	Host         string       `json:"host,omitempty"` // address of this machine, on which a cluster that Slipway runs is published
	// Settings are those of the release.
	Settings json.RawMessage `json:"settings,omitempty"`
	// Config is the configuration, canonical, which is kept with the release.
	Config json.RawMessage `json:"config,omitempty"`
}

// CacheKey leaves out the configuration, which the step compares with the kept one.
func (in AccessInput) CacheKey() any { in.Config = nil; return in }
