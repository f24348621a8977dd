package v1beta1

import (
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
)

// SetupWebhookWithManager has the manager serve the validation of this kind, like that of
// ExternalSecret.
func (c *SecretStore) SetupWebhookWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy[runtime.Object](mgr, c).WithValidator(&GenericStoreValidator{}).Complete()
}

// SetupWebhookWithManager has the manager serve the validation of this kind, like that of
// ExternalSecret.
func (c *ClusterSecretStore) SetupWebhookWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy[runtime.Object](mgr, c).WithValidator(&GenericStoreValidator{}).Complete()
}
