package component

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// planJob tells whether a Job would be carried out, and why.
func (i *installer) planJob(o *unstructured.Unstructured, live *batchv1.Job, there bool, digest string) bool {
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
	i.client.Plan.Change("carry out %s", kube.MemberOf(o))
	i.client.Plan.Tell(contract.PlannedChange{Of: contract.PlanJobs, Action: contract.PlanRun, Name: kube.MemberOf(o).String(), Note: why})
	return true
}
