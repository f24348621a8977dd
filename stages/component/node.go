package component

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// CodeNode: the node that a component's pods select cannot be determined.
const CodeNode fault.Code = "CMP-003"

// node makes sure that exactly one node has the label that the component's pods select:
// where none has it, a ready node gets it.
func (i *installer) node(ctx context.Context) error {
	if i.component.Node == nil {
		return nil
	}
	label := i.component.Node.Label
	nodes, err := kube.Retry(ctx, i.client, "list the nodes", func(ctx context.Context) (*corev1.NodeList, error) {
		return i.client.Kubernetes.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	})
	if err != nil {
		return err
	}
	key, value, _ := strings.Cut(label, "=")
	var with, free []string
	for _, n := range nodes.Items {
		is, has := n.Labels[key] // another value is somebody else's
		switch {
		case has && is == value:
			with = append(with, n.Name)
		case !has && !n.Spec.Unschedulable && kube.NodeReady(&n):
			free = append(free, n.Name)
		}
	}
	slices.Sort(with)
	slices.Sort(free)
	switch {
	case len(with) == 1:
		i.env.Progress("node %s has the label %s", with[0], label)
		return nil
	case len(with) > 1:
		return i.noNode(fmt.Sprintf("%d nodes have the label %s: %s", len(with), label, strings.Join(with, ", ")),
			"take the label from all but one: slipway toolchain -- kubectl label node NAME "+fault.Quote(key)+"-")
	case len(free) == 0:
		return i.noNode("no node is ready that could get the label "+label, "look at the nodes: slipway toolchain -- kubectl get nodes")
	}
	i.env.Progress("node %s gets the label %s", free[0], label)
	err = i.client.LabelNode(ctx, i.env.Deployment, i.component.Name, free[0], key, value)
	if errors.Is(err, kube.ErrLabelTaken) { // by another component's step
		return i.node(ctx)
	}
	return err
}

func (i *installer) noNode(what, fix string) error {
	return &fault.Fault{
		Code: CodeNode, Class: fault.Step, Op: "find the node of component " + i.component.Name,
		Err: errors.New(what), Fix: fix + "; then run the same command again",
	}
}
