package render

import (
	"context"
	"errors"
	"regexp"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-sh/slipway/bounded"
)

// Everywhere reports whether err is so in every cluster: why Chart failed to render a chart, or
// what is wrong with what it rendered to. It is, if the chart, as it was read, comes there without
// asking for what only a cluster knows: objects that it looks up; the cluster's APIs, but for those
// that every cluster has; and the version of Kubernetes, where that of opts is a guess.
func Everywhere(ctx context.Context, ch *chart.Chart, opts ChartOptions, guess bool, err error) (bool, error) {
	return bounded.Work(ctx, bounded.Usual(), func() (bool, error) { return everywhere(ch, opts, guess, err), nil })
}

func everywhere(ch *chart.Chart, opts ChartOptions, guess bool, err error) bool {
	if guess && ch.Metadata.KubeVersion != "" {
		return false
	}
	if chartutil.ProcessDependenciesWithMerge(ch, opts.Values) != nil {
		return true
	}
	of := chartutil.ReleaseOptions{Name: opts.Release, Namespace: opts.Namespace, Revision: 1, IsInstall: true}
	top, invalid := chartutil.ToRenderValues(ch, opts.Values, of, nil)
	if invalid != nil {
		return true
	}
	a := &asked{guess: guess, version: opts.Kubernetes}
	top["Capabilities"] = a
	_, again := engine.RenderWithClientProvider(ch, top, a)
	return !a.cluster && (again == nil || again.Error() == err.Error())
}

// asked stands for Helm's capabilities, as templates name them, and for a cluster, and notes
// whether a chart asks for what only a cluster knows.
type asked struct {
	guess   bool
	version *chartutil.KubeVersion
	cluster bool
}

// GetClientFor is called for an object that is looked up.
func (a *asked) GetClientFor(string, string) (dynamic.NamespaceableResourceInterface, bool, error) {
	a.cluster = true
	return nil, false, errors.New("there is no cluster")
}

// KubeVersion is {{ .Capabilities.KubeVersion }}.
func (a *asked) KubeVersion() *chartutil.KubeVersion {
	a.cluster = a.cluster || a.guess
	return a.version
}

// HelmVersion is {{ .Capabilities.HelmVersion }}.
func (*asked) HelmVersion() any { return chartutil.DefaultCapabilities.HelmVersion }

// APIVersions is {{ .Capabilities.APIVersions }}. What templates do with it besides Has fails.
func (a *asked) APIVersions() *asked { return a }

// stable is a version that no later Kubernetes lacks.
var stable = regexp.MustCompile(`(^|/)v[0-9]+$`)

// Has is {{ .Capabilities.APIVersions.Has "apps/v1" }}.
func (a *asked) Has(version string) bool {
	has := chartutil.DefaultVersionSet.Has(version)
	a.cluster = a.cluster || a.guess || !has || !stable.MatchString(version)
	return has
}
