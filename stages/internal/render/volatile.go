package render

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"time"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"

	"github.com/slipway-sh/slipway/bounded"
)

// Volatile is an object of a chart that an install and an upgrade with the same input render
// differently.
type Volatile struct {
	File       string // of the chart, with the chart's name in front
	Kind, Name string
	// Install and Upgrade tell which of the two renders the object at all.
	Install, Upgrade bool
}

// clock finds templates that ask for the time.
var clock = regexp.MustCompile(`{{[^}]*\bnow\b`)

// VolatileObjects renders a chart twice, for an install and for an upgrade, and returns the
// objects that differ; hooks run each time in any case. Rendering changes a chart: first and
// second are the same one, each as it was read.
func VolatileObjects(ctx context.Context, first, second *chart.Chart, opts ChartOptions) ([]Volatile, error) {
	return bounded.Work(ctx, bounded.Usual(), func() ([]Volatile, error) { return volatileObjects(first, second, opts) })
}

func volatileObjects(first, second *chart.Chart, opts ChartOptions) ([]Volatile, error) {
	install, err := objects(first, opts, chartutil.ReleaseOptions{Revision: 1, IsInstall: true})
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(first.Raw, func(f *chart.File) bool { return clock.Match(f.Data) }) {
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) // most print seconds
	}
	upgrade, err := objects(second, opts, chartutil.ReleaseOptions{Revision: 2, IsUpgrade: true})
	if err != nil {
		return nil, err
	}
	var out []Volatile
	for id, text := range install {
		if other, both := upgrade[id]; other != text {
			id.Install, id.Upgrade = true, both
			out = append(out, id)
		}
	}
	for id := range upgrade {
		if _, both := install[id]; !both {
			id.Upgrade = true
			out = append(out, id)
		}
	}
	slices.SortFunc(out, func(a, b Volatile) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// objects are the texts of what a chart renders to, without its hooks.
func objects(ch *chart.Chart, opts ChartOptions, as chartutil.ReleaseOptions) (map[Volatile]string, error) {
	if err := chartutil.ProcessDependenciesWithMerge(ch, opts.Values); err != nil {
		return nil, err
	}
	caps := chartutil.DefaultCapabilities.Copy()
	if opts.Kubernetes != nil {
		caps.KubeVersion = *opts.Kubernetes
	}
	if opts.APIs != nil {
		caps.APIVersions = opts.APIs
	}
	as.Name, as.Namespace = opts.Release, opts.Namespace
	values, err := chartutil.ToRenderValues(ch, opts.Values, as, caps)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(ch, values)
	if err != nil {
		return nil, err
	}
	for name := range files {
		if notes.MatchString(name) {
			delete(files, name)
		}
	}
	_, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return nil, err
	}
	out := map[Volatile]string{}
	for _, m := range manifests {
		id := Volatile{File: m.Name}
		if m.Head != nil {
			id.Kind = m.Head.Kind
			if m.Head.Metadata != nil {
				id.Name = m.Head.Metadata.Name
			}
		}
		out[id] += m.Content
	}
	return out, nil
}

var notes = regexp.MustCompile(`(^|/)NOTES\.txt$`)
