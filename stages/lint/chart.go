package lint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/render"
)

type chart struct {
	component string
	files     fs.FS  // of the release, or of the tree as it would be pushed
	dir       string // in files
	path      string // in the release
	release   string
	namespace string
	values    map[string]any
	in        contract.ComponentInput // Images take the place of references; zero for an app
	kept      bool                    // Argo CD applies it
	app       bool                    // of an Application: Argo CD fetches what it depends on, and only a run knows all of its values
	strict    bool                    // Kubernetes refuses fields that it does not know
	name      string                  // its own, by which Helm names its files
	certain   bool                    // it renders to the same in every cluster, whatever a run finds out
}

type rendered struct {
	file string // in the release
	kept bool   // Helm applies it as it is: a hook
	crds bool   // Helm makes them once, unless they are there
	objs []*unstructured.Unstructured
}

// ended is why nothing more can be rendered once a chart or kustomization could not be, because
// of err: the user's interrupt, or what still renders. nil: the others can.
func ended(ctx context.Context, component, file string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !errors.Is(err, bounded.ErrAbandoned) {
		return nil
	}
	if f := (*fault.Fault)(nil); errors.As(err, &f) {
		return err // it says which it was
	}
	return &fault.Fault{
		Code: contract.CodeUnusable, Class: fault.Usage, Op: fmt.Sprintf("render component %s (%s)", component, file),
		Err: err, Fix: "remove endless or very slow templates from its files; helm template shows them in a chart",
	}
}

// chart notes the images of a chart, those of its hooks among them.
func (v *linter) chart(ctx context.Context, c chart) ([]rendered, error) {
	ch, err := render.LoadChart(ctx, c.files, c.dir)
	if err != nil {
		v.badChart(c, err)
		return nil, ended(ctx, c.component, c.path, err)
	}
	c.name = ch.Name()
	c.certain = !c.app && !v.off && (!v.Guessed || ch.Metadata.KubeVersion == "") && !render.UsesCluster(ch, c.values)
	crds := !v.problems(c.component, noDefinitions(ch), c.inRelease)
	switch err := render.Missing(ch); {
	case err != nil && c.app:
		v.skip(c.component, fmt.Errorf("what its chart depends on is fetched by Argo CD: %w", err))
		return nil, nil
	case err != nil:
		v.wrong(c.component, path.Join(c.path, metadataFile(ch)), 0, fmt.Errorf("%w; it comes with the release: helm dependency build %s", err, fault.Quote(v.release.Path(c.path))))
		return nil, nil
	case ch.Metadata.Type == "library":
		v.wrong(c.component, path.Join(c.path, metadataFile(ch)), 0, errors.New("type: got library, want application: Helm installs no library chart; make a chart that depends on it"))
		return nil, nil
	case !hasTemplates(ch):
		v.wrong(c.component, c.path, 0, errors.New("no template is in the chart, nor in charts of its own that it depends on"))
		return nil, nil
	}
	version, err := chartutil.ParseKubeVersion(v.Kubernetes)
	if err != nil {
		v.skip(c.component, fmt.Errorf("the version %q of Kubernetes: %w", v.Kubernetes, err))
		return nil, nil
	}
	opts := render.ChartOptions{Release: c.release, Namespace: c.namespace, Values: c.values, Kubernetes: version, APIs: v.APIs}
	parts, err := c.render(ctx, ch, opts, crds)
	if err != nil {
		if err := ended(ctx, c.component, c.path, err); err != nil {
			return nil, err
		}
		v.unrendered(c, err)
		return nil, nil
	}
	for _, p := range parts {
		if p.crds {
			v.file(c.component, p.file, c.namespace, nil, p.objs)
			continue
		}
		v.chartFields(c, p)
		render.SetImages(p.objs, c.in.Images)
		v.note(contract.ImageUse{Component: c.component, File: p.file, Kept: c.kept || p.kept}, render.Images(p.objs)...)
		v.file(c.component, p.file, c.namespace, c.in.Hosts, p.objs)
		if !c.kept && !p.kept {
			v.conflicts(c.component, p.file, 0, c.namespace, p.objs)
		}
	}
	return parts, nil
}

// hasTemplates reports whether a chart, or one that it depends on, can bring objects about.
func hasTemplates(ch *helmchart.Chart) bool {
	return len(ch.Templates) > 0 || len(ch.CRDObjects()) > 0 || slices.ContainsFunc(ch.Dependencies(), hasTemplates)
}

// render renders a chart as helm template does: what it looks up in the cluster is not there.
func (c chart) render(ctx context.Context, ch *helmchart.Chart, opts render.ChartOptions, crds bool) ([]rendered, error) {
	rel, err := render.Chart(ctx, ch, opts)
	if err != nil {
		return nil, err
	}
	var out []rendered
	if crds {
		for _, d := range ch.CRDObjects() {
			if out, err = c.add(out, d.Filename, string(d.File.Data)); err != nil {
				return nil, err
			}
			out[len(out)-1].crds = true
		}
	}
	for _, doc := range documents(rel.Manifest) {
		if out, err = c.add(out, doc.file, doc.text); err != nil {
			return nil, err
		}
	}
	for _, h := range rel.Hooks {
		if slices.Equal(h.Events, []release.HookEvent{release.HookTest}) { // which no install runs
			continue
		}
		if out, err = c.add(out, h.Path, h.Manifest); err != nil {
			return nil, err
		}
		out[len(out)-1].kept = true
	}
	return out, nil
}

// add decodes a document from a file, whose path starts with the chart's name.
func (c chart) add(out []rendered, file, text string) ([]rendered, error) {
	objs, err := kube.DecodeRendered([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return append(out, rendered{file: c.inRelease(file), objs: objs}), nil
}

// inRelease is the path in the release of a file that Helm names after the chart.
func (c chart) inRelease(file string) string {
	_, below, _ := strings.Cut(file, "/")
	return path.Join(c.path, below)
}

func metadataFile(ch *helmchart.Chart) string {
	if ch.Metadata.APIVersion == helmchart.APIVersionV1 {
		return "requirements.yaml"
	}
	return "Chart.yaml"
}

type chartPart struct{ file, text string }

var (
	separator  = regexp.MustCompile(`(?m)^---\n`)
	sourceLine = regexp.MustCompile(`(?m)^# Source: (\S+)$`)
)

// documents splits what a chart renders to, with the file that Helm names before each document.
func documents(manifest string) []chartPart {
	var out []chartPart
	for _, text := range separator.Split(manifest, -1) {
		if strings.TrimSpace(text) == "" {
			continue
		}
		d := chartPart{text: text}
		if m := sourceLine.FindStringSubmatch(text); m != nil {
			d.file = m[1]
		} else if len(out) > 0 {
			d.file = out[len(out)-1].file // a file may have several
		}
		out = append(out, d)
	}
	return out
}
