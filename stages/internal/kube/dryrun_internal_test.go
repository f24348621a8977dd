package kube

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestSameContent(t *testing.T) {
	object := func(version, replicas, available int64) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "web", "resourceVersion": string(rune('0' + version)), "generation": version},
			"spec":     map[string]any{"replicas": replicas},
			"status":   map[string]any{"availableReplicas": available},
		}}
	}
	require.True(t, sameContent(object(1, 2, 0), object(2, 2, 1)), "a pod became ready meanwhile")
	require.False(t, sameContent(object(1, 2, 0), object(1, 3, 0)))
}
