package argo_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/stages/internal/argo"
)

// TestGeneratorsAreAsTheirControllerWritesThem, as read from a cluster with Argo CD 3.5; its types are the same in 3.6.1.
func TestGeneratorsAreAsTheirControllerWritesThem(t *testing.T) {
	const empty = "template: {metadata: {}, spec: {destination: {}, project: ''}}"
	for given, want := range map[string]string{
		"- list: {elements: [{a: b}]}": "- list: {elements: [{a: b}], " + empty + "}",
		"- clusters: {}":               "- clusters: {selector: {}, " + empty + "}",
		"- clusters: {selector: {matchLabels: {a: b}}}\n  selector: {}":               "- clusters: {selector: {matchLabels: {a: b}}, " + empty + "}\n  selector: {}",
		"- clusterDecisionResource: {configMapRef: a}":                                "- clusterDecisionResource: {configMapRef: a, labelSelector: {}, " + empty + "}",
		"- list: {elements: [], template: {metadata: {name: a}, spec: {project: p}}}": "- list: {elements: [], template: {metadata: {name: a}, spec: {destination: {}, project: p}}}",
		"- matrix: {generators: [{git: {repoURL: a}}, {merge: {generators: [{clusters: {}}]}}]}": "- matrix: {generators: [{git: {repoURL: a, " + empty +
			"}}, {merge: {generators: [{clusters: {}}]}}], " + empty + "}",
	} {
		o := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte("spec:\n  generators:\n  "+strings.ReplaceAll(given, "\n", "\n  ")), &o.Object), given)
		argo.CompleteGenerators(o)
		got, err := yaml.Marshal(o.Object)
		require.NoError(t, err)
		require.YAMLEq(t, "spec:\n  generators:\n  "+strings.ReplaceAll(want, "\n", "\n  "), string(got), given)
	}
	none := &unstructured.Unstructured{Object: map[string]any{"kind": "ApplicationSet"}}
	argo.CompleteGenerators(none)
	require.Equal(t, map[string]any{"kind": "ApplicationSet"}, none.Object)
}
