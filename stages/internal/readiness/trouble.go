package readiness

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TroubleKind classifies what keeps a pod from being ready.
type TroubleKind string

// The kinds, most telling first: if a pod has two, the earlier one is the cause.
const (
	TroubleImage    TroubleKind = "image"         // an image cannot be pulled
	TroubleConfig   TroubleKind = "config"        // a container cannot be created: a Secret or its command is missing
	TroubleMemory   TroubleKind = "memory"        // killed for using more than its limit
	TroubleCrash    TroubleKind = "crash"         // a container ends with an error
	TroubleEvicted  TroubleKind = "evicted"       // the node evicted it
	TroubleNetwork  TroubleKind = "network"       // the pod gets no network
	TroubleVolume   TroubleKind = "volume"        // a volume cannot be mounted
	TroubleSchedule TroubleKind = "unschedulable" // no node accepts it
	TroubleProbe    TroubleKind = "probe"         // it runs and a probe fails
	TroubleUnready  TroubleKind = "unready"       // it runs and is not ready, without a known reason
	TroubleStarting TroubleKind = "starting"      // it may just be slow
)

// TroubleKinds are all kinds in their order.
func TroubleKinds() []TroubleKind {
	return []TroubleKind{
		TroubleImage, TroubleConfig, TroubleMemory, TroubleCrash, TroubleEvicted, TroubleNetwork,
		TroubleVolume, TroubleSchedule, TroubleProbe, TroubleUnready, TroubleStarting,
	}
}

// Failed reports whether something went wrong, rather than is slow.
func (k TroubleKind) Failed() bool { return k != TroubleStarting && k != TroubleUnready }

// Trouble is what keeps a pod from being ready.
type Trouble struct {
	Kind      TroubleKind
	Text      string    // one line, without the pod's name: "image docker.io/x:1 not found"
	Since     time.Time // when it began
	Container string    // whose log may say more; empty for none
	Previous  bool      // read the log of the container's previous run
}

// PodTrouble returns what keeps p from being ready, from its status and its events. events
// may be incomplete and may be about other objects too. The result is false if p is ready,
// has succeeded or is being deleted.
func PodTrouble(p *corev1.Pod, events []corev1.Event) (Trouble, bool) {
	if p.Status.Phase == corev1.PodSucceeded || p.DeletionTimestamp != nil || PodReady(p) {
		return Trouble{}, false
	}
	r := reading{pod: p, since: unreadySince(p)}
	for _, e := range events {
		if o := e.InvolvedObject; o.Kind == "Pod" && o.Name == p.Name && o.Namespace == p.Namespace &&
			(o.UID == "" || p.UID == "" || o.UID == p.UID) {
			r.events = append(r.events, e)
		}
	}
	slices.SortStableFunc(r.events, func(a, b corev1.Event) int { return LastSeen(b).Compare(LastSeen(a)) })
	t := r.trouble()
	t.Text = flat(t.Text)
	return t, true
}

// reading is a pod with its events, newest first.
type reading struct {
	pod    *corev1.Pod
	events []corev1.Event
	since  time.Time // when the pod stopped being ready, or was created
}

func (r reading) trouble() Trouble {
	for _, cond := range r.pod.Status.Conditions {
		if cond.Type == corev1.PodScheduled && cond.Status == corev1.ConditionFalse {
			return Trouble{Kind: TroubleSchedule, Text: unschedulable(cond), Since: cond.LastTransitionTime.Time}
		}
	}
	if r.pod.Status.Reason == "Evicted" {
		return Trouble{Kind: TroubleEvicted, Text: "evicted by its node: " + r.pod.Status.Message, Since: r.since}
	}
	var best *Trouble
	for _, c := range r.containers() {
		t, ok := r.container(c)
		if ok && (best == nil || t.Kind.Order() < best.Kind.Order()) {
			best = &t
		}
	}
	if best != nil && best.Kind != TroubleStarting {
		return *best
	}
	if t, ok := r.held(); ok {
		return t
	}
	if best != nil {
		return *best
	}
	return r.unready()
}

// Order is the place of k in TroubleKinds.
func (k TroubleKind) Order() int { return slices.Index(TroubleKinds(), k) }

type container struct {
	corev1.ContainerStatus
	limit string // of memory; empty when there is none
	init  bool   // must end before the others start
}

func (r reading) containers() []container {
	var out []container
	add := func(statuses []corev1.ContainerStatus, specs []corev1.Container, init bool) {
		for _, s := range statuses {
			c := container{ContainerStatus: s, init: init}
			for _, spec := range specs {
				if spec.Name != s.Name {
					continue
				}
				if q, ok := spec.Resources.Limits[corev1.ResourceMemory]; ok {
					c.limit = q.String()
				}
				if spec.RestartPolicy != nil && *spec.RestartPolicy == corev1.ContainerRestartPolicyAlways {
					c.init = false // a sidecar
				}
			}
			out = append(out, c)
		}
	}
	add(r.pod.Status.InitContainerStatuses, r.pod.Spec.InitContainers, true)
	add(r.pod.Status.ContainerStatuses, r.pod.Spec.Containers, false)
	return out
}

func (r reading) container(c container) (Trouble, bool) {
	switch w, last := c.State.Waiting, c.LastTerminationState.Terminated; {
	case w != nil && isImage(w.Reason):
		message := w.Message
		if !strings.Contains(message, ": ") { // the event has the reason
			message = cmp.Or(r.said("Failed", "Failed to pull image"), message)
		}
		return Trouble{Kind: TroubleImage, Text: noImage(c.Image, w.Reason, message), Since: r.first("Failed")}, true
	case w != nil && w.Reason == "CrashLoopBackOff" && last != nil:
		return r.ended(c, last, false, "keeps ending"), true
	case w != nil && (w.Reason == "" || w.Reason == "PodInitializing" || w.Reason == "ContainerCreating"):
		return Trouble{Kind: TroubleStarting, Text: fmt.Sprintf("container %s is not started yet", c.Name), Since: r.since}, true
	case w != nil:
		kind := TroubleConfig
		if w.Reason == "CrashLoopBackOff" {
			kind = TroubleCrash
		}
		why := w.Message
		switch {
		case why == "" || kind == TroubleCrash: // whose message is only how long it backs off
			why = w.Reason
		case strings.Contains(why, `exec: "`):
			why = afterFrame(why)
		}
		return Trouble{Kind: kind, Text: fmt.Sprintf("container %s cannot be started: %s", c.Name, why), Since: r.since}, true
	}
	switch now, last := c.State, c.LastTerminationState.Terminated; {
	case now.Terminated != nil && now.Terminated.ExitCode != 0:
		return r.ended(c, now.Terminated, false, "ended"), true
	case now.Running != nil && !c.Ready && last != nil && last.ExitCode != 0:
		return r.ended(c, last, true, fmt.Sprintf("was started again %d times, it ended", c.RestartCount)), true
	case now.Running != nil && c.init:
		return Trouble{Kind: TroubleStarting, Text: fmt.Sprintf("init container %s has not ended yet", c.Name), Since: now.Running.StartedAt.Time, Container: c.Name}, true
	case now.Running != nil && !c.Ready:
		if why := r.probe(c.Name, "Readiness", "Startup", "Liveness"); why != "" {
			return Trouble{Kind: TroubleProbe, Text: why, Since: r.since, Container: c.Name}, true
		}
		return Trouble{Kind: TroubleUnready, Text: fmt.Sprintf("container %s runs and is not ready", c.Name), Since: r.since, Container: c.Name}, true
	}
	return Trouble{}, false
}

// ended says how a container ended; how is "keeps ending" or the like.
func (r reading) ended(c container, t *corev1.ContainerStateTerminated, previous bool, how string) Trouble {
	out := Trouble{Kind: TroubleCrash, Container: c.Name, Previous: previous, Since: r.first("BackOff")}
	if t.Reason == "OOMKilled" {
		out.Kind = TroubleMemory
		out.Text = fmt.Sprintf("container %s was killed for using more memory than there is (OOMKilled)", c.Name)
		if c.limit != "" {
			out.Text = fmt.Sprintf("container %s was killed for using more than its %s of memory (OOMKilled)", c.Name, c.limit)
		}
		return out
	}
	if t.Reason == "StartError" || t.Reason == "ContainerCannotRun" {
		out.Kind, out.Container = TroubleConfig, ""
		out.Text = fmt.Sprintf("container %s cannot be started: %s", c.Name, cmp.Or(afterFrame(t.Message), t.Reason))
		return out
	}
	if killed := t.ExitCode == 137 || t.ExitCode == 143 || r.said("Killing", "ontainer "+c.Name+" failed ") != ""; killed {
		if why := r.probe(c.Name, "Liveness", "Startup"); why != "" {
			out.Kind, out.Text = TroubleProbe, why+", and it is killed for that"
			return out
		}
	}
	out.Text = fmt.Sprintf("container %s %s with exit code %d", c.Name, how, t.ExitCode)
	if t.Reason != "" && t.Reason != "Error" && t.Reason != "Completed" {
		out.Text += " (" + t.Reason + ")"
	}
	if msg := OneLine(t.Message); msg != "" {
		out.Text += ": " + Short(msg, 200)
	}
	return out
}

// afterFrame drops what the container runtime says around the reason.
func afterFrame(msg string) string {
	msg = strings.TrimSuffix(OneLine(msg), ": unknown") // containerd's class of the error
	if i := strings.LastIndex(msg, `exec: "`); i >= 0 {
		return msg[i:]
	}
	return lastPart(msg)
}

// probe says how the newest failure of a probe of a container reads, of the
// probes that are named; empty when there was none.
func (r reading) probe(container string, which ...string) string {
	for _, e := range r.events {
		path := e.InvolvedObject.FieldPath
		if e.Reason != "Unhealthy" || path != "" && !strings.Contains(path, "{"+container+"}") {
			continue
		}
		m := probeEvent.FindStringSubmatch(e.Message)
		if m == nil || !slices.Contains(which, m[1]) {
			continue
		}
		what, why := strings.ToLower(m[1])+" probe of container "+container, OneLine(m[3])
		if m[2] != "failed" {
			return what + " cannot be run: " + Short(afterFrame(why), maxProbe)
		}
		if code, ok := strings.CutPrefix(why, "HTTP probe failed with statuscode: "); ok {
			return what + " is answered with " + code
		}
		if strings.Contains(why, ": ") {
			why = afterAddress(why)
		}
		return what + " fails: " + Short(cmp.Or(why, "it says nothing"), maxProbe)
	}
	return ""
}

// probeEvent is how the kubelet tells of a probe that failed, or could not be run. What
// follows is what the probe wrote, or the error, and may have several lines.
var probeEvent = regexp.MustCompile(`(?s)^(Readiness|Startup|Liveness) probe (failed|errored[^:]*):(.*)$`)

// maxProbe limits what a probe wrote, in characters.
const maxProbe = 200

// afterAddress drops the request from the error of an HTTP probe and keeps the
// address: `Get "http://10.0.0.1:80/": dial tcp 10.0.0.1:80: connect: refused`.
func afterAddress(why string) string {
	if strings.HasPrefix(why, `Get "`) {
		if _, rest, ok := strings.Cut(why, `": `); ok {
			return rest
		}
	}
	return why
}

// held says what holds the pod up on its node before its containers start.
func (r reading) held() (Trouble, bool) {
	for _, e := range r.events {
		t := Trouble{Since: FirstSeen(e)}
		switch msg := OneLine(e.Message); e.Reason {
		case "FailedMount", "FailedAttachVolume", "FailedMapVolume":
			t.Kind, t.Text = TroubleVolume, unmounted(r.said(e.Reason, "MountVolume"), msg)
		case "FailedCreatePodSandBox", "FailedPodSandBoxStatus", "NetworkNotReady":
			t.Kind, t.Text = TroubleNetwork, "the pod's network cannot be set up: "+lastPart(msg)
		case "Pulling":
			image := strings.Trim(strings.TrimPrefix(msg, "Pulling image "), `"`)
			t.Kind, t.Text = TroubleStarting, "image "+shortImage(image)+" is still being pulled"
		default:
			continue
		}
		return t, true
	}
	return Trouble{}, false
}

// unmounted says which volume cannot be mounted. It prefers the kubelet's message about one
// volume to its summary.
func unmounted(one, sum string) string {
	msg := OneLine(cmp.Or(one, sum))
	if _, rest, ok := strings.Cut(msg, `failed for volume "`); ok {
		if name, why, ok := strings.Cut(rest, `" : `); ok {
			return "volume " + name + " cannot be mounted: " + why
		}
	}
	return "the pod's volumes cannot be mounted: " + msg
}

func unschedulable(cond corev1.PodCondition) string {
	msg, _, _ := strings.Cut(OneLine(cond.Message), " preemption: ")
	msg = strings.TrimRight(strings.TrimSpace(msg), ".")
	if msg == "" {
		msg = cond.Reason
	}
	return "no node takes the pod: " + msg
}

// unready is the trouble of a pod of which only that is known.
func (r reading) unready() Trouble {
	t := Trouble{Kind: TroubleStarting, Text: "no container of the pod is started yet", Since: r.since}
	if r.pod.Spec.NodeName == "" {
		t.Text = "no node is chosen for the pod yet"
	}
	if s := r.pod.Status; s.Phase == corev1.PodFailed {
		t.Kind, t.Text = TroubleCrash, strings.TrimSpace("failed "+s.Reason+" "+s.Message)
	} else if s.Phase == corev1.PodRunning || s.Phase == corev1.PodUnknown {
		t.Kind, t.Text = TroubleUnready, "not ready"
		for _, cond := range s.Conditions {
			if cond.Type == corev1.PodReady && cond.Message+cond.Reason != "" {
				t.Text += ": " + cmp.Or(cond.Message, cond.Reason)
			}
		}
	}
	return t
}

// said is the newest message with a reason that contains part.
func (r reading) said(reason, part string) string {
	for _, e := range r.events {
		if e.Reason == reason && strings.Contains(e.Message, part) {
			return e.Message
		}
	}
	return ""
}

// first is when a reason was given first; when it never was, since when the pod
// is not ready.
func (r reading) first(reason string) time.Time {
	var out time.Time
	for _, e := range r.events {
		if at := FirstSeen(e); e.Reason == reason && !at.IsZero() && (out.IsZero() || at.Before(out)) {
			out = at
		}
	}
	if out.IsZero() {
		return r.since
	}
	return out
}

// unreadySince is when p was not ready any more; when it has never been, when it was made.
func unreadySince(p *corev1.Pod) time.Time {
	for _, cond := range p.Status.Conditions {
		if cond.Type == corev1.PodReady && cond.Status != corev1.ConditionTrue && !cond.LastTransitionTime.IsZero() {
			return cond.LastTransitionTime.Time
		}
	}
	return p.CreationTimestamp.Time
}
