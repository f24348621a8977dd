package readiness_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
)

const (
	unready = `conditions: [{type: Ready, status: "False", lastTransitionTime: "2026-01-02T14:02:00Z"}], `
	oneSpec = `containers: [{name: web, resources: {limits: {memory: 64Mi}}}], initContainers: [{name: prepare}, {name: proxy, restartPolicy: Always}]`
)

// webPod is a pod of the given status.
func webPod(t *testing.T, status string) *corev1.Pod {
	t.Helper()
	var p corev1.Pod
	text := `{metadata: {name: web-0, namespace: apps, creationTimestamp: "2026-01-02T14:00:00Z"}, spec: {nodeName: n1, ` + oneSpec + `}, status: {` + status + `}}`
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &p), text)
	return &p
}

// about is an event about web-0.
func about(reason, message string, minute int) corev1.Event {
	at := metav1.NewTime(time.Date(2026, 1, 2, 14, minute, 0, 0, time.UTC))
	return corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: reason + message, Namespace: "apps"},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "apps", Name: "web-0"}, Reason: reason, Message: message,
		FirstTimestamp: at, LastTimestamp: at,
	}
}

func TestPodTrouble(t *testing.T) {
	waits := func(reason, message, more string) string {
		return unready + `containerStatuses: [{name: web, image: "docker.io/x:1", ` + more + ` state: {waiting: {reason: ` + reason + `, message: '` + message + `'}}}]`
	}
	const killed = `restartCount: 3, lastState: {terminated: {exitCode: 137, reason: Error}},`
	tests := []struct {
		name, status string
		events       []corev1.Event
		kind         readiness.TroubleKind
		text, since  string
		container    string
		previous     bool
	}{
		{"an image that is not there", waits("ErrImagePull", `rpc error: code = NotFound desc = docker.io/library/x:1: not found`, ""), []corev1.Event{about("Failed", "Error: ErrImagePull", 3)},
			readiness.TroubleImage, "image docker.io/x:1 not found (REG-007)", "14:03", "", false},
		{"only the event knows", waits("ImagePullBackOff", `Back-off pulling image "docker.io/x:1"`, ""), []corev1.Event{about("Failed", `Failed to pull image "docker.io/x:1": pull access denied`, 1)},
			readiness.TroubleImage, "image docker.io/x:1 refused by its registry (REG-001)", "14:01", "", false},
		{"one of the mirror's", strings.ReplaceAll(waits("ErrImagePull", `failed to resolve reference "slipway.local/redis@sha256:00": pulling from host 127.0.0.1:6445 failed with status code [manifests sha256:00]: 502 the mirror: x509: certificate signed by unknown authority`, ""), "docker.io/x:1", "slipway.local/redis:1"), nil,
			readiness.TroubleImage, "image slipway.local/redis:1 cannot be pulled: the certificate of its registry is not trusted (REG-013)", "14:02", "", false},
		{"one that no bundle has", strings.ReplaceAll(waits("ImagePullBackOff", `Back-off pulling image "slipway.local/redis:1"`, ""), "docker.io/x:1", "slipway.local/redis:1"), nil,
			readiness.TroubleImage, "image slipway.local/redis:1 not found", "14:02", "", false},
		{"nobody knows", waits("ImagePullBackOff", `Back-off pulling image "docker.io/x:1"`, ""), nil,
			readiness.TroubleImage, "image docker.io/x:1 cannot be pulled", "14:02", "", false},
		{"a registry without an address", waits("ErrImagePull", `failed to do request: Head "https://r/v2/": dial tcp: lookup r on 10.0.0.2:53: no such host`, ""), nil,
			readiness.TroubleImage, "image docker.io/x:1 not found (no such host: r)", "14:02", "", false},
		{"a registry that is away", waits("ErrImagePull", `failed to do request: dial tcp 10.0.0.9:443: connect: no route to host`, ""), nil,
			readiness.TroubleImage, "image docker.io/x:1 cannot be pulled: no route to host", "14:02", "", false},
		{"a digest is no status", waits("ErrImagePull", `failed: sha256:a401b403: unexpected EOF`, ""), nil,
			readiness.TroubleImage, "image docker.io/x:1 cannot be pulled: unexpected EOF", "14:02", "", false},
		{"a registry that limits", waits("ErrImagePull", `httpReadSeeker: 429: toomanyrequests: slow down`, ""), nil,
			readiness.TroubleImage, "image docker.io/x:1 cannot be pulled now: its registry limits how often (REG-014)", "14:02", "", false},
		{"a registry with an authority of its own", waits("ErrImagePull", `rpc error: code = Unknown desc = failed to pull and unpack image "docker.io/library/x:1": failed to resolve reference "docker.io/library/x:1": failed to do request: Head "https://r/v2/": x509: certificate signed by unknown authority`, ""), nil,
			readiness.TroubleImage, "image docker.io/x:1 cannot be pulled: the certificate of its registry is not trusted (REG-013)", "14:02", "", false},
		{"a proxy between", waits("ErrImagePull", `failed to do request: Head "https://r/v2/": Proxy Authentication Required`, ""), nil,
			readiness.TroubleImage, "image docker.io/x:1 cannot be pulled: a proxy between does not let it through (REG-015)", "14:02", "", false},
		{"no name", waits("InvalidImageName", `couldn''t parse`, ""), nil,
			readiness.TroubleImage, "image docker.io/x:1 has no valid name", "14:02", "", false},
		{"never pulled", waits("ErrImageNeverPull", `x`, ""), nil,
			readiness.TroubleImage, "image docker.io/x:1 is not on the node, and its pull policy forbids pulling it", "14:02", "", false},
		{"a Secret is missing", waits("CreateContainerConfigError", `secret "a" not found`, ""), nil,
			readiness.TroubleConfig, `container web cannot be started: secret "a" not found`, "14:02", "", false},
		{"a command is missing", waits("RunContainerError", `failed to create containerd task: OCI runtime create failed: unable to start: exec: "serve": executable file not found in $PATH`, ""), nil,
			readiness.TroubleConfig, `container web cannot be started: exec: "serve": executable file not found in $PATH`, "14:02", "", false},
		{"a command is missing, again and again", waits("CrashLoopBackOff", "x", `lastState: {terminated: {exitCode: 128, reason: StartError, message: 'runc: exec: "serve": not found'}},`), nil,
			readiness.TroubleConfig, `container web cannot be started: exec: "serve": not found`, "14:02", "", false},
		{"a crash", waits("CrashLoopBackOff", "x", `lastState: {terminated: {exitCode: 2, reason: Error, message: "no\n rows"}},`), []corev1.Event{about("BackOff", "x", 5), about("BackOff", "y", 4)},
			readiness.TroubleCrash, "container web keeps ending with exit code 2: no rows", "14:04", "web", false},
		{"a program that does not stay", waits("CrashLoopBackOff", "x", `lastState: {terminated: {exitCode: 0, reason: Completed}},`), nil,
			readiness.TroubleCrash, "container web keeps ending with exit code 0", "14:02", "web", false},
		{"it has been started again", unready + `containerStatuses: [{name: web, restartCount: 3, state: {running: {}}, lastState: {terminated: {exitCode: 1}}}]`, nil,
			readiness.TroubleCrash, "container web was started again 3 times, it ended with exit code 1", "14:02", "web", true},
		{"too much memory", waits("CrashLoopBackOff", "x", `lastState: {terminated: {exitCode: 137, reason: OOMKilled}},`), nil,
			readiness.TroubleMemory, "container web was killed for using more than its 64Mi of memory (OOMKilled)", "14:02", "web", false},
		{"a liveness probe", waits("CrashLoopBackOff", "x", killed), []corev1.Event{about("Unhealthy", "Liveness probe failed: HTTP probe failed with statuscode: 500", 1)},
			readiness.TroubleProbe, "liveness probe of container web is answered with 500, and it is killed for that", "14:02", "web", false},
		{"a readiness probe does not kill", waits("CrashLoopBackOff", "x", killed), []corev1.Event{about("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 500", 1)},
			readiness.TroubleCrash, "container web keeps ending with exit code 137", "14:02", "web", false},
		{"a readiness probe", unready + `containerStatuses: [{name: web, state: {running: {}}}]`, []corev1.Event{
			about("Unhealthy", `Readiness probe failed: Get "http://10.0.0.1:80/": dial tcp 10.0.0.1:80: connect: connection refused`, 6), about("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503", 1)},
			readiness.TroubleProbe, "readiness probe of container web fails: dial tcp 10.0.0.1:80: connect: connection refused", "14:02", "web", false},
		{"a probe that cannot be run", unready + `containerStatuses: [{name: web, state: {running: {}}}]`, []corev1.Event{about("Unhealthy", `Readiness probe errored and resulted in unknown state: rpc error: code = Unknown desc = failed to exec in container: failed to start exec "5": OCI runtime exec failed: exec failed: unable to start container process: exec: "podcli": executable file not found in $PATH: unknown`, 6)},
			readiness.TroubleProbe, `readiness probe of container web cannot be run: exec: "podcli": executable file not found in $PATH`, "14:02", "web", false},
		{"a probe that writes lines", unready + `containerStatuses: [{name: web, state: {running: {}}}]`, []corev1.Event{about("Unhealthy", "Startup probe failed: \nno rows\n"+strings.Repeat("x", 300), 6)},
			readiness.TroubleProbe, "startup probe of container web fails: no rows " + strings.Repeat("x", 192) + "…", "14:02", "web", false},
		{"a probe by gRPC", unready + `containerStatuses: [{name: web, state: {running: {}}}]`, []corev1.Event{about("Unhealthy", "Readiness probe failed: service unhealthy (responded with: rpc error: code = Unavailable desc = no database)", 6)},
			readiness.TroubleProbe, "readiness probe of container web fails: no database)", "14:02", "web", false},
		{"a probe that says nothing", unready + `containerStatuses: [{name: web, state: {running: {}}}]`, []corev1.Event{about("Unhealthy", "Readiness probe failed: ", 6)},
			readiness.TroubleProbe, "readiness probe of container web fails: it says nothing", "14:02", "web", false},
		{"a program that ends well when a probe kills it", waits("CrashLoopBackOff", "x", `lastState: {terminated: {exitCode: 0, reason: Completed}},`), []corev1.Event{
			about("Killing", "Container web failed liveness probe, will be restarted", 2), about("Unhealthy", "Liveness probe failed: HTTP probe failed with statuscode: 500", 1)},
			readiness.TroubleProbe, "liveness probe of container web is answered with 500, and it is killed for that", "14:02", "web", false},
		{"not ready, and nobody says why", unready + `containerStatuses: [{name: web, state: {running: {}}}]`, []corev1.Event{{Reason: "Unhealthy", Message: "of another pod"}},
			readiness.TroubleUnready, "container web runs and is not ready", "14:02", "web", false},
		{"an init container runs", unready + `initContainerStatuses: [{name: prepare, state: {running: {startedAt: "2026-01-02T14:01:00Z"}}}], containerStatuses: [{name: web, state: {waiting: {reason: PodInitializing}}}]`, nil,
			readiness.TroubleStarting, "init container prepare has not ended yet", "14:01", "prepare", false},
		{"a sidecar is not ready", unready + `initContainerStatuses: [{name: proxy, state: {running: {}}}], containerStatuses: [{name: web, ready: true, state: {running: {}}}]`, nil,
			readiness.TroubleUnready, "container proxy runs and is not ready", "14:02", "proxy", false},
		{"the worse of two containers", unready + `initContainerStatuses: [{name: proxy, state: {running: {}}}], containerStatuses: [{name: web, image: "x", state: {waiting: {reason: InvalidImageName}}}]`, nil,
			readiness.TroubleImage, "image x has no valid name", "14:02", "", false},
		{"a volume", waits("ContainerCreating", "", ""), []corev1.Event{
			about("FailedMount", "Unable to attach or mount volumes: unmounted volumes=[v]: timed out", 9), about("FailedMount", `MountVolume.SetUp failed for volume "v" : secret "a" not found`, 8)},
			readiness.TroubleVolume, `volume v cannot be mounted: secret "a" not found`, "14:09", "", false},
		{"a network", waits("ContainerCreating", "", ""), []corev1.Event{about("FailedCreatePodSandBox", `Failed to create pod sandbox: rpc error: desc = failed to setup network: plugin "bridge" is missing`, 1)},
			readiness.TroubleNetwork, `the pod's network cannot be set up: plugin "bridge" is missing`, "14:01", "", false},
		{"an image that is large", waits("ContainerCreating", "", ""), []corev1.Event{about("Pulling", `Pulling image "docker.io/x:1"`, 1)},
			readiness.TroubleStarting, "image docker.io/x:1 is still being pulled", "14:01", "", false},
		{"it has just begun", waits("ContainerCreating", "", ""), nil, readiness.TroubleStarting, "container web is not started yet", "14:02", "", false},
		{"no node", `phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/1 nodes are available: 1 Insufficient cpu. preemption: no.", lastTransitionTime: "2026-01-02T14:01:00Z"}]`, nil,
			readiness.TroubleSchedule, "no node takes the pod: 0/1 nodes are available: 1 Insufficient cpu", "14:01", "", false},
		{"thrown out", `phase: Failed, reason: Evicted, message: "The node was low on resource: ephemeral-storage."`, nil,
			readiness.TroubleEvicted, "evicted by its node: The node was low on resource: ephemeral-storage.", "14:00", "", false},
		{"failed as a whole", `phase: Failed, reason: DeadlineExceeded, message: too long`, nil, readiness.TroubleCrash, "failed DeadlineExceeded too long", "14:00", "", false},
		{"lost", `phase: Running, conditions: [{type: Ready, status: "False", reason: NodeLost, lastTransitionTime: "2026-01-02T14:02:00Z"}]`, nil,
			readiness.TroubleUnready, "not ready: NodeLost", "14:02", "", false},
		{"nothing yet", `phase: Pending`, nil, readiness.TroubleStarting, "no container of the pod is started yet", "14:00", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := readiness.PodTrouble(webPod(t, tt.status), tt.events)
			require.True(t, ok)
			since, err := time.Parse(time.DateTime, "2026-01-02 "+tt.since+":00")
			require.NoError(t, err)
			require.WithinDuration(t, since, got.Since, 0)
			got.Since = time.Time{}
			require.Equal(t, readiness.Trouble{Kind: tt.kind, Text: tt.text, Container: tt.container, Previous: tt.previous}, got)
		})
	}
	for _, status := range []string{`phase: Succeeded`, `conditions: [{type: Ready, status: "True"}]`} {
		_, ok := readiness.PodTrouble(webPod(t, status), nil)
		require.False(t, ok, status)
	}
	ending := webPod(t, `phase: Running`)
	ending.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	_, ok := readiness.PodTrouble(ending, nil)
	require.False(t, ok)
}

func TestSentence(t *testing.T) {
	now := time.Date(2026, 1, 2, 14, 10, 0, 0, time.UTC)
	require.Equal(t, "image docker.io/x:1 not found, pod web-0, since 14:02 UTC", readiness.Sentence("image docker.io/x:1 not found", "pod web-0", now.Add(-8*time.Minute), now))
	require.Equal(t, "x, since 2026-01-01 23:59 UTC", readiness.Sentence("x", "", now.Add(-14*time.Hour-11*time.Minute), now))
	zone := time.FixedZone("", 3*3600)
	require.Equal(t, "x, since 14:02 UTC", readiness.Sentence("x", "", now.Add(-8*time.Minute).In(zone), now.In(zone)))
	require.Equal(t, "x", readiness.Sentence("x", "", time.Time{}, now))
}

func TestTellingLine(t *testing.T) {
	for want, lines := range map[string][]string{
		"panic: no rows":              {"starting", "panic: no rows", "", "goroutine 1 [running]:", "main.main()", "\t/src/main.go:12 +0x1d", "exit status 2"},
		"ValueError: invalid port":    {"Traceback (most recent call last):", `  File "a.py", line 1, in <module>`, "    main()", "ValueError: invalid port"},
		"Error: connect ECONNREFUSED": {"Error: connect ECONNREFUSED", "    at TCPConnectWrap.afterConnect (net.js:1:2)"},
		"second":                      {"first", "second", " "},
		"":                            {"", " "},
	} {
		require.Equal(t, want, readiness.TellingLine(lines))
	}
	require.Equal(t, "x", readiness.Wrote("x", ""))
	require.Equal(t, `x, it wrote "a "b""`, readiness.Wrote("x", `a "b"`))
}

func TestReadRefusal(t *testing.T) {
	for message, want := range map[string]readiness.Refusal{
		`Error creating: pods "web-" is forbidden: error looking up service account apps/nobody: serviceaccount "nobody" not found`: {
			Text: `error looking up service account apps/nobody: serviceaccount "nobody" not found`},
		`create Pod web-0 in StatefulSet web failed error: pods "web-0" is forbidden: exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3`: {
			Text: "quota q is used up (requested pods=1, used pods=3, limit pods=3)"},
		`resource mapping not found: no matches for kind "Certificate" in version "cert-manager.io/v1"`: {
			Text: "the cluster does not know the kind Certificate of cert-manager.io: its CRD is missing"},
		`one or more objects failed to apply, reason: Service "web" is invalid: spec.ports: Required value. Retrying attempt #3 at 2:05PM.`: {
			Text: "spec.ports: Required value."},
		`Internal error occurred: failed calling webhook "a.b.c": failed to call webhook: Post "https://hook.ns.svc:443/v?timeout=10s": no endpoints available for service "hook" (retried 2 times).`: {
			Text: `webhook a.b.c does not answer: no endpoints available for service "hook"`, Namespace: "ns", Service: "hook"},
		`admission webhook "a.b.c" denied the request:`: {Text: "webhook a.b.c refuses it"},
		"spec.selector:\n field is immutable":           {Text: "spec.selector: field is immutable"},
	} {
		require.Equal(t, want, readiness.ReadRefusal(message), message)
	}
}

func podOf(name, owner, hash, phase string, minute int) corev1.Pod {
	yes := true
	kind := map[string]string{"web": "ReplicaSet"}[owner]
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "apps", CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 2, 14, minute, 0, 0, time.UTC)),
		OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: owner, Controller: &yes}},
	}, Status: corev1.PodStatus{Phase: corev1.PodPhase(phase)}}
	if kind != "" {
		p.Labels = map[string]string{"pod-template-hash": hash}
		p.OwnerReferences[0].Kind, p.OwnerReferences[0].Name = kind, owner+"-"+hash
	}
	return p
}

func TestCurrentPods(t *testing.T) {
	alone := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "alone", Namespace: "apps"}, Status: corev1.PodStatus{Phase: corev1.PodFailed}}
	pods := []corev1.Pod{
		podOf("old", "web", "1", "Running", 1), podOf("evicted", "web", "2", "Failed", 2), podOf("b", "web", "2", "Running", 3), podOf("a", "web", "2", "Running", 3),
		podOf("first-try", "job", "", "Failed", 1), podOf("second-try", "job", "", "Failed", 4), alone,
	}
	var names []string
	for _, p := range readiness.CurrentPods(pods) {
		names = append(names, p.Name)
	}
	require.Equal(t, []string{"second-try", "a", "b", "alone"}, names)
	require.Equal(t, "old", pods[0].Name, "the list is the caller's")

	kind, name := readiness.Owner(&pods[0])
	require.Equal(t, "Deployment web", kind+" "+name)
	kind, name = readiness.Owner(&alone)
	require.Equal(t, "Pod alone", kind+" "+name)
}

func TestPodCause(t *testing.T) {
	cause := func(objs ...runtime.Object) string {
		c := &kube.Client{Kubernetes: fake.NewClientset(objs...)}
		return readiness.PodCause(t.Context(), c, "apps", "", "")
	}
	const date = ", since 2026-01-02 14:02 UTC"
	crash := webPod(t, unready+`containerStatuses: [{name: web, state: {terminated: {exitCode: 3}}}]`)
	require.Equal(t, `container web ended with exit code 3, it wrote "fake logs", pod web-0`+date, cause(crash))
	for _, gets := range []string{
		"env: [{name: P, valueFrom: {secretKeyRef: {name: own, key: password}}}]}]", "envFrom: [{secretRef: {name: own}}]}]",
		"image: x}], volumes: [{name: v, secret: {secretName: own}}]", "image: x}], volumes: [{name: v, projected: {sources: [{secret: {name: own}}]}}]",
	} {
		leaks := crash.DeepCopy()
		require.NoError(t, yaml.Unmarshal([]byte("{containers: [{name: web, "+gets+"}"), &leaks.Spec))
		own := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "own", Namespace: "apps"}, Data: map[string][]byte{"password": []byte("fake logs")}}
		require.Equal(t, `container web ended with exit code 3, it wrote "***", pod web-0`+date, cause(leaks, own), gets)
		own.Data = map[string][]byte{"username": []byte("fake logs")}
		require.Equal(t, `container web ended with exit code 3, it wrote "fake logs", pod web-0`+date, cause(leaks, own), "a word")
	}
	image := webPod(t, unready+`containerStatuses: [{name: web, image: x, state: {waiting: {reason: InvalidImageName}}}]`)
	image.Name = "web-1"
	require.Equal(t, "image x has no valid name, pod web-1"+date, cause(crash, image), "which tells more")
	ready := webPod(t, `conditions: [{type: Ready, status: "True"}]`)
	require.Empty(t, cause(ready))
	require.Equal(t, "there is no pod", cause())
	refused := about("FailedCreate", `Error creating: pods "web-" is forbidden: password=canary`, 2)
	require.Equal(t, "there is no pod: password=***"+date, cause(&refused))

	refused.InvolvedObject.Kind, refused.InvolvedObject.Name = "ReplicaSet", "web-api-6d5f"
	its := func(workload string) string {
		return readiness.PodCause(t.Context(), &kube.Client{Kubernetes: fake.NewClientset(&refused)}, "apps", "", workload)
	}
	require.Equal(t, "there is no pod: password=***"+date, its("web-api"))
	require.Equal(t, "there is no pod", its("web"))
	require.Equal(t, "there is no pod", its("db"), "what is said of another workload is not the reason")

	broken := fake.NewClientset(crash)
	broken.PrependReactor("list", "events", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("no") })
	require.Contains(t, readiness.PodCause(t.Context(), &kube.Client{Kubernetes: broken}, "apps", "", ""), "exit code 3", "events are not needed for it")
	broken.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("no") })
	require.Empty(t, readiness.PodCause(t.Context(), &kube.Client{Kubernetes: broken}, "apps", "", ""))
}

// TestWarning: the newest one about the object, which may be in no namespace, and without secrets.
func TestWarning(t *testing.T) {
	said := func(name, apiVersion, kind, of, text string, minute int) *corev1.Event {
		return &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Type: corev1.EventTypeWarning, Reason: "Refused", Message: text,
			InvolvedObject: corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Name: of},
			FirstTimestamp: metav1.Date(2026, 1, 2, 14, 2, 0, 0, time.UTC), LastTimestamp: metav1.Date(2026, 1, 2, 14, minute, 0, 0, time.UTC),
		}
	}
	normal := said("normal", "v1", "Node", "a", "fine", 9)
	normal.Type = corev1.EventTypeNormal
	events := fake.NewClientset(said("first", "v1", "Node", "a", "first", 3), said("last", "", "Node", "a", "no disk\nis left, password=canary", 5), normal,
		said("group", "example.com/v1", "Node", "a", "of another kind", 6), said("kind", "v1", "Pod", "a", "of another kind", 7), said("name", "v1", "Node", "b", "of another", 8))
	c := &kube.Client{Kubernetes: events}
	node := schema.GroupKind{Kind: "Node"}
	require.Equal(t, "Refused: no disk is left, password=***, since 2026-01-02 14:02 UTC", readiness.Warning(t.Context(), c, node, "", "a"))
	require.Empty(t, readiness.Warning(t.Context(), c, node, "", "c"))
	require.Empty(t, readiness.Warning(t.Context(), c, node, "shop", "a"))
	events.PrependReactor("list", "events", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("no") })
	require.Empty(t, readiness.Warning(t.Context(), c, node, "", "a"))
}

// TestARolloutSaysWhatHindersIt: from ten seconds on and once, also in the error.
func TestARolloutSaysWhatHindersIt(t *testing.T) {
	const (
		crash = `container web cannot be started: exec: "./web": no such file or directory, pod web-0, since 2026-01-02 14:02 UTC`
		bad   = `violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false`
	)
	pod := webPod(t, unready+`containerStatuses: [{name: web, state: {waiting: {reason: CrashLoopBackOff, message: back-off}},
		lastState: {terminated: {exitCode: 128, reason: StartError, message: 'runc: exec: "./web": no such file or directory'}}}]`)
	pod.Labels = map[string]string{"app": "web"}
	refused := about("FailedCreate", `Error creating: pods "web-1" is forbidden: `+bad, 2)
	for what, c := range map[string]struct {
		objs   []runtime.Object
		status string
		says   string
	}{
		"a container that cannot be started": {[]runtime.Object{pod}, "replicas: 1, updatedReplicas: 1", "1 of 1 pods updated, 0 available: " + crash},
		"a pod that may not be": {[]runtime.Object{&refused}, `conditions: [{type: ReplicaFailure, status: "True", message: 'pods "web-1" is forbidden: ` + bad + `'}, {type: Progressing, status: "False", message: late}]`,
			"0 of 1 pods updated, 0 available (" + bad + ")"},
	} {
		t.Run(what, func(t *testing.T) {
			var d appsv1.Deployment
			require.NoError(t, yaml.UnmarshalStrict([]byte(`{metadata: {name: web, namespace: apps}, spec: {selector: {matchLabels: {app: web}}}, status: {`+c.status+`}}`), &d))
			client := &kube.Client{Kubernetes: fake.NewClientset(append(c.objs, &d)...)}
			synctest.Test(t, func(t *testing.T) {
				var seen []string
				client.Progress = func(format string, args ...any) { seen = append(seen, fmt.Sprintf(format, args...)) }
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err := readiness.WaitRollout(ctx, client, "Deployment", "apps", "web")
				const what = "for Deployment apps/web to be rolled out"
				require.Equal(t, []string{"waiting " + what + ": " + c.says + " (10s so far)"}, seen)
				require.EqualError(t, err, "waited 1m0s "+what+"; last seen: "+c.says)
			})
		})
	}
}

func TestLastLinesAreForPeople(t *testing.T) {
	p := webPod(t, "")
	c := &kube.Client{Kubernetes: fake.NewClientset(p)}
	lines, err := readiness.LastLines(t.Context(), c, p, readiness.Trouble{Container: "web"}, 20)
	require.NoError(t, err)
	require.Equal(t, []string{"fake logs"}, lines)
	lines, err = readiness.LastLines(t.Context(), c, p, readiness.Trouble{}, 20)
	require.NoError(t, err)
	require.Empty(t, lines, "no container has run")
}
