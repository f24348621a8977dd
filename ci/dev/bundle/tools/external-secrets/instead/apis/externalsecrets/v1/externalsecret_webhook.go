package v1

import (
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
)

// SetupWebhookWithManager has the manager serve the validation of this kind. It is here because
// the controller-runtime for the node's Kubernetes libraries wants the type of the object.
func (es *ExternalSecret) SetupWebhookWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy[runtime.Object](mgr, es).WithValidator(&ExternalSecretValidator{}).Complete()
}
