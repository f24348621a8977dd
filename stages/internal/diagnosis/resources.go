package diagnosis

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
)

func (f *Facts) nodeFindings() []*finding {
	var out []*finding
	if f.Nodes != nil && len(f.Nodes) == 0 {
		return []*finding{{kind: kindNode, text: "the cluster has no node", failed: true}}
	}
	for _, n := range f.Nodes {
		for _, c := range n.Status.Conditions {
			why := ""
			switch {
			case c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue:
				why = "is not ready"
			case c.Status != corev1.ConditionTrue:
				continue
			case c.Type == corev1.NodeDiskPressure:
				why = "is short of disk space"
			case c.Type == corev1.NodeMemoryPressure:
				why = "is short of memory"
			case c.Type == corev1.NodePIDPressure:
				why = "has too many processes"
			case c.Type == corev1.NodeNetworkUnavailable:
				why = "has no network"
			default:
				continue
			}
			text := fmt.Sprintf("node %s %s", n.Name, why)
			if c.Message != "" {
				text += ": " + strings.TrimSuffix(c.Message, ".")
			}
			out = append(out, &finding{
				kind: kindNode, object: object{"Node", "", n.Name}, silent: true, text: text,
				since: c.LastTransitionTime.Time, failed: true,
			})
		}
	}
	return out
}

// claimFindings returns the claims without a volume.
func (f *Facts) claimFindings() []*finding {
	var out []*finding
	for i := range f.Claims {
		c := &f.Claims[i]
		if !f.within(c.Namespace) || c.DeletionTimestamp != nil || c.Status.Phase == corev1.ClaimBound {
			continue
		}
		x := &finding{
			kind: kindClaim, object: object{"PersistentVolumeClaim", c.Namespace, c.Name}, silent: true,
			since: c.CreationTimestamp.Time, failed: true,
		}
		x.text = "claim " + c.Name + " " + f.whyNoVolume(c)
		if strings.HasSuffix(x.text, pending) {
			x.kind, x.failed = kindBinding, false
		}
		out = append(out, x)
	}
	return out
}

// pending describes a claim that may just be waiting for its pod or its provisioner.
const pending = "has no volume yet"

func (f *Facts) whyNoVolume(c *corev1.PersistentVolumeClaim) string {
	if c.Status.Phase == corev1.ClaimLost {
		return "has lost its volume"
	}
	var warning *corev1.Event
	for i, e := range f.Events {
		o := e.InvolvedObject
		if o.Kind == "PersistentVolumeClaim" && o.Namespace == c.Namespace && o.Name == c.Name && e.Type == corev1.EventTypeWarning &&
			(warning == nil || readiness.LastSeen(e).After(readiness.LastSeen(*warning))) {
			warning = &f.Events[i]
		}
	}
	class := c.Spec.StorageClassName
	switch {
	case f.Classes != nil && class == nil && !slices.ContainsFunc(f.Classes, isDefault):
		return "names no storage class, and the cluster has no default one"
	case f.Classes != nil && class != nil && *class != "" && c.Spec.VolumeName == "" &&
		!slices.ContainsFunc(f.Classes, func(s storagev1.StorageClass) bool { return s.Name == *class }):
		return "names the storage class " + *class + ", which the cluster does not have"
	case class != nil && *class == "" && c.Spec.VolumeName == "":
		return "asks for no storage class, and there is no volume for it"
	case warning != nil:
		return "gets no volume: " + readiness.OneLine(warning.Message)
	}
	return pending
}

func isDefault(c storagev1.StorageClass) bool {
	return c.Annotations[kube.DefaultClass] == "true"
}

func (f *Facts) jobFindings() []*finding {
	var out []*finding
	for i := range f.Jobs {
		j := &f.Jobs[i]
		c := jobIs(j, batchv1.JobFailed)
		if c == nil || !f.within(j.Namespace) {
			continue
		}
		o := object{"Job", j.Namespace, j.Name}
		text := f.jobName(o)
		if why := cmp.Or(c.Message, c.Reason); why != "" {
			text += ": " + why
		}
		out = append(out, &finding{
			kind: kindJob, object: o, owner: o, silent: true, text: text, since: c.LastTransitionTime.Time, failed: true,
		})
	}
	return out
}

// jobIs returns the condition of a Job if its status is true, else nil.
func jobIs(j *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i, c := range j.Status.Conditions {
		if c.Type == kind && c.Status == corev1.ConditionTrue {
			return &j.Status.Conditions[i]
		}
	}
	return nil
}

func (f *Facts) job(o object) *batchv1.Job {
	for i := range f.Jobs {
		if j := &f.Jobs[i]; j.Namespace == o.namespace && j.Name == o.name {
			return j
		}
	}
	return nil
}

// jobName describes a Job that failed or fails, and whether it is a hook.
func (f *Facts) jobName(o object) string {
	name := "Job " + o.name
	for _, a := range f.Apps {
		for _, r := range slices.Concat(a.Operation.Failed, a.Operation.Running) {
			if r.Hook && r.Kind == "Job" && r.Name == o.name && cmp.Or(r.Namespace, a.Destination) == o.namespace {
				name = "hook Job " + o.name
			}
		}
	}
	if j := f.job(o); j == nil || jobIs(j, batchv1.JobFailed) != nil {
		return name + " failed"
	}
	return name + " fails"
}

// maxOfKind limits the problems of one kind that an app contributes, as every object of
// an app may be out of sync.
const maxOfKind = 3

// waitsForApp matches Argo CD's message about the app that a sync waits for.
var waitsForApp = regexp.MustCompile(`argoproj\.io/Application/([a-z0-9.-]+)`)

// appFindings returns the problems that Argo CD reports for Applications that are not
// done.
func (f *Facts) appFindings() []*finding {
	var out []*finding
	for _, a := range f.Apps {
		if a.Waiting("") == "" {
			continue
		}
		n := map[argo.ProblemKind]int{}
		for _, p := range a.Problems() {
			switch n[p.Kind]++; {
			case n[p.Kind] > maxOfKind,
				p.Kind == argo.SyncFailed && n[argo.NotApplied]+n[argo.HookFailed] > 0, // only a summary of those
				p.Kind == argo.Differs && len(n) > 1:
				continue
			}
			x := &finding{
				kind: string(p.Kind), app: a.Name, silent: true, since: p.Since, failed: p.Failed,
				object: object{"Application", a.Namespace, a.Name},
			}
			if p.Object.Name != "" {
				x.object = object{p.Object.Kind, cmp.Or(p.Object.Namespace, a.Destination), p.Object.Name}
				x.owner = x.object
			}
			if p.Object.Kind == "Application" {
				x.child = p.Object.Name
			} else if m := waitsForApp.FindStringSubmatch(p.Text); m != nil && p.Kind == argo.Waits {
				x.child = m[1]
			}
			if p.Kind == argo.NotApplied || p.Kind == argo.SyncFailed {
				r := readiness.ReadRefusal(p.Text)
				if p.Text = r.Text; r.Service != "" {
					x.service = &r
				}
			}
			x.text = p.String()
			if pod := f.running(x.object); p.Kind == argo.HookRuns && pod != nil {
				x.pod, x.trouble, x.log = pod, readiness.Trouble{Container: pod.Spec.Containers[0].Name}, f.logOf(pod)
				x.text = readiness.Wrote(x.text, readiness.TellingLine(x.log))
			}
			out = append(out, x)
		}
	}
	return out
}

// running returns a running pod of a Job; nil if there is none.
func (f *Facts) running(job object) *corev1.Pod {
	for i := range f.Pods {
		p := &f.Pods[i]
		kind, name := readiness.Owner(p)
		if p.Status.Phase == corev1.PodRunning && len(p.Spec.Containers) > 0 && (object{kind, p.Namespace, name}) == job {
			return p
		}
	}
	return nil
}
