package component

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/stages/internal/render"
)

// template renders a chart, which it changes, for the cluster, in which the chart may look things up.
// Revision 1 is an install, a later one an upgrade. The result has what the chart's hooks make, too.
func (i *installer) template(ctx context.Context, ch *chart.Chart, values map[string]any, revision int) (string, error) {
	var cluster render.ChartOptions
	if err := cluster.ForCluster(ctx, i.client); err != nil {
		return "", err
	}
	return bounded.Work(ctx, bounded.Usual(), func() (string, error) {
		if want := ch.Metadata.KubeVersion; want != "" && !chartutil.IsCompatibleRange(want, cluster.Kubernetes.Version) {
			return "", fmt.Errorf("the chart requires Kubernetes %s, and the cluster has %s", want, cluster.Kubernetes.Version)
		}
		if err := chartutil.ProcessDependenciesWithMerge(ch, values); err != nil {
			return "", err
		}
		top, err := chartutil.ToRenderValues(ch, values, chartutil.ReleaseOptions{
			Name: i.component.Name, Namespace: i.component.Namespace, Revision: revision, IsInstall: revision == 1, IsUpgrade: revision > 1,
		}, &chartutil.Capabilities{KubeVersion: *cluster.Kubernetes, APIVersions: cluster.APIs, HelmVersion: chartutil.DefaultCapabilities.HelmVersion})
		if err != nil {
			return "", err
		}
		files, err := engine.New(i.client.Config).Render(ch, top)
		if err != nil {
			return "", err
		}
		var out strings.Builder
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if base := path.Base(name); base == "NOTES.txt" || strings.HasPrefix(base, "_") || strings.TrimSpace(files[name]) == "" {
				continue
			}
			fmt.Fprintf(&out, "---\n# Source: %s\n%s\n", name, files[name])
		}
		return out.String(), nil
	})
}
