package component

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	helmkube "helm.sh/helm/v3/pkg/kube"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/helm"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

const maxHistory = 5

// chartRelease is one Helm release that a step brings about.
type chartRelease struct {
	client     *kube.Client
	log        *slog.Logger
	config     *action.Configuration
	deployment string
	name       string
	namespace  string
	chart      *chart.Chart
	values     map[string]any
	labels     map[string]string                                           // of the records
	complete   func(context.Context, *bytes.Buffer) (*bytes.Buffer, error) // see installer.complete
	others     func(context.Context, []kube.Member) ([]kube.Member, error) // see kube.Set
}

func (i *installer) open(ctx context.Context, ch *chart.Chart, values map[string]any) (*chartRelease, error) {
	namespace := i.component.Namespace
	config, err := helm.Connect(ctx, i.client.Plan, i.env.Kubeconfig, namespace, i.env.Logger)
	if err != nil {
		return nil, badRelease("connect Helm to the cluster", err)
	}
	if own, is := config.KubeClient.(*helmkube.Client); is {
		config.KubeClient = serverSide{own, func(objs []*unstructured.Unstructured) error {
			_, err := i.apply(ctx, objs)
			return err
		}, func(objs []*unstructured.Unstructured) error { return i.pods(ctx, objs) },
			func(namespace, name string) error { return i.completed(ctx, namespace, name) }}
	}
	return &chartRelease{
		client: i.client, log: i.env.Logger, config: config, complete: i.complete, others: i.others, deployment: i.env.Deployment,
		name: i.component.Name, namespace: namespace, chart: ch, values: values,
		labels: map[string]string{kube.DeploymentLabel: i.env.Deployment},
	}, nil
}

// helmManager is the field manager of what Helm itself writes: it calls itself what the
// program is called.
func helmManager() string { return filepath.Base(os.Args[0]) }

// rendered changes what a chart renders to before Helm applies it.
type rendered func(*bytes.Buffer) (*bytes.Buffer, error)

// Run implements postrender.PostRenderer.
func (f rendered) Run(in *bytes.Buffer) (*bytes.Buffer, error) { return f(in) }

// bound does an operation of Helm's, whose chart is rendered within limits; the post-renderer
// that it gets is complete.
func (r *chartRelease) bound(ctx context.Context, do func(changed rendered) (*release.Release, error)) (*release.Release, error) {
	return bounded.Begin(ctx, bounded.Usual(), func(past func() error) (*release.Release, error) {
		return do(func(in *bytes.Buffer) (*bytes.Buffer, error) {
			if err := past(); err != nil {
				return nil, err
			}
			return r.complete(ctx, in)
		})
	})
}

// hookLimit bounds each hook of a chart whose step has no limit.
const hookLimit = 10 * time.Minute

// timeLeft is how long each hook of a chart may take.
func timeLeft(ctx context.Context) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		return time.Until(end)
	}
	return hookLimit
}

// badRelease keeps the fault of what completes a chart's objects: Helm wraps it.
func badRelease(op string, err error) error {
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return f
	}
	return &fault.Fault{Code: CodeRelease, Class: fault.Step, Op: op, Fix: "look at the step's log, then run the same command again", Err: err}
}

// Change of a release.
const (
	unchanged = "unchanged"
	rescaled  = "scaled to 1" // where somebody had scaled what declares no number of replicas, and nothing else
	installed = "installed"
	upgraded  = "upgraded"
	restored  = "restored" // objects that somebody changed or deleted
)

// converge installs or upgrades the release. A deployed revision with the same inputs stays,
// and so does one that renders the same: objects that differ from it are restored, without the
// chart's hooks. What a killed run left behind is cleared away first; no object and no volume is
// deleted for it. It does not wait for the pods.
func (r *chartRelease) converge(ctx context.Context) (change string, err error) {
	deployed, unfinished, err := r.recover(ctx)
	if err != nil {
		return "", err
	}
	if deployed == nil {
		in := action.NewInstall(r.config)
		in.ReleaseName, in.Namespace, in.SkipCRDs = r.name, r.namespace, true
		// What is somebody else's has ended the run, unless it is to be taken over.
		in.TakeOwnership, in.Labels = true, r.labels
		_, err := r.bound(ctx, func(changed rendered) (*release.Release, error) {
			in.PostRenderer, in.Timeout = changed, timeLeft(ctx)
			return in.RunWithContext(ctx, r.chart, r.values)
		})
		if err != nil {
			return "", badRelease("install the chart "+r.name, err)
		}
		return installed, nil
	}
	if !unfinished && r.sameInputs(deployed) {
		objs, err := r.current(ctx, deployed)
		if err != nil {
			return "", err
		}
		return r.restore(ctx, objs)
	}
	planned, err := r.upgrade(ctx, true)
	if kube.Transient(err) || ctx.Err() != nil || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown {
		return "", badRelease("plan the upgrade of the chart "+r.name, err)
	}
	if err != nil {
		return "", badChart(r.name, err)
	}
	objs, err := kube.Decode([]byte(planned.Manifest))
	if err != nil {
		return "", badChart(r.name, err)
	}
	if !unfinished && same(deployed, planned) {
		return r.restore(ctx, objs)
	}
	scaled, err := r.client.Rescale(ctx, objs, r.namespace)
	if err != nil {
		return "", err
	}
	if len(scaled) > 0 {
		r.log.Info("scaled to 1", "release", r.name, "objects", scaled)
	}
	if _, err := r.upgrade(ctx, false); err != nil {
		return "", badRelease("upgrade the chart "+r.name, err)
	}
	return upgraded, nil
}

func (r *chartRelease) upgrade(ctx context.Context, dry bool) (*release.Release, error) {
	up := action.NewUpgrade(r.config)
	up.Namespace, up.MaxHistory, up.ResetValues, up.SkipCRDs = r.namespace, maxHistory, true, true
	up.TakeOwnership, up.Labels = true, r.labels
	if dry {
		up.DryRun, up.DryRunOption = true, "server"
	}
	return r.bound(ctx, func(changed rendered) (*release.Release, error) {
		up.PostRenderer, up.Timeout = changed, timeLeft(ctx)
		return up.RunWithContext(ctx, r.name, r.chart, r.values)
	})
}

// same tells whether two revisions would be the same in the cluster.
func same(a, b *release.Release) bool {
	return a.Info != nil && a.Info.Status == release.StatusDeployed && a.Manifest == b.Manifest && sameValues(a.Config, b.Config) &&
		a.Chart.Metadata.Version == b.Chart.Metadata.Version && a.Chart.Metadata.AppVersion == b.Chart.Metadata.AppVersion
}

// sameValues takes an empty map for none.
func sameValues(a, b map[string]any) bool {
	return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b)
}

// recover returns the deployed revision, nil when there is none. Records of
// operations that were killed half-way, and of failed ones, are removed: Helm
// would refuse to go on. Their objects stay and are taken over, because they
// carry the release's name; unfinished tells that there were any, so that the
// objects may not be those of the deployed revision.
func (r *chartRelease) recover(ctx context.Context) (deployed *release.Release, unfinished bool, err error) {
	history, err := r.history(ctx)
	if err != nil {
		return nil, false, err
	}
	deployed, stale := sortHistory(history)
	for _, s := range stale {
		r.log.Info("removing the record of an unfinished operation", "release", r.name, "revision", s.Version, "status", s.Info.Status)
		if _, err := r.config.Releases.Delete(r.name, s.Version); err != nil && !errors.Is(err, driver.ErrReleaseNotFound) {
			return nil, false, badRelease("remove a record of the Helm release "+r.name, err)
		}
	}
	return deployed, len(stale) > 0, nil
}

// history lists the records of the release; none when there is no release.
func (r *chartRelease) history(ctx context.Context) ([]*release.Release, error) {
	out, err := helm.History(ctx, r.client, r.config, r.name)
	if err != nil {
		return nil, badRelease("read the Helm release "+r.name, err)
	}
	return out, nil
}

// sortHistory finds the newest deployed revision and the records that are in the
// way: all that are newer, and all there are when none is deployed.
func sortHistory(history []*release.Release) (deployed *release.Release, stale []*release.Release) {
	for _, h := range history {
		if h.Info != nil && h.Info.Status == release.StatusDeployed && (deployed == nil || h.Version > deployed.Version) {
			deployed = h
		}
	}
	for _, h := range history {
		if deployed == nil || h.Version > deployed.Version {
			stale = append(stale, h)
		}
	}
	slices.SortFunc(stale, func(a, b *release.Release) int { return b.Version - a.Version })
	return deployed, stale
}

// drift lists the objects of the release that are not in the cluster, or not there as
// the release has them. One that cannot be tried out, because a webhook has side effects, is
// left as it is.
func (r *chartRelease) drift(ctx context.Context, objs []*unstructured.Unstructured) ([]string, error) {
	var out []string
	for _, o := range objs {
		found, err := r.client.Drift(ctx, []*unstructured.Unstructured{o}, kube.ApplyOptions{Force: true, Namespace: r.namespace})
		if kube.TakesNoDryRuns(err) {
			r.log.Warn("cannot be compared with the release", "object", o.GetKind()+"/"+o.GetName(), "error", err)
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, a := range found {
			out = append(out, a.Kind+"/"+a.Name+" would be "+string(a.Change))
		}
	}
	return out, nil
}

func (r *chartRelease) objects(ctx context.Context) ([]*unstructured.Unstructured, error) {
	rel, err := r.config.Releases.Deployed(r.name)
	if err != nil {
		return nil, badRelease("read the Helm release "+r.name, err)
	}
	objs, err := kube.Decode([]byte(rel.Manifest))
	if err != nil {
		return nil, badChart(r.name, err)
	}
	return objs, ctx.Err()
}

// serverSide is Helm's client with the objects of a chart applied as those of any other
// component. Helm's own patches merge lists by one key, so that a port as TCP and UDP never
// becomes what the chart has, and they leave what cannot be compared with the objects later.
// What the chart no longer has is deleted by the component's list: Helm would also delete what data
// goes with, and what others have by now. Helm makes what its hooks have.
type serverSide struct {
	*helmkube.Client
	apply func([]*unstructured.Unstructured) error
	hook  func([]*unstructured.Unstructured) error // completes what hooks make
	job   func(namespace, name string) error       // waits for a Job, and says what is wrong with its pods
}

// WatchUntilReady implements kube.Interface: it waits for what a hook has made. Helm itself would
// not say why a pod does not start.
func (s serverSide) WatchUntilReady(resources helmkube.ResourceList, timeout time.Duration) error {
	var others helmkube.ResourceList
	for _, i := range resources {
		if i.Mapping == nil || i.Mapping.GroupVersionKind.GroupKind() != batchJob {
			others = append(others, i)
			continue
		}
		if err := s.job(i.Namespace, i.Name); err != nil {
			return err
		}
	}
	if len(others) == 0 {
		return nil
	}
	return s.Client.WatchUntilReady(others, timeout)
}

//nolint:gochecknoglobals // a constant
var batchJob = schema.GroupKind{Group: "batch", Kind: "Job"}

// Create implements kube.Interface.
func (s serverSide) Create(resources helmkube.ResourceList) (*helmkube.Result, error) {
	if slices.ContainsFunc(resources, isHook) {
		if err := s.hook(objectsOf(slices.DeleteFunc(slices.Clone(resources), func(i *resource.Info) bool { return !isHook(i) }))); err != nil {
			return nil, err
		}
		return s.Client.Create(resources)
	}
	return &helmkube.Result{Created: resources}, s.apply(objectsOf(resources))
}

// Update implements kube.Interface. It never calls Helm's own, which would delete.
func (s serverSide) Update(_, target helmkube.ResourceList, _ bool) (*helmkube.Result, error) {
	return &helmkube.Result{Updated: target}, s.apply(objectsOf(target))
}

// UpdateThreeWayMerge implements kube.InterfaceThreeWayMerge.
func (s serverSide) UpdateThreeWayMerge(original, target helmkube.ResourceList, force bool) (*helmkube.Result, error) {
	return s.Update(original, target, force)
}

func isHook(i *resource.Info) bool {
	o, is := i.Object.(*unstructured.Unstructured)
	return is && o.GetAnnotations()[release.HookAnnotation] != ""
}

func objectsOf(resources helmkube.ResourceList) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, i := range resources {
		if o, is := i.Object.(*unstructured.Unstructured); is {
			out = append(out, o)
		}
	}
	return out
}
