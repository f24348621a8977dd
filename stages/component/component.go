// Package component has the step that installs a component of a platform release,
// whatever it is made of, and waits until it is ready.
package component

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/gate"
	"github.com/slipway-sh/slipway/stages/internal/installed"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
	"github.com/slipway-sh/slipway/stages/internal/render"
	"github.com/slipway-sh/slipway/stages/step"
)

// Register adds the code of the steps of components to r.
func Register(r *step.Registry) {
	step.Register(r, contract.ComponentStep(), step.Repeatable(run))
	step.Register(r, contract.HandoverStep(), step.Repeatable(adopt))
}

type installer struct {
	env       *step.Env
	client    *kube.Client
	release   *platform.Release
	component platform.Component
	in        contract.ComponentInput
}

func open(ctx context.Context, env *step.Env, in contract.ComponentInput) (*installer, error) {
	r, client, err := env.Open()
	if err != nil {
		return nil, err
	}
	c, ok := r.Component(in.Component)
	if !ok {
		return nil, fmt.Errorf("platform %s %s has no component %s", r.Name, r.Version, in.Component)
	}
	for _, name := range c.ImageNames() { // before a text that names one cannot be filled in
		if in.Images[name] == "" {
			return nil, noImage(name)
		}
	}
	if err := client.HideSecrets(ctx, env.Deployment, env.Redact); err != nil {
		return nil, err
	}
	return &installer{env: env, client: client, release: r, component: c, in: in}, nil
}

func run(ctx context.Context, env *step.Env, in contract.ComponentInput) (contract.Component, error) {
	i, err := open(ctx, env, in)
	if err != nil {
		return contract.Component{}, err
	}
	if err := i.node(ctx); err != nil {
		return contract.Component{}, err
	}
	var objs []*unstructured.Unstructured
	var out contract.Component
	switch i.component.Kind {
	case platform.Adopted: // once Argo CD has it, what is new in it comes with the tree; the step that hands it over waits for that
		owned, err := i.owned(ctx)
		if err != nil {
			return out, err
		}
		if owned {
			i.env.Progress("it is left to Argo CD, whose Application %s owns it", i.component.Name)
			return out, nil
		}
		fallthrough
	case platform.Chart:
		objs, out, err = i.chart(ctx)
	case platform.Manifests:
		objs, out, err = i.manifests(ctx)
	case platform.Job:
		objs, out, err = i.jobs(ctx)
	case platform.AppSet:
		out, err = i.appSet(ctx)
	}
	if err != nil || !i.client.Plan.Waits() {
		return out, err
	}
	if out.Workloads, err = readiness.WaitRollouts(ctx, i.client, objs); err != nil {
		return out, err
	}
	out.Gates, err = i.gates(ctx)
	return out, err
}

func (i *installer) manifests(ctx context.Context) ([]*unstructured.Unstructured, contract.Component, error) {
	objs, err := i.read(ctx)
	if err != nil {
		return nil, contract.Component{}, err
	}
	if err := i.prepare(ctx, objs, kube.Labels(i.env.Deployment)); err != nil {
		return nil, contract.Component{}, err
	}
	out, err := i.apply(ctx, objs)
	return objs, out, err
}

// apply applies objects, and deletes what an earlier version of the component had. The component's
// list has them, and also those that are made otherwise.
func (i *installer) apply(ctx context.Context, objs []*unstructured.Unstructured, also ...*unstructured.Unstructured) (contract.Component, error) {
	set := kube.Set{Name: kube.ObjectsOf(i.component.Name), Deployment: i.env.Deployment, Others: i.others}
	if i.component.Kind == platform.Job {
		set.Others = i.othersJobs
	}
	for _, o := range also {
		set.Also = append(set.Also, kube.MemberOf(o))
	}
	applied, deleted, err := i.client.ApplySet(ctx, set, objs, kube.ApplyOptions{Namespace: i.component.Namespace})
	if err != nil {
		return contract.Component{}, err
	}
	i.env.Progress("%s", kube.Count(applied))
	if len(deleted) > 0 {
		i.env.Progress("deleted objects that the release no longer has: %s", strings.Join(deleted, ", "))
	}
	scaled, err := rescale(ctx, i.client, objs)
	if len(scaled) > 0 {
		i.env.Progress("scaled to 1 again, as the manifest leaves the number of replicas out: %s", strings.Join(scaled, ", "))
	}
	return contract.Component{Objects: len(objs), Changed: kube.Altered(applied) + len(deleted) + len(scaled)}, err
}

// others lists what is made besides components, and what the other components have.
func (i *installer) others(ctx context.Context) ([]kube.Member, error) {
	all := installed.RemovalOf(i.release).Components
	has, err := installed.Listed(ctx, i.client, slices.DeleteFunc(all, func(c installed.Component) bool { return c.Name == i.component.Name }))
	return append(has, installed.Prerequisites(i.release)...), err
}

func (i *installer) read(ctx context.Context) ([]*unstructured.Unstructured, error) {
	objs, err := render.Manifests(ctx, i.release.Files(), os.DirFS(filepath.Join(i.env.BundleDir, "manifests")), i.component)
	if err != nil {
		return nil, i.badManifests(err)
	}
	if len(objs) == 0 {
		return nil, i.badManifests(errors.New("its files hold no object"))
	}
	return objs, nil
}

func (i *installer) badManifests(err error) error {
	fix := "correct the platform release, then run the same command again"
	if i.component.Bundle != "" {
		fix = "correct the platform release, or build the bundle again (make bundle), then run the same command again"
	}
	return &fault.Fault{Code: contract.CodeUnusable, Class: fault.Step, Op: "read the manifests of component " + i.component.Name, Fix: fix, Err: err}
}

// prepare completes objects: their namespaces, labels, the references of images, what the
// pods resolve, and an annotation for the configuration that pods read when they start.
func (i *installer) prepare(ctx context.Context, objs []*unstructured.Unstructured, own map[string]string) error {
	if err := i.client.SetNamespace(ctx, objs, i.component.Namespace); err != nil {
		return err
	}
	for _, o := range objs {
		o.SetLabels(labels.Merge(o.GetLabels(), own))
	}
	if err := i.pods(ctx, objs); err != nil || i.component.Kind == platform.Adopted {
		return err
	}
	return i.annotate(ctx, objs)
}

// pods has the pods of objects, hooks of a chart among them, run images that the nodes can pull, and
// resolve what the release says.
func (i *installer) pods(ctx context.Context, objs []*unstructured.Unstructured) error {
	if i.component.Kind == platform.Adopted { // Argo CD changes nothing in what the chart renders to
		return nil
	}
	refs := labels.Merge(i.in.Rewrite, i.in.Images)
	render.SetImages(objs, refs)
	if i.in.PullSecret {
		render.AddPullSecret(objs, refs, kube.PullSecret)
	}
	hosts, err := i.hosts(ctx)
	if err != nil {
		return err
	}
	render.AddHosts(objs, hosts)
	return nil
}

func noImage(name string) error {
	return &fault.Fault{
		Code: contract.CodeNoImage, Class: fault.Step, Op: "find the image " + name,
		Fix: "build a bundle for the platform release, whose directory is DIR: make bundle PLATFORM=DIR",
		Err: fmt.Errorf("neither the bundle nor the registry has an image named %s", name),
	}
}

// gates waits for the component's gates, all at the same time. The error names every gate that stays
// shut.
func (i *installer) gates(ctx context.Context) ([]string, error) {
	all := i.component.Ready
	if len(all) == 0 {
		return nil, nil
	}
	names, errs := make([]string, len(all)), make([]error, len(all))
	for n, a := range all {
		names[n] = a.Describe()
	}
	waiting := "waiting for " + strings.Join(names, ", ")
	i.env.Progress("%s", waiting)
	i.report(ctx, contract.Waiting, ": "+waiting)
	i.client.OnWait = func(what string, since, until time.Time, seen string, over bool) {
		i.env.Waits(what, since, until, seen, over)
		if !over {
			i.report(ctx, contract.Waiting, fmt.Sprintf(": waiting for %s since %s, until %s: %s", what, clock(since), clock(until), seen))
		}
	}
	var wg sync.WaitGroup
	for n, a := range all {
		wg.Go(func() { errs[n] = gate.Wait(ctx, i.client, i.engine(), a) })
	}
	wg.Wait()
	err := errors.Join(errs...)
	if err == nil {
		i.report(ctx, contract.InProgress, " is ready")
	}
	return names, err
}

func (i *installer) engine() string {
	if c := i.release.Engine(); c != nil {
		return c.Namespace
	}
	return ""
}

func (i *installer) report(ctx context.Context, s contract.Progress, message string) {
	i.client.WriteProgress(ctx, i.env.Logger, i.env.Deployment, i.env.Run, s, "component "+i.component.Name+message)
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05Z") }
