package component

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// owned reports whether Argo CD has taken the component over, with an Application of its name.
func (i *installer) owned(ctx context.Context) (bool, error) {
	name, namespace := i.component.Name, i.release.Engine().Namespace
	what := "get the Application " + namespace + "/" + name
	o, err := kube.Retry(ctx, i.client, what, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return i.client.Dynamic.Resource(argo.Applications()).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	})
	if apierrors.IsNotFound(err) { // or Argo CD is not there yet
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if kube.DeploymentOf(o.GetLabels()) != i.env.Deployment || o.GetLabels()[kube.AdoptedLabel] == "" {
		return false, &fault.Fault{
			Code: kube.CodeForeign, Class: fault.Step, Op: "install component " + name,
			Fix: "remove the Application " + namespace + "/" + name + ", or give the component another name, then run the same command again",
			Err: fmt.Errorf("the Application %s/%s is not the deployment's own", namespace, name),
		}
	}
	return true, nil
}
