package kube

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// NodeLabels is the annotation of a node that lists the labels, by key, that Slipway gave
// it for a deployment.
func NodeLabels(deployment string) string { return "slipway.sh/labels." + deployment }

// NodeReady tells whether a node is Ready.
func NodeReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
