package component

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/dryrun"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/render"
)

// CodeJob: a Job of the platform failed.
const CodeJob fault.Code = "CMP-001"

// workAnnotation is the annotation of a Job that holds the digest of what it does.
const workAnnotation = "slipway.sh/work"

// jobs applies the objects of a component of kind job, and waits for its Jobs. One that
// completed is not made again, even if it is gone, unless what it does has changed; one
// that failed is.
func (i *installer) jobs(ctx context.Context) ([]*unstructured.Unstructured, contract.Component, error) {
	objs, err := i.read(ctx)
	if err != nil {
		return nil, contract.Component{}, err
	}
	if err := i.prepare(ctx, objs, kube.Labels(i.env.Deployment)); err != nil {
		return nil, contract.Component{}, err
	}
	isJob := func(o *unstructured.Unstructured) bool { return o.GetKind() == "Job" }
	if !slices.ContainsFunc(objs, isJob) {
		return nil, contract.Component{}, i.badManifests(errors.New("its files hold no Job"))
	}
	if slices.ContainsFunc(objs, fleeting) {
		return nil, contract.Component{}, i.badManifests(i.isFleeting(ctx))
	}
	rest := slices.DeleteFunc(slices.Clone(objs), isJob)
	out, err := i.apply(ctx, rest)
	if err != nil {
		return nil, out, err
	}
	done, err := i.done(ctx)
	if err != nil {
		return nil, out, err
	}
	for _, o := range objs {
		if !isJob(o) {
			continue
		}
		out.Objects++
		made, err := i.work(ctx, o, done)
		if err != nil {
			return nil, out, err
		}
		if made {
			out.Changed++
		}
	}
	deleted, err := i.dropJobs(ctx, objs, done)
	out.Changed += len(deleted)
	if len(deleted) > 0 {
		i.env.Progress("deleted objects that the release no longer has: %s", strings.Join(deleted, ", "))
	}
	return nil, out, err
}

// dropJobs deletes the Jobs that the component made earlier and has no more, but for those
// that another component has now: these are not to be carried out again.
func (i *installer) dropJobs(ctx context.Context, objs []*unstructured.Unstructured, done map[string]string) (deleted []string, err error) {
	var dropped []string
	var members []kube.Member
	for _, key := range slices.Sorted(maps.Keys(done)) {
		m := kube.JobOf(key)
		if !slices.ContainsFunc(objs, func(o *unstructured.Unstructured) bool { return m.Same(kube.MemberOf(o)) }) {
			dropped, members = append(dropped, key), append(members, m)
		}
	}
	if len(dropped) == 0 {
		return nil, nil
	}
	others, err := i.othersJobs(ctx, members)
	if err != nil {
		return nil, err
	}
	for n, m := range members {
		if !slices.ContainsFunc(others, m.Same) {
			gone, err := i.client.DeleteOurs(ctx, m, i.env.Deployment, metav1.DeletePropagationBackground)
			if err != nil {
				return deleted, err
			}
			if gone {
				deleted = append(deleted, m.String())
			}
		}
		delete(done, dropped[n])
	}
	return deleted, i.remember(ctx, done)
}

// othersJobs is others with the Jobs that the other components of the release are to have:
// they may not have been installed yet.
func (i *installer) othersJobs(ctx context.Context, dropped []kube.Member) ([]kube.Member, error) {
	out, err := i.others(ctx, dropped)
	if err != nil {
		return nil, err
	}
	for _, c := range i.release.Components {
		if c.Kind != platform.Job || c.Name == i.component.Name {
			continue
		}
		objs, err := render.Manifests(ctx, i.release.Files(), os.DirFS(filepath.Join(i.env.BundleDir, "manifests")), c)
		if err == nil {
			err = i.client.Place(ctx, objs, c.Namespace)
		}
		if err != nil {
			return nil, err
		}
		for _, o := range objs {
			out = append(out, kube.MemberOf(o))
		}
	}
	return out, nil
}

// fleeting reports whether an object is a Job that is removed at the moment it ends: nobody
// would see that it has completed.
func fleeting(o *unstructured.Unstructured) bool {
	after, is, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "ttlSecondsAfterFinished")
	return o.GetKind() == "Job" && is && fmt.Sprint(after) == "0"
}

// isFleeting names the file with such a Job.
func (i *installer) isFleeting(ctx context.Context) error {
	sources, err := render.Sources(ctx, i.release.Files(), os.DirFS(filepath.Join(i.env.BundleDir, "manifests")), i.component)
	for _, s := range sources {
		if at := slices.IndexFunc(s.Objects, fleeting); at >= 0 {
			return fmt.Errorf("%s: the Job %s has ttlSecondsAfterFinished: 0, and is gone before anybody can see that it has completed", s.Name, s.Objects[at].GetName())
		}
	}
	return err
}

// work makes sure that a Job has completed. done maps Jobs to the digest of what they have
// done.
func (i *installer) work(ctx context.Context, o *unstructured.Unstructured, done map[string]string) (made bool, err error) {
	id := o.GetNamespace() + "/" + o.GetName()
	text, err := json.Marshal(o.Object)
	if err != nil {
		return false, i.badManifests(err)
	}
	sum := sha256.Sum256(text)
	digest := hex.EncodeToString(sum[:])
	o.SetAnnotations(merged(o.GetAnnotations(), map[string]string{workAnnotation: digest}))

	api := i.client.Kubernetes.BatchV1().Jobs(o.GetNamespace())
	live, err := kube.Retry(ctx, i.client, "get job "+id, func(ctx context.Context) (*batchv1.Job, error) {
		return api.Get(ctx, o.GetName(), metav1.GetOptions{})
	})
	there := err == nil
	if err != nil && !apierrors.IsNotFound(err) {
		return false, err
	}
	if !there && done[kube.JobKey(o)] == digest {
		return false, nil
	}
	if p, _ := dryrun.Previewing(ctx); p != nil {
		return previewJob(ctx, o, live, there, digest), nil
	}
	if there {
		_, failed := kube.JobEnd(live)
		if live.Annotations[workAnnotation] != digest || failed != "" || live.DeletionTimestamp != nil {
			if err := i.discard(ctx, live); err != nil {
				return false, err
			}
			there = false
		}
	}
	if !there {
		if _, noted := done[kube.JobKey(o)]; !noted { // for who removes it, whether it completes or not
			done[kube.JobKey(o)] = ""
			if err := i.remember(ctx, done); err != nil {
				return false, err
			}
		}
		if _, err := i.client.Apply(ctx, []*unstructured.Unstructured{o}, kube.ApplyOptions{Force: true}); err != nil {
			return false, err
		}
		made = true
		i.env.Progress("job %s was made", id)
	}
	if err := i.completed(ctx, o.GetNamespace(), o.GetName()); err != nil {
		return made, err
	}
	done[kube.JobKey(o)] = digest
	return made, i.remember(ctx, done)
}

// discard deletes a Job with its pods and waits until it is gone.
func (i *installer) discard(ctx context.Context, j *batchv1.Job) error {
	id := j.Namespace + "/" + j.Name
	if err := dryrun.Check(ctx, "delete job %s", id); err != nil {
		return err
	}
	i.env.Progress("job %s is made again", id)
	api := i.client.Kubernetes.BatchV1().Jobs(j.Namespace)
	propagation := metav1.DeletePropagationForeground
	err := i.client.Retry(ctx, "delete job "+id, func(ctx context.Context) error {
		return api.Delete(ctx, j.Name, metav1.DeleteOptions{PropagationPolicy: &propagation, Preconditions: metav1.NewUIDPreconditions(string(j.UID))})
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return i.client.WaitAbsent(ctx, "job "+id, func(ctx context.Context) (string, error) {
		_, err := api.Get(ctx, j.Name, metav1.GetOptions{})
		return "it is still being deleted", err
	})
}

// podsEvery is how often the pods of a Job are looked at while it runs.
const podsEvery = 2 * time.Second

// watched is what is seen of a Job while it runs.
type watched struct {
	kube.JobWatch
	why string // of its pods, also when these are gone
}

// watch begins to look at a Job.
func (i *installer) watch(namespace, name string) *watched {
	w := &watched{JobWatch: kube.JobWatch{Client: i.client, Namespace: namespace, Name: name, Every: podsEvery}}
	w.Pods = w.pods
	return w
}

// pods looks at what is wrong with the pods. That there are none any more says nothing
// against what was wrong with them.
func (w *watched) pods(ctx context.Context) string {
	why := w.Client.PodCause(ctx, w.Namespace, "job-name="+w.Name, w.Name)
	if w.why == "" || !strings.HasPrefix(why, kube.NoPods) {
		w.why = why
	}
	return w.why
}

// completed waits until a Job has completed. In a dry run it looks once.
func (i *installer) completed(ctx context.Context, namespace, name string) error {
	id := namespace + "/" + name
	w := i.watch(namespace, name)
	if dryrun.On(ctx) {
		ended, seen, err := w.Look(ctx)
		if err == nil && (!ended || w.Failure != "") {
			err = fmt.Errorf("job %s has not completed: %s", id, cmp.Or(w.Failure, seen))
		}
		return err
	}
	err := i.client.WaitFor(ctx, "job "+id+" to complete", kube.Poll, w.Look)
	if err == nil && w.Failure == "" {
		return nil
	}
	told := err != nil && w.why != "" // by the wait
	if err == nil {
		err = &fault.Fault{
			Code: CodeJob, Class: fault.Step, Op: "carry out job " + id, Err: errors.New(w.Failure),
			Fix: "correct the cause, then run the same command again; its log: slipway toolchain -- kubectl logs -n " + fault.Quote(namespace) + " " + fault.Quote("job/"+name),
		}
	}
	f, ok := errors.AsType[*fault.Fault](err)
	if !ok || told {
		return err
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
	defer cancel()
	if w.pods(limited) == "" {
		return err
	}
	with := *f
	with.Err = fmt.Errorf("%w: %s", f.Err, w.why)
	return &with
}

// lastLook is how long the last look at the pods of a Job may take.
const lastLook = 10 * time.Second

// done are the Jobs that were made, with the digests of what they did when they completed.
func (i *installer) done(ctx context.Context) (map[string]string, error) {
	out, err := i.client.Notes(ctx, kube.JobsOf(i.component.Name), "which jobs have completed")
	if out == nil {
		out = map[string]string{}
	}
	return out, err
}

// remember writes which Jobs were made, and which have completed.
func (i *installer) remember(ctx context.Context, done map[string]string) error {
	return i.client.KeepNotes(ctx, i.env.Deployment, kube.JobsOf(i.component.Name), done)
}
