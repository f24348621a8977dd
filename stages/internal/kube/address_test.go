package kube

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-sh/slipway/stages/internal/plan"
)

// An API server that was killed while it made a Service keeps the Service's address.
func TestTheAddressOfAServiceThatWasNeverMadeIsFreed(t *testing.T) {
	taken := apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "kube-dns", field.ErrorList{
		field.Invalid(field.NewPath("spec", "clusterIPs"), []string{"10.96.0.10"}, "failed to allocate IP 10.96.0.10: provided IP is already allocated"),
	})
	address := func(resource, namespace, name string) runtime.Object {
		return &networkingv1.IPAddress{ObjectMeta: metav1.ObjectMeta{Name: "10.96.0.10", UID: "1"}, Spec: networkingv1.IPAddressSpec{
			ParentRef: &networkingv1.ParentReference{Resource: resource, Namespace: namespace, Name: name},
		}}
	}
	dns := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-dns"}}
	for what, c := range map[string]struct {
		there   []runtime.Object
		refusal error
		freed   bool
	}{
		"left behind":          {[]runtime.Object{address("services", "kube-system", "kube-dns")}, taken, true},
		"gone meanwhile":       {nil, taken, true},
		"the Service's own":    {[]runtime.Object{address("services", "kube-system", "kube-dns"), dns}, taken, false},
		"another Service's":    {[]runtime.Object{address("services", "default", "web")}, taken, false},
		"something else's":     {[]runtime.Object{address("gateways", "kube-system", "kube-dns")}, taken, false},
		"another error":        {[]runtime.Object{address("services", "kube-system", "kube-dns")}, errors.New("provided IP is already allocated"), false},
		"no error":             {[]runtime.Object{address("services", "kube-system", "kube-dns")}, nil, false},
		"wrong in another way": {[]runtime.Object{address("services", "kube-system", "kube-dns")}, apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "kube-dns", nil), false},
	} {
		t.Run(what, func(t *testing.T) {
			client := fake.NewClientset(c.there...)
			k := &Client{Kubernetes: client, Plan: plan.Verify("a/b")}
			service := &unstructured.Unstructured{Object: map[string]any{
				"kind": "Service", "metadata": map[string]any{"namespace": "kube-system", "name": "kube-dns"}, "spec": map[string]any{"clusterIP": "10.96.0.10"},
			}}
			free, err := k.freed(t.Context(), service, c.refusal)
			require.NoError(t, err)
			require.False(t, free, "a plan frees nothing")
			k.Plan = nil
			free, err = k.freed(t.Context(), service, c.refusal)
			require.NoError(t, err)
			require.Equal(t, c.freed, free)
			left, err := client.NetworkingV1().IPAddresses().List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			require.Equal(t, c.freed, len(left.Items) == 0)
		})
	}
}
