package component

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/dryrun"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// previewJob tells whether a Job would be carried out, and why.
func previewJob(ctx context.Context, o *unstructured.Unstructured, live *batchv1.Job, there bool, digest string) bool {
	why := "it has not been carried out, or does something else now"
	if there {
		_, failed := kube.JobEnd(live)
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
	dryrun.Tell(ctx, contract.PlannedJob{Object: kube.MemberOf(o).String(), Why: why})
	return true
}
