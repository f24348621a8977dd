package render

import (
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/release"
)

// ChartOptions say how a chart is rendered.
type ChartOptions struct {
	Release, Namespace string
	Values             map[string]any
	Kubernetes         *chartutil.KubeVersion
	// APIs are those of the cluster; nil: Helm's idea of one.
	APIs chartutil.VersionSet
}

// Chart renders a chart as helm template does. What a chart looks up in the cluster is not
// there.
func Chart(ch *chart.Chart, opts ChartOptions) (*release.Release, error) {
	install := action.NewInstall(&action.Configuration{})
	install.ClientOnly, install.DryRun, install.Replace, install.SkipCRDs = true, true, true, true
	install.ReleaseName, install.Namespace = opts.Release, opts.Namespace
	install.KubeVersion, install.APIVersions = opts.Kubernetes, opts.APIs
	return install.Run(ch, opts.Values)
}
