package component

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"helm.sh/helm/v3/pkg/chart"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/render"
)

func (i *installer) loadChart(ctx context.Context) (*chart.Chart, map[string]any, error) {
	ch, err := render.LoadChart(ctx, i.release.Files(), i.component.Path)
	if err != nil {
		return nil, nil, badChart(i.component.Name, err)
	}
	values, err := render.Values(i.release.Files(), i.component, i.in)
	if err != nil {
		return nil, nil, badChart(i.component.Name, err)
	}
	return ch, values, nil
}

func (i *installer) chart(ctx context.Context) ([]*unstructured.Unstructured, contract.Component, error) {
	ch, values, err := i.loadChart(ctx)
	if err != nil {
		return nil, contract.Component{}, err
	}
	defined, err := i.definitions(ctx, ch)
	if err != nil {
		return nil, contract.Component{}, err
	}
	rel, err := i.open(ctx, ch, values)
	if err != nil {
		return nil, contract.Component{}, err
	}
	if rel.labels[inputsLabel], err = i.inputs(ctx, ch, values); err != nil {
		return nil, contract.Component{}, err
	}
	if i.client.Plan != nil {
		objs, err := rel.plan(ctx)
		if err == nil && i.client.Plan.Verifies() {
			err = i.client.Place(ctx, objs, i.component.Namespace)
		}
		return objs, contract.Component{Objects: len(objs)}, err
	}
	change, err := rel.converge(ctx)
	if err != nil {
		return nil, contract.Component{}, err
	}
	i.env.Progress("chart %s", change)
	objs, err := rel.objects(ctx)
	if err != nil {
		return nil, contract.Component{}, err
	}
	out := contract.Component{Objects: len(objs), Changed: defined}
	if change != unchanged {
		out.Changed += len(objs)
	}
	return objs, out, i.client.Place(ctx, objs, i.component.Namespace)
}

// definitions applies the chart's CustomResourceDefinitions, which Helm itself would only
// make and never change. It returns how many were made or changed.
func (i *installer) definitions(ctx context.Context, ch *chart.Chart) (int, error) {
	var objs []*unstructured.Unstructured
	for _, file := range ch.CRDObjects() {
		more, err := kube.DecodeRendered(file.File.Data)
		if err != nil {
			return 0, badChart(i.component.Name, fmt.Errorf("decode %s: %w", file.Name, err))
		}
		objs = append(objs, more...)
	}
	own := kube.Labels(i.env.Deployment)
	if i.component.Kind == platform.Adopted { // the chart's own label stays
		delete(own, kube.ManagedBy)
	}
	for _, o := range objs {
		o.SetLabels(labels.Merge(o.GetLabels(), own))
	}
	applied, err := i.client.Apply(ctx, objs, kube.ApplyOptions{Force: true})
	return kube.Altered(applied), err
}

// complete prepares what a chart renders to. Its context is that of one operation.
func (i *installer) complete(ctx context.Context, rendered *bytes.Buffer) (*bytes.Buffer, error) {
	objs, err := kube.DecodeRendered(rendered.Bytes())
	if err != nil {
		return nil, err
	}
	// Helm has a label of its own for who manages an object, and two annotations.
	if err := i.prepare(ctx, objs, map[string]string{kube.DeploymentLabel: i.env.Deployment, kube.ManagedBy: "Helm"}); err != nil {
		return nil, err
	}
	for _, o := range objs {
		kube.KeepLast(o)
		o.SetAnnotations(labels.Merge(o.GetAnnotations(), map[string]string{
			"meta.helm.sh/release-name": i.component.Name, "meta.helm.sh/release-namespace": i.component.Namespace,
		}))
	}
	var out bytes.Buffer
	for _, o := range objs {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return nil, fmt.Errorf("encode %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		fmt.Fprintf(&out, "---\n%s", text)
	}
	return &out, nil
}

func badChart(name string, err error) error {
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return f
	}
	const fix = "correct the chart in the platform release, then run the same command again"
	return &fault.Fault{Code: contract.CodeUnusable, Class: fault.Step, Op: "render the chart " + name, Fix: fix, Err: err}
}
