package kube

import (
	"cmp"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
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
