// Package readiness says whether pods, workloads, Jobs, Services and nodes are ready and, in one
// sentence, why not; and waits for them.
package readiness

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// PodCause says in one sentence why the pods of selector in namespace are not
// ready: "image docker.io/x:1 not found (REG-007), pod web-0, since 14:02 UTC". "" when
// nothing is wrong or cannot be found out. workload is the name of the Deployment, Job or
// other workload that makes them; empty: it is not known.
func PodCause(ctx context.Context, c *kube.Client, namespace, selector, workload string) string {
	pods, err := c.Kubernetes.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return ""
	}
	events := events(ctx, c, namespace)
	if len(pods.Items) == 0 {
		return noPod(events, workload)
	}
	return worst(ctx, c, CurrentPods(pods.Items), events)
}

// Warning is what Kubernetes, or a controller, warned of last about an object, whose namespace
// may be empty: "FailedMount: no such secret, since 14:02 UTC". "" when there is none, or it
// cannot be read.
func Warning(ctx context.Context, c *kube.Client, kind schema.GroupKind, namespace, name string) string {
	events := slices.DeleteFunc(events(ctx, c, cmp.Or(namespace, metav1.NamespaceDefault)), func(e corev1.Event) bool {
		of := e.InvolvedObject
		same := schema.FromAPIVersionAndKind(of.APIVersion, of.Kind).GroupKind() == kind || of.APIVersion == "" && of.Kind == kind.Kind
		return e.Type != corev1.EventTypeWarning || !same || of.Name != name
	})
	if len(events) == 0 {
		return ""
	}
	e := slices.MaxFunc(events, func(a, b corev1.Event) int { return LastSeen(a).Compare(LastSeen(b)) })
	return redact.External(Sentence(e.Reason+": "+flat(e.Message), "", FirstSeen(e), time.Now()))
}

// events returns the events of a namespace, nil if they cannot be read: most pods show
// their cause without them.
func events(ctx context.Context, c *kube.Client, namespace string) []corev1.Event {
	list, err := c.Kubernetes.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	return list.Items
}

// worst describes the most telling trouble of the pods, "" if they have none.
func worst(ctx context.Context, c *kube.Client, pods []corev1.Pod, events []corev1.Event) string {
	var worst *corev1.Pod
	var trouble Trouble
	for _, p := range pods {
		if t, ok := PodTrouble(&p, events); ok && (worst == nil || t.Kind.Order() < trouble.Kind.Order()) {
			worst, trouble = &p, t
		}
	}
	if worst == nil {
		return ""
	}
	wrote := ""
	if trouble.Kind == TroubleCrash {
		// Without it there is still the exit code.
		lines, _ := LastLines(ctx, c, worst, trouble, tellingLines)
		wrote = TellingLine(lines)
	}
	return redact.External(Sentence(Wrote(trouble.Text, wrote), "pod "+worst.Name, trouble.Since, time.Now()))
}

// NoPods is the cause where there is no pod, and how it begins where it is known why.
const NoPods = "there is no pod"

func noPod(events []corev1.Event, workload string) string {
	events = slices.DeleteFunc(slices.Clone(events), func(e corev1.Event) bool {
		of := e.InvolvedObject
		name := of.Name
		if i := strings.LastIndexByte(name, '-'); of.Kind == "ReplicaSet" && i > 0 {
			name = name[:i] // of its Deployment
		}
		return e.Reason != "FailedCreate" || workload != "" && workload != name && workload != of.Name
	})
	if len(events) == 0 {
		return NoPods
	}
	e := slices.MaxFunc(events, func(a, b corev1.Event) int { return LastSeen(a).Compare(LastSeen(b)) })
	return redact.External(Sentence(NoPods+": "+ReadRefusal(e.Message).Text, "", FirstSeen(e), time.Now()))
}

// Sentence is the form of every cause: "text, object, since 14:02
// UTC". What is not known is left out; what began on another day has its date.
func Sentence(text, object string, since, now time.Time) string {
	if object != "" {
		text += ", " + object
	}
	if since.IsZero() {
		return text
	}
	since, now = since.UTC(), now.UTC()
	form := "15:04"
	if since.Format(time.DateOnly) != now.Format(time.DateOnly) {
		form = "2006-01-02 15:04"
	}
	return text + ", since " + since.Format(form) + " UTC"
}

// Wrote adds a line of a container's log to text; "" adds none.
func Wrote(text, line string) string {
	if line == "" {
		return text
	}
	return text + `, it wrote "` + Short(line, 200) + `"`
}

// tellingLines is how many lines of a log are looked at for a telling one.
const tellingLines = 20

// loud matches log lines that say why a program ended; quiet matches those that follow
// them in a stack trace.
var (
	loud  = regexp.MustCompile(`(?i)panic|fatal|error|exception|fail|cannot|can't|could not|unable|refused|denied|no such|not found|missing|invalid|unknown|timeout|timed out|required`)
	quiet = regexp.MustCompile(`^(\s+(at|File) |\s+/|goroutine \d+|\[signal |exit status \d+|\S+\(.*\)$|Traceback )`)
)

// TellingLine is the last line of a log that mentions an error, else its last line; "" when there
// is none.
func TellingLine(lines []string) string {
	last := ""
	for _, line := range slices.Backward(lines) {
		if strings.TrimSpace(line) == "" || quiet.MatchString(line) {
			continue
		}
		last = cmp.Or(last, flat(line))
		if loud.MatchString(line) {
			return flat(line)
		}
	}
	return last
}

// CurrentPods are the pods that count, newest first: of each workload, those of the
// template that its newest pod has, and none that has failed for good and been replaced.
func CurrentPods(pods []corev1.Pod) []corev1.Pod {
	type workload struct{ namespace, kind, name string }
	of := func(p *corev1.Pod) workload {
		kind, name := Owner(p)
		return workload{p.Namespace, kind, name}
	}
	pods = slices.Clone(pods)
	slices.SortFunc(pods, func(a, b corev1.Pod) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	newest := map[workload]*corev1.Pod{}
	var out []corev1.Pod
	for i := range pods {
		p := &pods[i]
		n := newest[of(p)]
		if n == nil {
			newest[of(p)] = p
		} else if template(p) != template(n) || p.Status.Phase == corev1.PodFailed {
			continue
		}
		out = append(out, *p)
	}
	return out
}

// Owner is the workload that p is of, "Deployment" and "web"; p itself when
// nobody controls it.
func Owner(p *corev1.Pod) (kind, name string) {
	o := metav1.GetControllerOf(p)
	if o == nil {
		return "Pod", p.Name
	}
	if hash := p.Labels["pod-template-hash"]; o.Kind == "ReplicaSet" && hash != "" {
		if deployment, ok := strings.CutSuffix(o.Name, "-"+hash); ok {
			return "Deployment", deployment
		}
	}
	return o.Kind, o.Name
}

// template identifies the template that p was made from.
func template(p *corev1.Pod) string {
	return cmp.Or(p.Labels["pod-template-hash"], p.Labels["controller-revision-hash"])
}

// FirstSeen is when an event happened first.
func FirstSeen(e corev1.Event) time.Time {
	if !e.FirstTimestamp.IsZero() {
		return e.FirstTimestamp.Time
	}
	return e.EventTime.Time
}

// LastSeen is when an event happened last.
func LastSeen(e corev1.Event) time.Time {
	at := e.LastTimestamp.Time
	if e.EventTime.After(at) {
		at = e.EventTime.Time
	}
	if e.Series != nil && e.Series.LastObservedTime.After(at) {
		at = e.Series.LastObservedTime.Time
	}
	return at
}
