package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
)

// NodesNote is the note of the labels that Slipway gave nodes: by the component whose pods select
// them, a NodeLabel as JSON.
const NodesNote = "slipway-nodes"

// NodeLabel is a label that Slipway gave a node.
type NodeLabel struct {
	Node  string    `json:"node"`
	UID   types.UID `json:"uid"` // another node may have the name by now
	Key   string    `json:"key"`
	Value string    `json:"value"`
}

// On reports whether a node got the label, and still has it.
func (l NodeLabel) On(n metav1.Object) bool {
	is, has := n.GetLabels()[l.Key]
	return n.GetName() == l.Node && n.GetUID() == l.UID && has && is == l.Value
}

// ErrLabelTaken means that somebody has given a node another value of a label.
var ErrLabelTaken = errors.New("it has another value of the label by now")

// NodeReady tells whether a node is Ready.
func NodeReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// LabelNode gives a node a label for a component, and notes before that it was Slipway.
func (c *Client) LabelNode(ctx context.Context, deployment, component, name, key, value string) error {
	return c.changeNode(ctx, "label node "+name, name, func(ctx context.Context, n *corev1.Node) (map[string]any, error) {
		if is, has := n.Labels[key]; has && is != value {
			return nil, ErrLabelTaken
		}
		text, err := json.Marshal(NodeLabel{n.Name, n.UID, key, value})
		if err != nil {
			return nil, err
		}
		// Components are installed at the same time: each owns its key of the note.
		note := applycorev1.Secret(NodesNote, SystemNamespace).WithType(NoteType).WithLabels(Labels(deployment)).WithData(map[string][]byte{component: text})
		_, err = c.Kubernetes.CoreV1().Secrets(SystemNamespace).Apply(ctx, note, metav1.ApplyOptions{FieldManager: FieldManager + "-" + component, Force: true})
		return map[string]any{key: value}, err
	})
}

// NodeLabels are the labels that Slipway gave nodes for a deployment.
func (c *Client) NodeLabels(ctx context.Context, deployment string) ([]NodeLabel, error) {
	o, err := c.Secret(ctx, SystemNamespace, NodesNote)
	if err != nil || o == nil || DeploymentOf(o.Labels) != deployment {
		return nil, err
	}
	var out []NodeLabel
	for _, component := range slices.Sorted(maps.Keys(o.Data)) {
		var l NodeLabel
		if err := json.Unmarshal(o.Data[component], &l); err != nil {
			return nil, fmt.Errorf("read %s of secret %s/%s: %w", component, SystemNamespace, NodesNote, err)
		}
		out = append(out, l)
	}
	return out, nil
}

// UnlabelNode takes off a label that Slipway gave a node, unless somebody has given it another
// value since.
func (c *Client) UnlabelNode(ctx context.Context, l NodeLabel) error {
	return IgnoreNotFound(c.changeNode(ctx, "take the label off node "+l.Node, l.Node, func(_ context.Context, n *corev1.Node) (map[string]any, error) {
		if !l.On(n) {
			return nil, nil
		}
		return map[string]any{l.Key: nil}, nil
	}))
}

// changeNode changes labels of a node to what change makes of them; nil removes one. It looks
// again when somebody has written to the node in between.
func (c *Client) changeNode(ctx context.Context, what, name string, change func(context.Context, *corev1.Node) (labels map[string]any, err error)) error {
	nodes := c.Kubernetes.CoreV1().Nodes()
	return c.Retry(ctx, what, func(ctx context.Context) error {
		for {
			n, err := nodes.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			labels, err := change(ctx, n)
			if err != nil || len(labels) == 0 {
				return err
			}
			patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": n.ResourceVersion, "labels": labels}})
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
