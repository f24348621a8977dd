package diagnosis

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
)

// expectation is the expected diagnosis of a file of testdata.
type expectation struct {
	kind  string // of the first finding
	known bool
	cause string
}

func causes() map[string]expectation {
	return map[string]expectation{
		"image-not-found": {"image", true, `app web: image docker.io/x:1 not found (REG-007), pod web-7c8b-q9q9q, since 14:02 UTC`},
		"crash-loop":      {"crash", true, `app web: container web keeps ending with exit code 1, it wrote "panic: setting GREETING is missing", pod web-7c8b-q9q9q, since 14:02 UTC`},
		"out-of-memory":   {"memory", true, `app web: container web was killed for using more than its 64Mi of memory (OOMKilled), pod web-7c8b-q9q9q, since 14:02 UTC`},
		"unschedulable":   {"unschedulable", true, `app web: no node takes the pod: 0/1 nodes are available: 1 Insufficient memory, pod web-7c8b-q9q9q, since 14:01 UTC`},
		"probe-503":       {"probe", true, `app web: readiness probe of container web is answered with 503, pod web-7c8b-q9q9q, since 14:01 UTC`},
		"volume-not-mounted": {"volume", true,
			`app web: volume settings cannot be mounted: secret "web-settings" not found, pod web-7c8b-q9q9q, since 14:01 UTC`},
		"claim-without-class": {"claim", true,
			`app database: claim data-database-0 names no storage class, and the cluster has no default one, since 14:01 UTC`},
		"claim-of-unknown-class": {"claim", true,
			`app database: claim data-database-0 names the storage class fast, which the cluster does not have, since 14:01 UTC`},
		"claim-not-provisioned": {"claim", true,
			`app database: claim data-database-0 gets no volume: failed to provision volume with StorageClass "local-path": no space left on device, since 14:01 UTC`},
		"hook-job-failed": {"crash", true,
			`app web: hook Job web-migrate failed: container migrate ended with exit code 3, it wrote "ERROR: relation "entries" already exists", pod web-migrate-bbbbb, since 14:02 UTC`},
		"invalid-manifest": {"notApplied", true,
			`app web: Deployment web was not applied: spec.template.spec.containers[0].image: Required value, since 14:01 UTC`},
		"missing-crd": {"notApplied", true,
			`app web: Certificate web was not applied: the cluster does not know the kind Certificate of cert-manager.io: its CRD is missing, since 14:01 UTC`},
		"webhook-refuses": {"notApplied", true,
			`app web: Deployment web was not applied: webhook validation.gatekeeper.sh refuses it: [limits] container <web> has no resource limits, since 14:01 UTC`},
		"webhook-silent": {"config", true,
			`app web: Issuer web was not applied: webhook webhook.cert-manager.io does not answer: container webhook cannot be started: secret "cert-manager-webhook-ca" not found, pod cert-manager/cert-manager-webhook-66-abcde, since 14:00 UTC`},
		"quota": {"refused", true,
			`app web: no pod of Deployment web can be made: quota compute is used up (requested limits.memory=2Gi, used limits.memory=7Gi, limit limits.memory=8Gi), since 14:02 UTC`},
		"node-down":     {"node", true, `app web: node n2 is not ready: Kubelet stopped posting node status, pod web-7c8b-q9q9q, since 14:04 UTC`},
		"disk-pressure": {"node", true, `app web: node n1 is short of disk space: kubelet has disk pressure, pod web-7c8b-q9q9q, since 14:04 UTC`},
		"dns-down": {"crash", true,
			`app web: names cannot be resolved: container coredns keeps ending with exit code 1, it wrote "[FATAL] plugin/loop: Loop (127.0.0.1:41234 -> :53) detected for zone ".", see https://coredns.io/plugins/loop#troubleshooting. Query: "HINFO 4547991504243258144.3688648895315093531."", pod kube-system/coredns-7d8f9c6b5-lkj2h, since 13:59 UTC`},
		"state-unreadable": {"memory", true,
			`app web: argocd-repo-server does not answer: container repo-server was killed for using more memory than there is (OOMKilled), pod argocd/argocd-repo-server-6c9d-8wz5m, since 14:02 UTC`},
		"dependency-down": {"image", true,
			`app web: database does not answer: image registry.example.org/postgres:17 refused by its registry (REG-001), pod apps/database-0, since 14:01 UTC`},
		"gitea-down": {"config", true, `container gitea cannot be started: secret "gitea-admin" not found, pod gitea/gitea-5d5d-abcde, since 14:01 UTC`},
		"slow":       {"starting", false, `app web: image docker.io/x:1 is still being pulled, pod web-7c8b-q9q9q, since 14:01 UTC`},
		"hook-runs": {"hookRuns", false,
			`app web: hook Job web-gate has not finished, it wrote "https://sign.example.org/token: error 404, trying again in 5s", since 14:01 UTC`},
		"root-waits": {"config", true,
			`app root: app web: container web cannot be started: couldn't find key GREETING in ConfigMap apps/web, pod apps/web-7c8b-q9q9q, since 14:01 UTC`},
		"fine": {"", false,
			`no cause was found in the cluster; see the error of orchestrator/publish`},
	}
}

func TestTheCauseIsOneSentence(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	require.Len(t, files, len(causes())+1)
	all := causes()
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		if name == "base" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			want, ok := all[name]
			d := load(t, name).Diagnose()
			require.True(t, ok, "a file without a sentence")
			kind := ""
			if len(d.Findings) > 0 {
				kind = d.Findings[0].Kind
			}
			require.Equal(t, want, expectation{kind, d.Known, d.Cause})
		})
	}
}

func TestEqualFactsGiveEqualDiagnoses(t *testing.T) {
	for name := range causes() {
		want := load(t, name).Diagnose()
		for seed := range uint64(4) {
			f := load(t, name)
			r := rand.New(rand.NewPCG(seed, 1))
			r.Shuffle(len(f.Pods), func(i, j int) { f.Pods[i], f.Pods[j] = f.Pods[j], f.Pods[i] })
			r.Shuffle(len(f.Events), func(i, j int) { f.Events[i], f.Events[j] = f.Events[j], f.Events[i] })
			r.Shuffle(len(f.Apps), func(i, j int) { f.Apps[i], f.Apps[j] = f.Apps[j], f.Apps[i] })
			require.Equal(t, want, f.Diagnose(), name)
		}
	}
}

// caused returns the cause after a change of the facts of a case.
func caused(t *testing.T, name string, change func(f *Facts)) string {
	t.Helper()
	f := load(t, name)
	change(f)
	return f.Diagnose().Cause
}

func TestWhatTheErrorNamesComesFirst(t *testing.T) {
	failed := func(text string) func(f *Facts) {
		return func(f *Facts) { f.Scope.Failed = []contract.FailedStep{{Stage: "a", Step: "b", Error: text}} }
	}
	const gitea, metrics = `container gitea cannot be started`, `container web keeps ending`
	for text, want := range map[string]string{
		"": gitea, // whose kind tells more
		"waited for DaemonSet kube-system/metrics: late": metrics,
		"waited for daemonSet metrics.":                  metrics,
		"see pod metrics-1, since 14:02":                 metrics,
		"waited for DaemonSet kube-system/metrics-agent": gitea,
		"waited for Deployment gitea/gitea, late":        gitea,
	} {
		require.Contains(t, caused(t, "gitea-down", failed(text)), want, text)
	}
	require.Contains(t, caused(t, "claim-without-class", failed("bring the app web to aaaa: late")), "app web: Deployment web is Missing")
	require.Contains(t, caused(t, "claim-without-class", failed("bring the app website to aaaa: late")), "app database: ")
	require.Contains(t, caused(t, "claim-without-class", func(f *Facts) { f.Scope.App = "web" }), "app web: ")
}

func TestNamespacesComeInTheScopesOrder(t *testing.T) {
	order := func(namespaces ...string) func(f *Facts) {
		return func(f *Facts) { f.Scope.Failed, f.Scope.Namespaces = nil, namespaces }
	}
	require.Contains(t, caused(t, "gitea-down", order("gitea", "kube-system")), "container gitea")
	require.Contains(t, caused(t, "gitea-down", order("kube-system", "gitea")), "container web")
	require.Contains(t, caused(t, "gitea-down", order("gitea")), "container gitea")
}

func TestOtherNamespacesAreNotLookedAt(t *testing.T) {
	elsewhere := func(f *Facts) {
		f.Pods[len(f.Pods)-1].Namespace = "somebody"
		f.Scope.Namespaces = []string{"other"}
	}
	require.Contains(t, caused(t, "crash-loop", elsewhere), "app web: Deployment web is Degraded")
}

func TestAnEarlierWaveComesFirst(t *testing.T) {
	require.Contains(t, caused(t, "dependency-down", func(f *Facts) { f.Scope.Failed = nil }), "app database: ")
	require.Contains(t, caused(t, "dependency-down", func(f *Facts) {
		f.Scope.Failed = nil
		f.app("database").Wave = 30
	}), "app web: database does not answer: ")
}

func TestAnAppThatWaitsForItsOwnComesLast(t *testing.T) {
	f := load(t, "root-waits")
	f.Scope.Failed = nil
	d := f.Diagnose()
	require.Equal(t, "app web: container web cannot be started: couldn't find key GREETING in ConfigMap apps/web, pod web-7c8b-q9q9q, since 14:01 UTC", d.Cause)
	require.Equal(t, "root", d.Apps[0].Name)
	require.Contains(t, d.Apps[0].Cause, "app web: container web cannot be started")
}

func TestAnAppThatIsDoneIsNotTheCause(t *testing.T) {
	// The pod crashes all the same, say one of three.
	done := func(f *Facts) { f.app("web").Health, f.app("web").Resources[0].Health = "Healthy", "Healthy" }
	require.Contains(t, caused(t, "crash-loop", done), "app web: container web keeps ending")
	require.Contains(t, caused(t, "crash-loop", func(f *Facts) {
		done(f)
		f.app("database").Health, f.app("database").Wave = "Degraded", 90
	}), "app database: ")
}

func TestWhatWasReplacedIsNoCause(t *testing.T) {
	// A newer pod of another template stands for the workload.
	require.Contains(t, caused(t, "crash-loop", func(f *Facts) {
		p := f.Pods[len(f.Pods)-2] // web as it was
		require.Equal(t, "web-5f6d-x2x4z", p.Name)
		p.CreationTimestamp = metav1.NewTime(now())
		f.Pods = append(f.Pods, p)
	}), "app web: Deployment web is Degraded")
	// A Job that succeeded in the end has failed pods.
	require.Contains(t, caused(t, "hook-job-failed", func(f *Facts) {
		f.Jobs[0].Status.Conditions[0].Type = batchv1.JobComplete
		f.app("web").Operation.Failed = nil
	}), "app web: sync failed: ")
	// A controller tried again, just after the pod was made.
	require.Contains(t, caused(t, "quota", func(f *Facts) {
		f.Pods = append(f.Pods, load(t, "fine").Pods[3])
		f.Events[0].Message = `failed to create PVC data-web-0: persistentvolumeclaims "data-web-0" already exists`
	}), "app web: Deployment web is Progressing")
	// Pods could not be made for a while, and then were.
	require.Contains(t, caused(t, "quota", func(f *Facts) {
		p := load(t, "fine").Pods[3]
		p.CreationTimestamp = metav1.NewTime(now())
		f.Pods = append(f.Pods, p)
	}), "app web: Deployment web is Progressing")
}

func TestWhatIsOfNoDefiniteKindIsStillTold(t *testing.T) {
	noNodes := func(f *Facts) { f.Nodes = f.Nodes[:0] }
	require.Contains(t, caused(t, "unschedulable", noNodes), "app web: the cluster has no node, pod web-7c8b-q9q9q")
	noDNS := func(f *Facts) {
		f.Pods = slices.DeleteFunc(f.Pods, func(p corev1.Pod) bool { return p.Namespace == "kube-system" })
	}
	require.Equal(t, "app web: names cannot be resolved: the cluster DNS has no pod, pod web-7c8b-q9q9q, since 14:02 UTC", caused(t, "dns-down", noDNS))
	require.Contains(t, caused(t, "dns-down", func(f *Facts) { noDNS(f); f.Pods = nil }), "Deployment web is Degraded", "without pods nothing is known of the cluster DNS")
	require.Contains(t, caused(t, "claim-without-class", func(f *Facts) { f.Classes = nil }), "pod has unbound immediate PersistentVolumeClaims",
		"without storage classes nothing is known of a default one")
}

func TestTwoWorkloadsThatWaitForEachOther(t *testing.T) {
	cause := caused(t, "dependency-down", func(f *Facts) {
		for i := range f.Pods {
			if f.Pods[i].Name == "database-0" {
				f.Pods[i].Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}
			}
		}
		f.Logs["apps/database-0"] = []string{"dial tcp: lookup web on 10.96.0.10:53: connection refused"}
	})
	require.Contains(t, cause, "exit code 1")
}

func TestADiagnosisHasLimits(t *testing.T) {
	f := load(t, "crash-loop")
	long := strings.Repeat("no such thing ", 1000)
	yes := true
	for i := range 500 {
		name := fmt.Sprintf("p%d", i)
		f.Pods = append(f.Pods, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name + "-0", Namespace: "apps", OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSet", Name: name, Controller: &yes}}},
			Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
				Name: "c", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: long}},
			}}},
		})
		if i < maxLogs {
			f.Logs["apps/"+name+"-0"] = slices.Repeat([]string{long}, 100)
		}
		f.Events = append(f.Events, corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Type: "Warning", Reason: "Odd", Message: long,
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "apps", Name: name + "-0"},
		})
		f.Apps = append(f.Apps, argo.Application{Name: name, Health: "Degraded", HealthText: long})
		f.Gaps = append(f.Gaps, "x")
	}
	d := f.Diagnose()
	require.Len(t, d.Findings, maxFindings)
	require.Len(t, d.Events, maxEvents)
	require.Len(t, d.Apps, maxApps)
	require.Len(t, d.Gaps, maxGaps)
	for _, x := range d.Findings {
		require.LessOrEqual(t, len(x.Log), logLines)
		require.Less(t, len(x.Sentence), 2*maxText)
	}
	require.Less(t, len(d.Cause), 2*maxText)
}

func TestEventsAreToldNewestFirst(t *testing.T) {
	f := load(t, "image-not-found")
	f.Scope.Namespaces = []string{"apps"}
	f.Events = append(f.Events, corev1.Event{
		Type: "Warning", Reason: "Odd", Message: "about something else", LastTimestamp: metav1.NewTime(now()),
		InvolvedObject: corev1.ObjectReference{Kind: "Ingress", Namespace: "somebody", Name: "other"},
	})
	d := f.Diagnose()
	require.NotEmpty(t, d.Events)
	for i, e := range d.Events {
		require.Contains(t, e.Object, "apps/web-7c8b-", "what is in no namespace of the scope is not told")
		require.False(t, i > 0 && e.Last.After(d.Events[i-1].Last))
	}
}
