package render

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// ChartOptions say how a chart is rendered.
type ChartOptions struct {
	Release, Namespace string
	Values             map[string]any
	Kubernetes         *chartutil.KubeVersion
	// APIs are those of the cluster; nil: Helm's idea of one.
	APIs chartutil.VersionSet
	// CRDs has the chart's CustomResourceDefinitions come first in the manifest.
	CRDs bool
}

// ForCluster sets the version of Kubernetes and the APIs to those of a cluster.
func (o *ChartOptions) ForCluster(ctx context.Context, c *kube.Client) error {
	discovery := c.Kubernetes.Discovery()
	return c.Retry(ctx, "ask which APIs the cluster has", func(context.Context) error {
		version, err := discovery.ServerVersion()
		if err != nil {
			return err
		}
		o.Kubernetes = &chartutil.KubeVersion{Version: version.GitVersion, Major: version.Major, Minor: version.Minor}
		o.APIs, err = action.GetVersionSet(discovery)
		return err
	})
}

// maxRendered is how large what a chart renders to may be, in bytes: Helm cannot keep a record of
// a fraction of it.
const maxRendered = 64 << 20

// Chart renders a chart as helm template does. What a chart looks up in the cluster is not
// there.
func Chart(ctx context.Context, ch *chart.Chart, opts ChartOptions) (*release.Release, error) {
	return bounded.Work(ctx, bounded.Usual(), func() (*release.Release, error) {
		install := action.NewInstall(&action.Configuration{})
		install.ClientOnly, install.DryRun, install.Replace, install.IncludeCRDs = true, true, true, opts.CRDs
		install.ReleaseName, install.Namespace = opts.Release, opts.Namespace
		install.KubeVersion, install.APIVersions = opts.Kubernetes, opts.APIs
		rel, err := install.Run(ch, opts.Values)
		if err == nil && len(rel.Manifest) > maxRendered {
			return nil, fmt.Errorf("the chart renders to more than %d MiB", maxRendered>>20)
		}
		return rel, err
	})
}

// InCluster are the objects that a component's chart renders to in a cluster, with its definitions
// and what its hooks make.
func InCluster(ctx context.Context, c *kube.Client, component platform.Component, ch *chart.Chart, values map[string]any) ([]*unstructured.Unstructured, error) {
	opts := ChartOptions{Release: component.Name, Namespace: component.Namespace, Values: values, CRDs: true}
	if err := opts.ForCluster(ctx, c); err != nil {
		return nil, err
	}
	rel, err := Chart(ctx, ch, opts)
	if err != nil {
		return nil, err
	}
	text := rel.Manifest
	for _, h := range rel.Hooks {
		text += "\n---\n" + h.Manifest
	}
	objs, err := kube.DecodeRendered([]byte(text))
	if err != nil {
		return nil, err
	}
	return objs, c.SetNamespace(ctx, objs, component.Namespace)
}

// UsesCluster reports whether a chart may ask for what only a cluster knows: objects that it looks up,
// or the APIs or the version of Kubernetes. A template may also be among the values.
func UsesCluster(ch *chart.Chart, values map[string]any) bool {
	asks := func(text []byte) bool {
		return bytes.Contains(text, []byte("lookup ")) || bytes.Contains(text, []byte(".Capabilities"))
	}
	text, err := json.Marshal(values)
	return err != nil || asks(text) || slices.ContainsFunc(ch.Templates, func(f *chart.File) bool { return asks(f.Data) }) ||
		slices.ContainsFunc(ch.Dependencies(), func(d *chart.Chart) bool { return UsesCluster(d, nil) })
}

// Missing fails, as helm install does, unless everything that a chart says it depends on is
// in its directory charts, also what its values switch off. Rendering a chart changes it:
// it has to be as it was read.
func Missing(ch *chart.Chart) error {
	return action.CheckDependencies(ch, ch.Metadata.Dependencies)
}
