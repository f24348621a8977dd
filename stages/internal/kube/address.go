package kube

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/stages/internal/dryrun"
)

// freed releases the address of a Service that was never created, after the API server
// refused service because its address is taken, and reports whether it did. An API server
// that is killed between allocating an address and writing the Service leaves the
// allocation behind, and cleans it up only after some minutes
// (k8s.io/kubernetes v1.37.2, pkg/registry/core/service/ipallocator/controller).
func (c *Client) freed(ctx context.Context, service *unstructured.Unstructured, refusal error) (bool, error) {
	ip, _, _ := unstructured.NestedString(service.Object, "spec", "clusterIP")
	if service.GetKind() != "Service" || ip == "" || dryrun.On(ctx) ||
		!apierrors.IsInvalid(refusal) || !strings.Contains(refusal.Error(), "already allocated") {
		return false, nil
	}
	addresses := c.Kubernetes.NetworkingV1().IPAddresses()
	a, err := addresses.Get(ctx, ip, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return true, nil // somebody else was faster
	case err != nil:
		return false, fmt.Errorf("find the owner of address %s: %w", ip, err)
	}
	of := a.Spec.ParentRef
	if of == nil || of.Resource != "services" || of.Namespace != service.GetNamespace() || of.Name != service.GetName() {
		return false, nil // it is another Service's
	}
	_, err = c.Kubernetes.CoreV1().Services(of.Namespace).Get(ctx, of.Name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return false, err
	}
	err = addresses.Delete(ctx, ip, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(a.UID))})
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("free the address %s of a Service that was never made: %w", ip, err)
	}
	c.progress("freed the address %s of Service %s/%s, which was never made", ip, of.Namespace, of.Name)
	return true, nil
}
