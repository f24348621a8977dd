package argo_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// TestWhatOthersAddToAnApplication: Slipway itself leaves one alone while it changes data.
func TestWhatOthersAddToAnApplication(t *testing.T) {
	app := func(adopted bool, annotations, spec map[string]any) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": map[string]any{"name": "db", "annotations": annotations}, "spec": spec}}
		if adopted {
			o.SetLabels(map[string]string{kube.AdoptedLabel: kube.AdoptedOther})
		}
		return o
	}
	spec := func(more map[string]any) map[string]any {
		out := map[string]any{"source": map[string]any{"helm": map[string]any{"valuesObject": map[string]any{"a": "b", "none": nil}}}, "list": []any{"x"}}
		for key, value := range more {
			out[key] = value
		}
		return out
	}
	stopped := map[string]any{argo.SkipReconcile: "true", argo.StoppedAnnotation: "true", argo.RefreshAnnotation: "normal", "example.org/x": "y"}
	require.Nil(t, argo.Added(app(true, stopped, spec(nil)), app(true, nil, spec(nil))))
	require.Equal(t, map[string]any{"metadata": map[string]any{"annotations": map[string]any{argo.SkipReconcile: nil}}},
		argo.Added(app(false, stopped, spec(nil)), app(false, nil, spec(nil))), "the root has no data")
	require.Equal(t, map[string]any{"spec": map[string]any{"sources": nil, "source": map[string]any{"helm": map[string]any{"valuesObject": map[string]any{"c": nil}}}}},
		argo.Added(app(true, nil, map[string]any{
			"sources": []any{}, "list": []any{"y", "z"}, "source": map[string]any{"helm": map[string]any{"valuesObject": map[string]any{"a": "other", "c": "d", "none": map[string]any{"e": "f"}}}},
		}), app(true, nil, spec(nil))))

	project := app(false, nil, map[string]any{"roles": []any{}})
	project.SetKind("AppProject")
	require.Nil(t, argo.Added(project, project))
}
