package kube

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

func TestACopyIsNotWhatWasCopied(t *testing.T) {
	for text, wrote := range map[string]bool{
		"{}": false,
		"{name: web, namespace: shop, managedFields: [{manager: kubectl-client-side-apply}]}":                                false,
		"{name: web, namespace: shop, managedFields: [{manager: kubectl}, {manager: slipway}]}":                              true,
		"{name: web, namespace: shop, managedFields: [{manager: slipway, subresource: status}]}":                             false,
		"{name: web, namespace: shop, annotations: {argocd.argoproj.io/tracking-id: 'app:apps/Deployment:shop/web'}}":        true,
		"{name: web, namespace: workshop, annotations: {argocd.argoproj.io/tracking-id: 'app:apps/Deployment:shop/web'}}":    false,
		"{name: web, namespace: shop, annotations: {argocd.argoproj.io/tracking-id: 'app:apps/Deployment:workshop/web'}}":    false,
		"{name: web, annotations: {argocd.argoproj.io/tracking-id: 'app:rbac.authorization.k8s.io/ClusterRole:shop/web'}}":   true,
		"{name: web-2, annotations: {argocd.argoproj.io/tracking-id: 'app:rbac.authorization.k8s.io/ClusterRole:shop/web'}}": false,
	} {
		var o metav1.ObjectMeta
		require.NoError(t, yaml.Unmarshal([]byte(text), &o))
		require.Equal(t, wrote, WroteTo(&o), text)
	}
}
