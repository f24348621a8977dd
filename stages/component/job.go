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
	"k8s.io/apimachinery/pkg/labels"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
	"github.com/slipway-sh/slipway/stages/internal/render"
)

// CodeJob: a Job of the platform failed.
const CodeJob fault.Code = "CMP-001"

// workAnnotation is the annotation of a Job that holds the digest of what it does.
const workAnnotation = "slipway.sh/work"

// jobs applies the objects of a component of kind job, and waits for its Jobs. A Job that completed
// is not made again, even if it is gone, unless what it does has changed; a failed Job is.
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
	all := slices.DeleteFunc(slices.Clone(objs), func(o *unstructured.Unstructured) bool { return !isJob(o) })
	for _, o := range all {
		if after, is, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "ttlSecondsAfterFinished"); is && fmt.Sprint(after) == "0" {
			return nil, contract.Component{}, i.badManifests(fmt.Errorf("the Job %s is gone before anybody can see that it has completed: remove its ttlSecondsAfterFinished: 0, or set it to 3600", o.GetName()))
		}
	}
	out, err := i.apply(ctx, slices.DeleteFunc(objs, isJob), all...)
	if err != nil {
		return nil, out, err
	}
	done, err := i.done(ctx, all)
	if err != nil {
		return nil, out, err
	}
	for _, o := range all {
		out.Objects++
		made, err := i.work(ctx, o, done)
		if err != nil {
			return nil, out, err
		}
		if made {
			out.Changed++
		}
	}
	return nil, out, nil
}

// othersJobs is others with the Jobs that the other components of the release are to have: these
// are not to be carried out again, and they may not have been installed yet.
func (i *installer) othersJobs(ctx context.Context) ([]kube.Member, error) {
	out, err := i.others(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range i.release.Components {
		if c.Kind != platform.Job || c.Name == i.component.Name {
			continue
		}
		objs, err := render.Manifests(ctx, i.release.Files(), os.DirFS(filepath.Join(i.env.BundleDir, "manifests")), c)
		if err == nil {
			err = i.client.SetNamespace(ctx, objs, c.Namespace)
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
	o.SetAnnotations(labels.Merge(o.GetAnnotations(), map[string]string{workAnnotation: digest}))

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
	if i.client.Plan != nil {
		if made = i.planJob(o, live, there, digest); made || i.client.Plan.Previews() {
			return made, nil
		}
	}
	if there {
		_, failed := readiness.JobEnd(live)
		if live.Annotations[workAnnotation] != digest || failed != "" || live.DeletionTimestamp != nil {
			if err := i.discard(ctx, live); err != nil {
				return false, err
			}
			there = false
		}
	}
	if !there {
		if _, err := i.client.Apply(ctx, []*unstructured.Unstructured{o}, kube.ApplyOptions{}); err != nil {
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

func (i *installer) discard(ctx context.Context, j *batchv1.Job) error {
	id := j.Namespace + "/" + j.Name
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

// completed waits until a Job has completed. For a plan it looks once.
func (i *installer) completed(ctx context.Context, namespace, name string) error {
	id := namespace + "/" + name
	w := &readiness.JobWatch{Client: i.client, Namespace: namespace, Name: name, Every: podsEvery}
	if i.client.Plan != nil {
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
	if err == nil {
		err = &fault.Fault{
			Code: CodeJob, Class: fault.Step, Op: "carry out job " + id, Err: errors.New(w.Failure),
			Fix: "correct the cause, then run the same command again; its log: slipway toolchain -- kubectl logs -n " + fault.Quote(namespace) + " " + fault.Quote("job/"+name),
		}
	}
	return kube.WithCause(ctx, err, func(ctx context.Context) string {
		if why := w.Cause(ctx); !strings.Contains(err.Error(), why) { // else the wait has told it
			return why
		}
		return ""
	})
}

// done are the digests of what those of all that have completed did, by kube.JobKey. Those of
// other Jobs are forgotten.
func (i *installer) done(ctx context.Context, all []*unstructured.Unstructured) (map[string]string, error) {
	out, err := i.client.Notes(ctx, "", kube.JobsOf(i.component.Name))
	if err != nil || len(out) == 0 {
		return map[string]string{}, err
	}
	known := len(out)
	maps.DeleteFunc(out, func(key, _ string) bool {
		return !slices.ContainsFunc(all, func(o *unstructured.Unstructured) bool { return kube.JobKey(o) == key })
	})
	if len(out) < known {
		err = i.remember(ctx, out)
	}
	return out, err
}

func (i *installer) remember(ctx context.Context, done map[string]string) error {
	return i.client.KeepNotes(ctx, i.env.Deployment, kube.JobsOf(i.component.Name), done)
}

func (i *installer) planJob(o *unstructured.Unstructured, live *batchv1.Job, there bool, digest string) bool {
	why := "it has not been carried out, or does something else now"
	if there {
		_, failed := readiness.JobEnd(live)
		switch {
		case live.Annotations[workAnnotation] != digest:
			why = "what it does has changed"
		case failed != "":
			why = "it has failed: " + failed
		case live.DeletionTimestamp != nil:
			why = "somebody is deleting it"
		default:
			return false
		}
	}
	i.client.Plan.Change("carry out %s", kube.MemberOf(o))
	i.client.Plan.Note(contract.PlannedChange{Of: contract.PlanJobs, Action: contract.PlanRun, Name: kube.MemberOf(o).String(), Note: why})
	return true
}
