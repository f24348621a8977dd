package tests

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
	"github.com/slipway-sh/slipway/stages/internal/render"
)

// jobs makes the trial's objects anew, waits until its Jobs have ended, and removes all objects.
func (t *trial) jobs(ctx context.Context) (names []string, err error) {
	objs, err := t.read(ctx)
	if err != nil {
		return nil, err
	}
	isJob := func(o *unstructured.Unstructured) bool { return o.GetKind() == "Job" }
	if !slices.ContainsFunc(objs, isJob) {
		return nil, t.unusable(fmt.Errorf("%s holds no Job", t.files.Path))
	}
	gone := remover{t.client, t.env, t.mark}
	if _, err := gone.remove(ctx); err != nil { // of a run that was killed
		return nil, err
	}
	members := make([]kube.Member, len(objs))
	for i, o := range objs {
		members[i] = kube.MemberOf(o)
	}
	// Before anything is made: a run that is killed must not leave what nobody knows of.
	if err := t.client.KeepMembers(ctx, t.env.Deployment, t.mark.list(), members); err != nil {
		return nil, err
	}
	defer func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeLimit)
		defer cancel()
		if _, failed := gone.remove(limited); failed != nil && err == nil {
			err = fmt.Errorf("remove what was made for it: %w", failed)
		} else if failed != nil {
			t.env.Progress("what was made for it could not be removed; the next run tries again: %v", failed)
		}
	}()
	all, rest := split(objs, isJob)
	if err := t.make(ctx, rest); err != nil {
		return nil, err
	}
	if _, err := readiness.WaitRollouts(ctx, t.client, rest); err != nil {
		return nil, err
	}
	if err := render.HideSecrets(ctx, t.client, all, t.env.Redact); err != nil {
		return nil, err
	}
	for _, o := range all {
		// Slipway removes it, once it has been seen to have ended.
		unstructured.RemoveNestedField(o.Object, "spec", "ttlSecondsAfterFinished")
	}
	if err := t.make(ctx, all); err != nil {
		return nil, err
	}
	return t.await(ctx, all, true)
}

func split(objs []*unstructured.Unstructured, is func(*unstructured.Unstructured) bool) (those, others []*unstructured.Unstructured) {
	for _, o := range objs {
		if is(o) {
			those = append(those, o)
		} else {
			others = append(others, o)
		}
	}
	return those, others
}

// await waits until all Jobs have ended. The error is about each that has not completed; with whole, also
// about each whose log, with its counts, could not be read to its end.
func (t *trial) await(ctx context.Context, jobs []*unstructured.Unstructured, whole bool) ([]string, error) {
	logs := newLogs(ctx, t.client, t.env.Output(), t.env.Count)
	defer logs.close()
	names, errs := make([]string, len(jobs)), make([]error, len(jobs))
	var wg sync.WaitGroup
	for i, o := range jobs {
		names[i] = o.GetNamespace() + "/" + o.GetName()
		wg.Go(func() {
			errs[i] = t.watch(logs, o.GetNamespace(), o.GetName()).ended(ctx, whole)
		})
	}
	t.env.Progress("waiting for %s", strings.Join(names, ", "))
	wg.Wait()
	return names, errors.Join(errs...)
}

// podsEvery is how often the pods of a Job are looked at while it runs.
const podsEvery = time.Second

// lastLook is how long the last look at the pods of a Job, and reading the rest of their
// logs, may take; wholeLog where what a Job counts is wanted.
const (
	lastLook = 10 * time.Second
	wholeLog = time.Minute
)

// watched is what is seen of a Job while it runs.
type watched struct {
	readiness.JobWatch
	trial *trial
	log   *jobLog
}

func (t *trial) watch(logs *logs, namespace, name string) *watched {
	w := &watched{JobWatch: readiness.JobWatch{Client: t.client, Namespace: namespace, Name: name, Every: podsEvery}, trial: t, log: logs.job()}
	w.Pods = func(ctx context.Context) { _ = w.follow(ctx) } // the next look lists them again
	return w
}

// ended waits until the Job has ended, and returns why it failed; with whole, also why the log
// of one that has completed was not read to its end.
func (w *watched) ended(ctx context.Context, whole bool) error {
	id := w.Namespace + "/" + w.Name
	err := w.Client.WaitFor(ctx, "job "+id+" to complete", kube.Poll, w.Look)
	completed := err == nil && w.Failure == ""
	within := lastLook
	if completed && whole {
		within = wholeLog
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	wrote, unread := w.rest(limited, completed && whole)
	switch {
	case completed && whole:
		return unread
	case completed:
		return nil
	case err == nil:
		err = w.failed("carry out the", fmt.Errorf("job %s: %s", id, w.Failure), "correct the cause")
	}
	f, ok := errors.AsType[*fault.Fault](err)
	if !ok {
		return err
	}
	with := *f
	if why := w.Cause(limited); why != "" && !strings.Contains(f.Err.Error(), why) {
		with.Err = fmt.Errorf("%w: %s", f.Err, why)
	} else if line := readiness.TellingLine(wrote); why == "" && line != "" {
		with.Err = errors.New(readiness.Wrote(f.Err.Error(), line))
	}
	if len(wrote) > 0 {
		with.Err = fmt.Errorf("%w\nits log ends with:\n  %s", with.Err, strings.Join(wrote, "\n  "))
	}
	return &with
}

func (w *watched) failed(op string, err error, fix string) error {
	return &fault.Fault{
		Code: CodeFailed, Class: fault.Step, Op: op + " " + w.trial.files.Name, Err: err, Fix: fix + ", then run it again: slipway test",
	}
}

// rest reads what is left of the logs, and returns their last lines; with whole, also why they
// could not be read to their end, which is tried until ctx ends.
func (w *watched) rest(ctx context.Context, whole bool) ([]string, error) {
	id := w.Namespace + "/" + w.Name
	var last error
	for {
		err := w.Client.Retry(ctx, "list the pods of job "+id, w.follow)
		wrote, unread := w.log.end(ctx)
		err = cmp.Or(err, unread)
		if err == nil || !whole {
			return wrote, nil
		}
		if last == nil || ctx.Err() == nil { // that the time is over says nothing of the log
			last = err
		}
		select {
		case <-time.After(podsEvery):
		case <-ctx.Done():
			return wrote, w.failed("read what was counted by the", fmt.Errorf("job %s has completed, but %w", id, last), "check that the cluster and its nodes answer")
		}
	}
}

// follow reads the logs of the pods that have begun.
func (w *watched) follow(ctx context.Context) error {
	all, err := w.Client.Kubernetes.CoreV1().Pods(w.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "job-name=" + w.Name})
	if err == nil {
		w.log.follow(all.Items)
	}
	return err
}
