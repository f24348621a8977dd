package component

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/dryrun"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/removal"
)

// CodeOwner: an Application with the name of an adopted component is somebody else's.
const CodeOwner fault.Code = "CMP-004"

// adopted installs the chart of a component that Argo CD takes over afterwards. Once it
// has, Slipway leaves the component alone: what is new in it comes with the tree, and the
// step that hands it over waits for that.
func (i *installer) adopted(ctx context.Context) (contract.Component, error) {
	owner, err := i.owner(ctx)
	if err != nil {
		return contract.Component{}, err
	}
	if owner != "" {
		i.env.Progress("it is left to Argo CD, whose Application %s owns it", owner)
		return contract.Component{}, nil
	}
	objs, out, err := i.chart(ctx)
	if p, _ := dryrun.Previewing(ctx); err != nil || p != nil {
		return out, err
	}
	if out.Workloads, err = i.client.WaitRollouts(ctx, objs); err != nil {
		return out, err
	}
	out.Gates, err = i.gates(ctx) // status looks at those of the step that hands it over
	return out, err
}

// owner is the Application with which Argo CD has taken the component over, which may have a
// former name of the component's; empty if it has not.
func (i *installer) owner(ctx context.Context) (string, error) {
	name, namespace := i.component.Name, i.release.Engine().Namespace
	what := "get the Application " + namespace + "/" + name
	o, err := kube.Retry(ctx, i.client, what, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return i.client.Dynamic.Resource(argo.Applications()).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	})
	if apierrors.IsNotFound(err) { // or Argo CD is not there yet
		former, err := removal.Former(ctx, i.client, i.env.Deployment, namespace, i.component)
		if err != nil || former == nil {
			return "", err
		}
		return former.GetName(), nil
	}
	if err != nil {
		return "", err
	}
	if kube.DeploymentOf(o.GetLabels()) != i.env.Deployment || o.GetLabels()[kube.AdoptedLabel] == "" {
		return "", &fault.Fault{
			Code: CodeOwner, Class: fault.Step, Op: "install component " + name,
			Fix: "remove the Application " + namespace + "/" + name + ", or give the component another name, then run the same command again",
			Err: fmt.Errorf("the Application %s/%s is not the deployment's own", namespace, name),
		}
	}
	return name, nil
}
