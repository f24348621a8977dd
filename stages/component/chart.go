package component

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/release"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/version"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/installed"
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

// chart applies what a chart renders to. From the same inputs it is not rendered anew: a chart
// that asks for the time or a random number renders differently each time. Its hooks run only
// where it renders to something else, or where an earlier run did not come to its end.
func (i *installer) chart(ctx context.Context) ([]*unstructured.Unstructured, contract.Component, error) {
	var out contract.Component
	ch, values, err := i.loadChart(ctx)
	if err != nil {
		return nil, out, err
	}
	defined, err := i.crds(ctx, ch)
	if err != nil {
		return nil, out, err
	}
	was, err := readChart(ctx, i.client, i.component.Name)
	if err != nil {
		return nil, out, err
	}
	now, err := i.render(ctx, ch, values, was)
	if err != nil {
		return nil, out, err
	}
	parts, err := i.parts(ctx, now.text)
	if err != nil {
		return nil, out, err
	}
	upgrade, objs := now.revision > was.revision, parts.Objects
	var also []*unstructured.Unstructured // that the list has, too
	for _, h := range parts.Hooks {
		also = append(also, h.Objects...)
	}
	if !upgrade {
		var done []*unstructured.Unstructured
		if objs, done, err = i.withoutExpired(ctx, objs); err != nil {
			return nil, out, err
		}
		also = append(also, done...)
	}
	hooks := func(event release.HookEvent) error { return i.hooks(ctx, parts.Hooks, event, upgrade) }
	before, after := release.HookPreUpgrade, release.HookPostUpgrade
	if now.revision == 1 {
		before, after = release.HookPreInstall, release.HookPostInstall
	}
	if upgrade {
		i.client.Plan.Change("install or upgrade the chart %s", i.component.Name)
		// Until the hooks have run. A run that goes on with it applies the same text: what is random
		// in it, such as a password, may be in use by then.
		err = i.keepChart(ctx, rendered{text: now.text, pending: now.inputs, revision: was.revision}, parts.Hooks)
	}
	if err == nil {
		err = hooks(before)
	}
	if err == nil {
		out, err = i.apply(ctx, objs, also...)
	}
	if err == nil {
		err = hooks(after)
	}
	if err == nil {
		err = i.keepChart(ctx, now, parts.Hooks)
	}
	out.Changed += defined
	return objs, out, err
}

// rendered is what the chart of a component rendered to, as the cluster has it in a note.
type rendered struct {
	text     string
	inputs   string // a digest of what it was rendered from; empty: it has not been applied to the end
	pending  string // that digest while it is applied
	revision int    // 0: it never was
}

func readChart(ctx context.Context, c *kube.Client, component string) (out rendered, err error) {
	note, err := c.Notes(ctx, "", kube.ChartOf(component))
	if err != nil || note == nil {
		return out, err
	}
	out.inputs, out.pending = note["inputs"], note["pending"]
	if out.revision, err = strconv.Atoi(note["revision"]); err == nil {
		out.text, err = installed.Unpack(note["manifest"])
	}
	if err != nil {
		return out, fmt.Errorf("read what the chart %s rendered to: %w", component, err)
	}
	return out, nil
}

// keepChart writes that note, with the hooks for the removal of the component.
func (i *installer) keepChart(ctx context.Context, r rendered, hooks []installed.Hook) error {
	if i.client.Plan.Previews() { // it is no change that anybody cares for
		return nil
	}
	text, err := installed.Text(hooks)
	if err != nil {
		return err
	}
	data := map[string]string{"inputs": r.inputs, "revision": strconv.Itoa(r.revision)}
	if r.pending != "" {
		data["pending"] = r.pending
	}
	for key, text := range map[string]string{"manifest": r.text, "hooks": text} {
		if data[key], err = installed.Pack(text); err != nil {
			return err
		}
	}
	return i.client.KeepNotes(ctx, i.env.Deployment, kube.ChartOf(i.component.Name), data)
}

// render renders the chart, unless a run has rendered it from the same inputs, even if that run did
// not come to its end. The revision grows if the result differs, or was not applied to the end. Which
// APIs the cluster has is no input: components that come later add to them.
func (i *installer) render(ctx context.Context, ch *chart.Chart, values map[string]any, was rendered) (rendered, error) {
	kubernetes, err := kube.Retry(ctx, i.client, "get the version of Kubernetes", func(context.Context) (*version.Info, error) {
		return i.client.Kubernetes.Discovery().ServerVersion()
	})
	if err != nil {
		return was, err
	}
	in := i.in
	in.Fill, in.Values = nil, nil // they are in values
	text, err := json.Marshal([]any{ch.Raw, values, in, kubernetes.Major, kubernetes.Minor})
	if err != nil {
		return was, badChart(i.component.Name, err)
	}
	sum := sha256.Sum256(text)
	now := rendered{inputs: hex.EncodeToString(sum[:]), text: was.text, revision: was.revision}
	if now.inputs == was.inputs {
		return now, nil
	}
	if now.inputs == was.pending {
		now.revision++
		return now, nil
	}
	now.text, err = i.template(ctx, ch, values, was.revision+1)
	if kube.Transient(err) || ctx.Err() != nil || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown {
		return was, err
	} else if err != nil {
		return was, badChart(i.component.Name, err)
	}
	if was.inputs == "" || now.text != was.text {
		now.revision++
	}
	return now, nil
}

// parts are the objects that a chart rendered to, and its hooks, complete.
func (i *installer) parts(ctx context.Context, text string) (installed.Rendered, error) {
	parts, err := installed.Parse(text)
	if err != nil {
		return parts, badChart(i.component.Name, err)
	}
	own := map[string]string{kube.DeploymentLabel: i.env.Deployment} // the chart's own label of who manages it stays
	if err := i.prepare(ctx, parts.Objects, own); err != nil {
		return parts, err
	}
	for _, o := range parts.Objects {
		render.KeepLast(o)
	}
	for _, h := range parts.Hooks {
		if err := i.client.SetNamespace(ctx, h.Objects, i.component.Namespace); err != nil {
			return parts, err
		}
		for _, o := range h.Objects {
			o.SetLabels(labels.Merge(o.GetLabels(), own))
		}
		if err := i.pods(ctx, h.Objects); err != nil {
			return parts, err
		}
	}
	return parts, nil
}

// withoutExpired separates objects from the Jobs among them that are done and gone.
func (i *installer) withoutExpired(ctx context.Context, objs []*unstructured.Unstructured) (there, gone []*unstructured.Unstructured, err error) {
	for _, o := range objs {
		if _, expires, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "ttlSecondsAfterFinished"); o.GetKind() == "Job" && expires {
			live, err := i.client.Live(ctx, kube.MemberOf(o))
			if err != nil {
				return nil, nil, err
			}
			if live == nil {
				gone = append(gone, o)
				continue
			}
		}
		there = append(there, o)
	}
	return there, gone, nil
}

// hooks runs the hooks of an event, if the chart is installed or upgraded; a plan tells what they
// would make.
func (i *installer) hooks(ctx context.Context, all []installed.Hook, event release.HookEvent, upgrade bool) error {
	if !upgrade {
		return nil
	}
	if i.client.Plan == nil {
		return installed.Runner{Client: i.client, Deployment: i.env.Deployment, Job: i.completed}.Run(ctx, all, event)
	}
	for _, h := range all {
		for _, o := range h.Objects {
			if h.On(event) {
				i.client.Plan.Note(contract.PlannedChange{Of: contract.PlanJobs, Action: contract.PlanRun, Name: kube.MemberOf(o).String(), Note: "a hook of the chart " + i.component.Name})
			}
		}
	}
	return nil
}

// crds applies the chart's CustomResourceDefinitions, which Helm itself would only
// make and never change. It returns how many were made or changed.
func (i *installer) crds(ctx context.Context, ch *chart.Chart) (int, error) {
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
	applied, err := i.client.Apply(ctx, objs, kube.ApplyOptions{})
	return kube.Altered(applied), err
}

func badChart(name string, err error) error {
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return f
	}
	const fix = "correct the chart in the platform release, then run the same command again"
	return &fault.Fault{Code: contract.CodeUnusable, Class: fault.Step, Op: "render the chart " + name, Fix: fix, Err: err}
}
