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
	a := &asked{guess: guess}
	top["Capabilities"] = capabilities{asked: a, version: opts.Kubernetes}
	_, again := engine.RenderWithClientProvider(ch, top, a)
	return !a.cluster && (again == nil || again.Error() == err.Error())
}

// asked notes whether a chart asks for what only a cluster knows.
type asked struct{ guess, cluster bool }

// GetClientFor is called for an object that is looked up.
func (a *asked) GetClientFor(string, string) (dynamic.NamespaceableResourceInterface, bool, error) {
	a.cluster = true
	return nil, false, errors.New("there is no cluster")
}

// capabilities are Helm's, as templates name them.
type capabilities struct {
	asked   *asked
	version *chartutil.KubeVersion
}

// KubeVersion is {{ .Capabilities.KubeVersion }}.
func (c capabilities) KubeVersion() *chartutil.KubeVersion {
	c.asked.cluster = c.asked.cluster || c.asked.guess
	return c.version
}

// HelmVersion is {{ .Capabilities.HelmVersion }}.
func (capabilities) HelmVersion() any { return chartutil.DefaultCapabilities.HelmVersion }

// APIVersions is {{ .Capabilities.APIVersions }}. What templates do with it besides Has
// fails.
func (c capabilities) APIVersions() apis { return apis{asked: c.asked} }

type apis struct{ asked *asked }

// stable is a version that no later Kubernetes lacks.
var stable = regexp.MustCompile(`(^|/)v[0-9]+$`)

// Has is {{ .Capabilities.APIVersions.Has "apps/v1" }}.
func (a apis) Has(version string) bool {
	has := chartutil.DefaultVersionSet.Has(version)
	if a.asked.guess || !has || !stable.MatchString(version) {
		a.asked.cluster = true
	}
	return has
}
