package component

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/dryrun"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// CodeJob: a Job of the platform failed.
const CodeJob fault.Code = "CMP-001"

// workAnnotation is the annotation of a Job that holds the digest of what it does.
const workAnnotation = "slipway.sh/work"

// jobs applies the objects of a component of kind job, and waits for its Jobs. One that
// completed is not made again, even if it is gone, unless what it does has changed; one
// that failed is.
func (i *installer) jobs(ctx context.Context) ([]*unstructured.Unstructured, contract.Component, error) {
	objs, err := i.read()
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
	return nil, out, nil
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

// completed waits until a Job has completed. In a dry run it looks once.
func (i *installer) completed(ctx context.Context, namespace, name string) error {
	id := namespace + "/" + name
	// The pods of a Job that has failed may be gone, and what was wrong with them.
	var failure, why string
	looked := time.Now()
	cause := func(ctx context.Context) {
		if seen := i.client.PodCause(ctx, namespace, "job-name="+name, name); why == "" || seen != "" && seen != kube.NoPods {
			why = seen
		}
	}
	look := func(ctx context.Context) (bool, string, error) {
		j, err := i.client.Kubernetes.BatchV1().Jobs(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		done, failed := kube.JobEnd(j)
		failure = failed
		seen := fmt.Sprintf("%d active, %d failed", j.Status.Active, j.Status.Failed)
		if !done && failed == "" && !dryrun.On(ctx) && time.Since(looked) >= podsEvery {
			cause(ctx)
			looked = time.Now()
		}
		if why != "" {
			seen += ": " + why
		}
		return done || failed != "", seen, nil
	}
	var err error
	if dryrun.On(ctx) {
		done, seen, lookErr := look(ctx)
		if err = lookErr; err == nil && !done {
			err = fmt.Errorf("job %s has not completed: %s", id, seen)
		}
	} else {
		err = i.client.WaitFor(ctx, "job "+id+" to complete", kube.Poll, look)
	}
	if err == nil && failure == "" {
		return nil
	}
	if err == nil {
		err = &fault.Fault{
			Code: CodeJob, Class: fault.Step, Op: "carry out job " + id, Err: errors.New(failure),
			Fix: "correct the cause, then run again: slipway install; its log: kubectl logs -n " + namespace + " job/" + name,
		}
	}
	told := why
	cause(context.WithoutCancel(ctx))
	if f, ok := errors.AsType[*fault.Fault](err); ok && why != "" && (failure != "" || why != told) {
		with := *f
		with.Err = fmt.Errorf("%w: %s", f.Err, why)
		return &with
	}
	return err
}

// done are the Jobs that have completed, with the digests of what they did.
func (i *installer) done(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	err := i.client.Retry(ctx, "read which jobs have completed", func(ctx context.Context) error {
		o, err := i.client.Kubernetes.CoreV1().ConfigMaps(kube.SystemNamespace).Get(ctx, kube.JobsOf(i.component.Name), metav1.GetOptions{})
		for k, v := range o.Data {
			out[k] = v
		}
		return err
	})
	if apierrors.IsNotFound(err) {
		return out, nil
	}
	return out, err
}

// remember writes which Jobs have completed.
func (i *installer) remember(ctx context.Context, done map[string]string) error {
	data := map[string]any{}
	for k, v := range done {
		data[k] = v
	}
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": kube.JobsOf(i.component.Name), "namespace": kube.SystemNamespace},
		"data":     data,
	}}
	o.SetLabels(kube.Labels(i.env.Deployment))
	_, err := i.client.Apply(ctx, []*unstructured.Unstructured{o}, kube.ApplyOptions{Force: true})
	return err
}
