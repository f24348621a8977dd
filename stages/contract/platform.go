package contract

import "encoding/json"

// Nothing is the input of a step that needs none.
type Nothing struct{}

// SecretsInput is what preorchestrator/secrets works on. The platform release is in
// PlatformDir.
type SecretsInput struct {
	Domain     string `json:"domain"`
	AdminEmail string `json:"adminEmail"`
	// UserSecrets are the secrets of the configuration, by the names that
	// platform.GivenNames lists; each is a file in UserSecretsDir.
	UserSecrets []string `json:"given,omitempty"`
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
	Added   []string `json:"added"`   // namespace/name/key added to one that was there
}

// TLSInput is what preorchestrator/tls works on. The platform release is in
// PlatformDir, the private key of a given certificate in TLSKeyFile.
type TLSInput struct {
	Domain      string   `json:"domain"`                // parent domain: the platform's hosts are <app>.<domain>
	Disabled    []string `json:"disabled"`              // components that are switched off
	Mode        string   `json:"mode"`                  // "self-signed" or "given"
	Certificate string   `json:"certificate,omitempty"` // the given one and its chain, PEM
	CA          string   `json:"ca,omitempty"`          // what clients must trust for it, PEM
}

// GiteaInput is what preorchestrator/gitea works on. The platform release is in
// PlatformDir.
type GiteaInput struct {
	Domain       string            `json:"domain"`
	Scale        string            `json:"scale"` // name of the scale profile
	StorageClass string            `json:"storageClass"`
	Images       map[string]string `json:"images"`      // reference by digest, by name
	GitHost      string            `json:"gitHost"`     // see TLS
	Certificate  string            `json:"certificate"` // fingerprint of the serving certificate, hex
	// Values replace those of the chart.
	Values json.RawMessage `json:"values,omitempty"`
}

// ArgoCDInput is what preorchestrator/argocd works on. The platform release is in
// PlatformDir, the manifests in BundleDir/manifests.
type ArgoCDInput struct {
	Images  map[string]string `json:"images"`  // reference by digest, by name
	GitHost string            `json:"gitHost"` // see TLS
	Proxy   Proxy             `json:"proxy,omitzero"`
}

// ArgoCD is what preorchestrator/argocd applied.
type ArgoCD struct {
	Objects   int      `json:"objects"`   // in the manifests
	Changed   int      `json:"changed"`   // of them created or changed
	Workloads []string `json:"workloads"` // "Deployment/argocd-repo-server": rolled out
}

// GiteaPushInput is what preorchestrator/gitea-push works on.
type GiteaPushInput struct {
	Domain string    `json:"domain"` // of the author's address
	Gitea  GitServer `json:"gitea"`
}

// Lasting leaves out the address, which a restarted cluster changes.
func (in GiteaPushInput) Lasting() any { in.Gitea.Address = ""; return in }

// GiteaPush is the commit that a user pushed over HTTPS.
type GiteaPush struct {
	Repository string `json:"repository"` // "slipway/probe"
	Revision   string `json:"revision"`   // commit SHA of its branch main
}

// ReconcileInput is what preorchestrator/argocd-reconcile works on.
type ReconcileInput struct {
	Repository string `json:"repository"` // URL of what was pushed, as Argo CD reaches it
	Revision   string `json:"revision"`   // commit that was pushed
}

// Reconcile is the Application outside Argo CD's namespace that was seen Synced
// and Healthy and then removed.
type Reconcile struct {
	Application string `json:"application"` // namespace/name
	Revision    string `json:"revision"`
}

// PublishInput is what orchestrator/publish works on. The platform release is in
// PlatformDir.
type PublishInput struct {
	Domain       string            `json:"domain"`
	Scale        string            `json:"scale"`    // name of the scale profile
	Disabled     []string          `json:"disabled"` // components that are switched off
	Images       map[string]string `json:"images"`   // reference by digest, by name
	StorageClass string            `json:"storageClass"`
	Backing      Backing           `json:"backing"`
	Gitea        Gitea             `json:"gitea"`
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

// Lasting leaves out the address, which a restarted cluster changes.
func (in PublishInput) Lasting() any { in.Gitea.Address = ""; return in }

// AccessInput is what postorchestrator/access works on. The platform release is
// in PlatformDir.
type AccessInput struct {
	Domain       string       `json:"domain"`
	Disabled     []string     `json:"disabled"` // components that are switched off
	LoadBalancer LoadBalancer `json:"loadBalancer"`
}
