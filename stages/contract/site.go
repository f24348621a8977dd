package contract

import (
	"io/fs"

	"github.com/slipway-sh/slipway/providers"
)

// NodeHealth is where the local cluster's node says how it is, to who has a certificate of the
// cluster: 200 when it is ready. NodePods answers so once the pods that ran before its start
// run again, too.
const (
	NodeHealth = "https://cluster:6444/readyz"
	NodePods   = NodeHealth + "/pods"
)

// Site is what a provider contributes to a deployment, as data: the container of a plan
// wires the same graph from it, without the provider. The zero value is that of no provider.
type Site struct {
	Root      fs.FS          `json:"-"`         // Terraform root
	Terraform TerraformInput `json:"terraform"` // what the steps with the root work on
	providers.Cluster
	// Account tells the account apart with which that cluster's nodes pull, and nothing of it;
	// empty: they have none from Slipway.
	Account string `json:"account,omitempty"`
}
