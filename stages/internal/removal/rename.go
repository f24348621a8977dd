package removal

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/dryrun"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// Renaming is a component that has another name in a release than the cluster knows it by.
type Renaming struct{ From, To string }

// Renames are the components that have another name in a release: those that it says of, and,
// where an earlier one goes on again, those that a later one had renamed.
func Renames(r *platform.Release, known Record) []Renaming {
	var out []Renaming
	for _, c := range r.Components {
		if c.RenamedFrom != "" {
			out = append(out, Renaming{From: c.RenamedFrom, To: c.Name})
		}
	}
	for _, later := range slices.Sorted(maps.Keys(known.Renamed)) {
		earlier := known.Renamed[later]
		_, has := r.Component(later)
		if _, is := r.Component(earlier); is && !has {
			out = append(out, Renaming{From: later, To: earlier})
		}
	}
	return out
}

// MoveLists has the lists of what was made for components go on under the components' present
// names: their objects are theirs, and the Jobs that have completed have.
func MoveLists(ctx context.Context, c *kube.Client, deployment string, renames []Renaming) error {
	for _, p := range renames {
		if err := moveObjects(ctx, c, deployment, kube.ObjectsOf(p.From), kube.ObjectsOf(p.To)); err != nil {
			return err
		}
		if err := moveJobs(ctx, c, deployment, kube.JobsOf(p.From), kube.JobsOf(p.To)); err != nil {
			return err
		}
	}
	return nil
}

func moveObjects(ctx context.Context, c *kube.Client, deployment, from, to string) error {
	all, err := c.Members(ctx, from)
	if err != nil || len(all) == 0 {
		return err
	}
	there, err := c.Members(ctx, to)
	if err != nil {
		return err
	}
	for _, m := range there {
		if !slices.ContainsFunc(all, m.Same) {
			all = append(all, m)
		}
	}
	if err := c.KeepMembers(ctx, deployment, to, all); err != nil {
		return err
	}
	return drop(ctx, c, deployment, from)
}

func moveJobs(ctx context.Context, c *kube.Client, deployment, from, to string) error {
	const what = "which jobs have completed"
	done, err := c.Notes(ctx, from, what)
	if err != nil || len(done) == 0 {
		return err
	}
	there, err := c.Notes(ctx, to, what)
	if err != nil {
		return err
	}
	maps.Copy(done, there)
	if err := c.KeepNotes(ctx, deployment, to, done); err != nil {
		return err
	}
	return drop(ctx, c, deployment, from)
}

// drop deletes a list.
func drop(ctx context.Context, c *kube.Client, deployment, name string) error {
	m := kube.Member{Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: kube.SystemNamespace, Name: name}
	_, err := c.DeleteOurs(ctx, m, deployment, metav1.DeletePropagationBackground)
	return err
}

// Former is the Application that has an adopted component under a former name: the one of the
// deployment's whose Helm release is the component's. It is nil if there is none.
func Former(ctx context.Context, c *kube.Client, deployment, namespace string, component platform.Component) (*unstructured.Unstructured, error) {
	all, err := c.List(ctx, argo.Applications(), namespace, kube.DeploymentLabel+"="+deployment)
	if err != nil {
		return nil, err
	}
	for i := range all {
		o := &all[i]
		release, _, _ := unstructured.NestedString(o.Object, "spec", "source", "helm", "releaseName")
		in, _, _ := unstructured.NestedString(o.Object, "spec", "destination", "namespace")
		if o.GetLabels()[kube.AdoptedLabel] != "" && o.GetName() != component.Name && release == component.HelmRelease() && in == component.Namespace {
			return o, nil
		}
	}
	return nil, nil
}

// Hold has Argo CD sync an Application no more by itself, until it is applied again.
func Hold(ctx context.Context, c *kube.Client, namespace, name string) error {
	return c.Patch(ctx, "hold the Application "+name, argo.Applications(), namespace, name, []byte(`{"spec":{"syncPolicy":{"automated":null}}}`))
}

// CodeLeaving: an Application that is to be renamed is being deleted.
const CodeLeaving fault.Code = "PLT-030"

// orphanLimit is how long an Application may take to go.
const orphanLimit = time.Minute

// Succeed removes an Application and nothing of what it has brought: that is marked as what
// the Application of another name has, which need not be there yet. So that one also removes
// what it has no more.
func Succeed(ctx context.Context, c *kube.Client, namespace, name, by string) error {
	what := "the Application " + namespace + "/" + name
	if err := dryrun.Check(ctx, "remove %s, and leave what it brought", what); err != nil {
		return err
	}
	if err := Hold(ctx, c, namespace, name); err != nil {
		return err
	}
	if err := mark(ctx, c, namespace, name, by); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, orphanLimit)
	defer cancel()
	api := c.Dynamic.Resource(argo.Applications()).Namespace(namespace)
	return c.WaitAbsent(limited, what, func(ctx context.Context) (string, error) {
		o, err := api.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		if o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) > 0 {
			return "", &fault.Fault{
				Code: CodeLeaving, Class: fault.Step, Op: "rename " + what, Err: errors.New("it is being deleted already, with what it brought"),
				Fix: "wait until it is gone, then run the same command again: what it brought is made anew, on the volumes that stay",
			}
		}
		if len(o.GetFinalizers()) > 0 {
			return "it has the finalizer that takes along what it brought", c.Patch(ctx, "keep what "+name+" brought", argo.Applications(), namespace, name, []byte(`{"metadata":{"finalizers":null}}`))
		}
		// As it was seen, and in no other state: whoever gives it a finalizer again comes first.
		uid, version := o.GetUID(), o.GetResourceVersion()
		err = api.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return "", err
		}
		return "it is still there", nil
	})
}

// mark marks what an Application has brought as another one's.
func mark(ctx context.Context, c *kube.Client, namespace, name, by string) error {
	app, err := c.Live(ctx, argo.Member(namespace, name))
	if err != nil || app == nil {
		return err
	}
	found, err := c.List(ctx, argo.AppProjects(), namespace, "")
	if err != nil {
		return err
	}
	projects := argo.Projects{}
	projects.Add(found)
	for _, r := range listed(app, "status", "resources") {
		text := func(field string) string { s, _ := r[field].(string); return s }
		m := kube.Member{Kind: schema.GroupVersionKind{Group: text("group"), Version: text("version"), Kind: text("kind")}, Namespace: text("namespace"), Name: text("name")}
		live, err := c.Live(ctx, m)
		if err != nil {
			return err
		}
		if live == nil || !projects.Permit(app, live) { // another Argo CD may have an Application of that name
			continue
		}
		if err := c.Track(ctx, m, name, by); err != nil {
			return err
		}
	}
	return nil
}

// settled is for how long nothing may begin before an Application counts as still.
const settled = 3 * time.Second

// Settle waits until Argo CD syncs an Application no more that is held: what it had begun is
// ended.
func Settle(ctx context.Context, c *kube.Client, namespace, name string) error {
	limited, cancel := context.WithTimeout(ctx, 2*orphanLimit)
	defer cancel()
	var since time.Time
	ended := ""
	return c.WaitFor(limited, "the sync of the Application "+name+" to end", kube.Poll, func(ctx context.Context) (bool, string, error) {
		o, err := c.Dynamic.Resource(argo.Applications()).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, "", nil
		} else if err != nil {
			return false, "", err
		}
		app, err := argo.Read(o)
		if err != nil {
			return false, "", err
		}
		op := app.Operation
		if op.Pending || op.Phase == "Running" || op.Phase == "Terminating" {
			since = time.Time{}
			if op.Phase == "Running" && op.Started != ended {
				ended = op.Started
				return false, "it is told to end", c.Patch(ctx, "end the sync of "+name, argo.Applications(), namespace, name, argo.Terminate())
			}
			return false, "it is still " + op.Phase, nil
		}
		if since.IsZero() {
			since = time.Now()
		}
		return time.Since(since) >= settled, "none has begun for a moment", nil
	})
}
