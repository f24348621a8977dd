package suites

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
	"github.com/slipway-sh/slipway/stages/internal/render"
)

// jobs makes the trial's objects anew, waits until its Jobs have ended, and removes all of
// them, whatever came of it.
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
	if _, err := t.client.WaitRollouts(ctx, rest); err != nil {
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

// split takes objects apart.
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

// await waits until all Jobs have ended, and returns those that have completed. The error
// is about every one that has not; with whole, also about those whose log could not be read to
// its end, where counts are.
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
// logs, may take.
const lastLook = 10 * time.Second

// wholeLog is lastLook where the whole log of a Job that has completed is wanted.
const wholeLog = time.Minute

// watched is what is seen of a Job while it runs.
type watched struct {
	kube.JobWatch
	trial *trial
	logs  *logs
	why   string // what is wrong with its pods
	blind error  // the pods could not be listed
}

// watch begins to look at a Job.
func (t *trial) watch(logs *logs, namespace, name string) *watched {
	w := &watched{JobWatch: kube.JobWatch{Client: t.client, Namespace: namespace, Name: name, Every: podsEvery}, trial: t, logs: logs}
	w.Pods = w.pods
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
	if completed {
		return unread
	}
	if err == nil {
		err = &fault.Fault{
			Code: CodeFailed, Class: fault.Step, Op: "carry out the " + w.trial.files.Name, Err: fmt.Errorf("job %s: %s", id, w.Failure),
			Fix: "correct the cause, then run it again: slipway test",
		}
	}
	f, ok := errors.AsType[*fault.Fault](err)
	if !ok {
		return err
	}
	with := *f
	if w.why != "" && !strings.Contains(f.Err.Error(), w.why) {
		with.Err = fmt.Errorf("%w: %s", f.Err, w.why)
	} else if line := kube.TellingLine(wrote); w.why == "" && line != "" {
		with.Err = errors.New(kube.Wrote(f.Err.Error(), line))
	}
	if len(wrote) > 0 {
		with.Err = fmt.Errorf("%w\nits log ends with:\n  %s", with.Err, strings.Join(wrote, "\n  "))
	}
	return &with
}

// rest reads what is left of the logs, and returns their last lines; with whole, also why they
// could not be read to their end, which is tried until ctx ends.
func (w *watched) rest(ctx context.Context, whole bool) ([]string, error) {
	id := w.Namespace + "/" + w.Name
	var unread error
	for {
		_ = w.pods(ctx)
		wrote, err := w.logs.end(ctx, id)
		err = cmp.Or(w.blind, err)
		if err == nil || !whole {
			return wrote, nil
		}
		if unread == nil || ctx.Err() == nil { // that the time is over says nothing of the log
			unread = err
		}
		select {
		case <-time.After(podsEvery):
		case <-ctx.Done():
		}
		if ctx.Err() == nil {
			continue
		}
		return wrote, &fault.Fault{
			Code: CodeFailed, Class: fault.Step, Op: "read what the " + w.trial.files.Name + " has counted", Err: fmt.Errorf("job %s has completed, but %w", id, unread),
			Fix: "check that the cluster and its nodes answer, then run it again: slipway test",
		}
	}
}

// pods looks at what is wrong with the pods, and reads the logs of those that have begun.
// That there are none any more says nothing against what was wrong with them.
func (w *watched) pods(ctx context.Context) string {
	selector := "job-name=" + w.Name
	all, err := w.Client.Kubernetes.CoreV1().Pods(w.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if w.blind = err; err == nil {
		w.logs.follow(w.Namespace+"/"+w.Name, all.Items)
	}
	why := w.Client.PodCause(ctx, w.Namespace, selector, w.Name)
	if w.why == "" || why != "" && !strings.HasPrefix(why, kube.NoPods) {
		w.why = why
	}
	return w.why
}
