package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-sh/slipway/fault"
)

// NodeLabels is the annotation of a node that lists the labels that Slipway gave it for a
// deployment, "key=value key=value". It has a seal, as notes have: whoever may annotate nodes
// cannot add to what a destroy takes off.
func NodeLabels(deployment string) string { return "slipway.sh/labels." + deployment }

// sealOfLabels is the annotation with the seal of NodeLabels.
func sealOfLabels(deployment string) string { return sealAnnotation + "." + deployment }

// ErrLabelTaken means that somebody has given a node another value of a label.
var ErrLabelTaken = errors.New("it has another value of the label by now")

// NodeReady tells whether a node is Ready.
func NodeReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// LabelNode gives a node a label, and notes that it was Slipway. Steps that run at the same
// time write the same note.
func (c *Client) LabelNode(ctx context.Context, deployment, name, key, value string) error {
	secret, err := c.makeKeyOfSeals(ctx, deployment)
	if err != nil {
		return err
	}
	return c.changeNode(ctx, "label node "+name, name, func(ctx context.Context, n *corev1.Node) (labels, annotations map[string]any, err error) {
		if is, has := n.Labels[key]; has && is != value {
			return nil, nil, ErrLabelTaken
		}
		given, err := c.LabelsGiven(ctx, deployment, n)
		if err != nil {
			return nil, nil, err
		}
		if given == nil {
			given = map[string]string{}
		}
		given[key] = value
		var list []string
		for _, key := range slices.Sorted(maps.Keys(given)) {
			list = append(list, key+"="+given[key])
		}
		note := strings.Join(list, " ")
		sealed, err := seal(secret, nameOfLabels(deployment, n), map[string]string{NodeLabels(deployment): note})
		return map[string]any{key: value}, map[string]any{NodeLabels(deployment): note, sealOfLabels(deployment): sealed}, err
	})
}

// UnlabelNode takes off the labels that Slipway gave a node for a deployment, but for those that
// somebody has given another value since.
func (c *Client) UnlabelNode(ctx context.Context, deployment, name string) error {
	return c.changeNode(ctx, "take the labels off node "+name, name, func(ctx context.Context, n *corev1.Node) (labels, annotations map[string]any, err error) {
		given, err := c.LabelsGiven(ctx, deployment, n)
		if err != nil {
			return nil, nil, err
		}
		labels = map[string]any{}
		for key, value := range given {
			if is, has := n.Labels[key]; has && is == value {
				labels[key] = nil
			}
		}
		return labels, map[string]any{NodeLabels(deployment): nil, sealOfLabels(deployment): nil}, nil
	})
}

// LabelsGiven are the labels that Slipway gave a node for a deployment; nil if there are none. A
// list that somebody else wrote is a fault.
func (c *Client) LabelsGiven(ctx context.Context, deployment string, n metav1.Object) (map[string]string, error) {
	note := n.GetAnnotations()[NodeLabels(deployment)]
	if note == "" {
		return nil, nil
	}
	is, err := c.isSealed(ctx, nameOfLabels(deployment, n), map[string]string{NodeLabels(deployment): note}, n.GetAnnotations()[sealOfLabels(deployment)])
	if err != nil {
		return nil, err
	}
	if !is {
		at := NodeLabels(deployment)
		return nil, &fault.Fault{
			Code: CodeConflict, Class: fault.Step, Op: "read the annotation " + at + " of node " + n.GetName(),
			Err: fmt.Errorf("its value %q is not what Slipway wrote: somebody has edited it, or has replaced the Secret %s", Short(note, maxText), SealSecret),
			Fix: "see who edited it: kubectl get node " + fault.Quote(n.GetName()) + " -o yaml --show-managed-fields; take off the labels that Slipway gave the node: kubectl label node " + fault.Quote(n.GetName()) +
				" KEY-; then delete the annotation: kubectl annotate node " + fault.Quote(n.GetName()) + " " + fault.Quote(at) + "-; then run the same command again",
		}
	}
	out := map[string]string{}
	for _, label := range strings.Fields(note) {
		key, value, _ := strings.Cut(label, "=")
		out[key] = value
	}
	return out, nil
}

// nameOfLabels is what the seal of a node's list is of: the list of another node, or of one that
// had its name, has another.
func nameOfLabels(deployment string, n metav1.Object) string {
	return NodeLabels(deployment) + " of node " + n.GetName() + " " + string(n.GetUID())
}

// changeNode changes labels and annotations of a node to what change makes of it; nil removes
// one. It looks again when somebody has written to the node in between.
func (c *Client) changeNode(ctx context.Context, what, name string, change func(context.Context, *corev1.Node) (labels, annotations map[string]any, err error)) error {
	nodes := c.Kubernetes.CoreV1().Nodes()
	return c.Retry(ctx, what, func(ctx context.Context) error {
		for {
			n, err := nodes.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			labels, annotations, err := change(ctx, n)
			if err != nil {
				return err
			}
			patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
				"resourceVersion": n.ResourceVersion, "labels": labels, "annotations": annotations,
			}})
			if err != nil {
				return fmt.Errorf("encode a patch: %w", err)
			}
			_, err = nodes.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager})
			if !apierrors.IsConflict(err) || ctx.Err() != nil {
				return err
			}
		}
	})
}
