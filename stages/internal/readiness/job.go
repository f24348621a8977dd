package readiness

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// JobEnd tells whether a Job completed, or why it failed.
func JobEnd(j *batchv1.Job) (done bool, failed string) {
	for _, c := range j.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case batchv1.JobComplete:
			return true, ""
		case batchv1.JobFailed:
			return false, cmp.Or(strings.TrimSpace(c.Reason+" "+c.Message), "it failed")
		}
	}
	return false, ""
}

// JobWatch looks at a Job until it has ended.
type JobWatch struct {
	Client          *kube.Client
	Namespace, Name string
	Every           time.Duration         // how often its pods are looked at; the first time after as long
	Pods            func(context.Context) // is called before that; may be nil
	Failure         string                // why it failed: "BackoffLimitExceeded …"; empty: it has not, or not yet

	uid    types.UID // empty until it has been seen
	looked time.Time
	why    string
}

// Look tells whether the Job has ended, and what is seen of it. It is for Client.WaitFor.
func (w *JobWatch) Look(ctx context.Context) (ended bool, seen string, err error) {
	j, err := w.Client.Kubernetes.BatchV1().Jobs(w.Namespace).Get(ctx, w.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && w.uid != "" && w.uid != j.UID:
		w.Failure = "it is gone, and nobody has seen it complete: somebody has deleted it, or its ttlSecondsAfterFinished is too short"
		return true, "", nil
	case err != nil:
		return false, "", err
	}
	w.uid = j.UID
	done, failure := JobEnd(j)
	if w.Failure = failure; done || failure != "" {
		return true, "", nil
	}
	if w.looked.IsZero() {
		w.looked = time.Now()
	}
	if time.Since(w.looked) >= w.Every {
		if w.looked = time.Now(); w.Pods != nil {
			w.Pods(ctx)
		}
		w.Cause(ctx)
	}
	seen = fmt.Sprintf("%d active, %d failed", j.Status.Active, j.Status.Failed)
	if w.why != "" {
		seen += ": " + w.why
	}
	return false, seen, nil
}

// Cause says what is wrong with the Job's pods. That there are none any more says nothing against
// what was wrong with them.
func (w *JobWatch) Cause(ctx context.Context) string {
	if why := PodCause(ctx, w.Client, w.Namespace, "job-name="+w.Name, w.Name); w.why == "" || !strings.HasPrefix(why, NoPods) {
		w.why = why
	}
	return w.why
}
