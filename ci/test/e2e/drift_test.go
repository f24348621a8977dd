package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// byHand is what somebody does with kubectl to an object, which has the name that objects
// gives it: a command, and what follows the object.
type byHand struct {
	object, verb string
	args         []string
}

func (e byHand) command() []string {
	kind, rest, _ := strings.Cut(e.object, " ")
	namespace, name, _ := strings.Cut(rest, "/")
	out := append(strings.Fields(e.verb), strings.ToLower(kind)+"/"+name)
	if namespace != noNamespace {
		out = append(out, "-n", namespace)
	}
	return append(out, e.args...)
}

// do does it.
func (e byHand) do(t *testing.T, kubectl onCluster) {
	t.Helper()
	t.Logf("kubectl %s", strings.Join(e.command(), " "))
	kubectl(t, e.command()...)
}

func patched(object, json string) byHand {
	return byHand{object, "patch", []string{"--type", "merge", "-p", json}}
}

// edits are of what Slipway itself installs: each kind of edit, of each kind of object.
func edits() []byHand {
	return []byHand{
		{"Deployment gitea/gitea", "scale", []string{"--replicas=0"}},
		{"Deployment gitea/gitea", "set env", []string{"HOME=/elsewhere"}},
		{"Deployment gitea/gitea", "set env", []string{"ADDED=by-hand"}},
		{"Service gitea/gitea", "label", []string{"app.kubernetes.io/name-", "by=hand"}},
		patched("ConfigMap gitea/gitea", `{"data":{"app.ini":"nothing","more":"of it"}}`),
		{"NetworkPolicy gitea/gitea", "delete", nil},
		{"Deployment argocd/argocd-redis", "scale", []string{"--replicas=0"}},
		{"Deployment argocd/argocd-repo-server", "scale", []string{"--replicas=0"}},
		{"Deployment argocd/argocd-repo-server", "set env", []string{"ARGOCD_GPG_ENABLED=true"}},
		{"Deployment argocd/argocd-applicationset-controller", "delete", nil},
		{"ServiceAccount argocd/argocd-redis", "delete", nil},
		patched("ConfigMap argocd/argocd-cm", `{"data":{"timeout.reconciliation":"1h","added":"by hand"}}`),
		patched("ConfigMap argocd/argocd-cmd-params-cm", `{"data":{"application.namespaces":null}}`),
		patched("Role argocd/argocd-application-controller", `{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`),
		patched("RoleBinding argocd/argocd-redis", `{"subjects":[{"kind":"User","name":"somebody","apiGroup":"rbac.authorization.k8s.io"}]}`),
		patched("ClusterRole "+noNamespace+"/argocd-application-controller", `{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]},{"nonResourceURLs":["*"],"verbs":["*"]},{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`),
		patched("AppProject argocd/platform", `{"spec":{"clusterResourceWhitelist":[{"group":"*","kind":"*"}]}}`),
		patched("ConfigMap argocd/outgoing-proxy", `{"data":{"HTTP_PROXY":"http://somebody:3128"}}`),
		{"ConfigMap argocd/argocd-tls-certs-cm", "delete", nil},
		{"Namespace " + noNamespace + "/database", "label", []string{"pod-security.kubernetes.io/enforce=privileged", "--overwrite"}},
		{"Deployment kube-system/coredns", "label", []string{"by=hand"}},
		patched("Application argocd/root", `{"spec":{"source":{"targetRevision":"elsewhere"},"syncPolicy":{"automated":null}}}`),
	}
}

// appEdits are of what Argo CD brings, which mends it by itself; the Application that would
// not mend its objects any more, too.
func appEdits() []byHand {
	return []byHand{
		patched("Application argocd/guestbook", `{"spec":{"syncPolicy":{"automated":null}}}`),
		{"Deployment guestbook/guestbook", "scale", []string{"--replicas=0"}},
		{"Service guestbook/guestbook", "delete", nil},
		{"NetworkPolicy database/database", "delete", nil},
	}
}

// anyEdits are n edits of objects that a deployment has installed and that have none yet,
// whichever these are.
func anyEdits(t *testing.T, random *rand.Rand, deployment string, before map[string]string, taken []byHand, n int) []byHand {
	t.Helper()
	names := slices.Sorted(maps.Keys(before))
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	var out []byHand
	for _, name := range names {
		if len(out) == n {
			break
		}
		if slices.ContainsFunc(taken, func(e byHand) bool { return e.object == name }) {
			continue
		}
		var o map[string]any
		require.NoError(t, json.Unmarshal([]byte(before[name]), &o))
		if can := possible(deployment, name, o); len(can) > 0 {
			out = append(out, can[random.IntN(len(can))])
		}
	}
	require.Len(t, out, n)
	return out
}

// possible are edits of an object; none of what is not the deployment's, and of its own records.
// Accounts stay, for running pods would have to start again, and so does the address of the
// git server, which others resolve.
func possible(deployment, name string, o map[string]any) []byHand {
	kind, rest, _ := strings.Cut(name, " ")
	_, tracked := inside(o, "metadata", "annotations")["argocd.argoproj.io/tracking-id"]
	if inside(o, "metadata", "labels")["slipway.sh/deployment"] != deployment || tracked || strings.HasPrefix(rest, "slipway-system/") {
		return nil
	}
	by := func(verb string, args ...string) byHand { return byHand{name, verb, args} }
	label, annotation, gone := by("label", "by=hand"), by("annotate", "by=hand"), by("delete")
	const anything = `{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}`
	switch kind {
	case "Namespace":
		if inside(o, "metadata", "labels")["pod-security.kubernetes.io/enforce"] == nil {
			return nil
		}
		return []byHand{by("label", "pod-security.kubernetes.io/enforce-"), by("label", "pod-security.kubernetes.io/enforce=privileged", "--overwrite")}
	case "Deployment", "StatefulSet", "DaemonSet":
		return []byHand{label, annotation, by("set env", "BY=hand"), by("set image", "*=example.com/by-hand:1"), gone}
	case "ConfigMap":
		out := []byHand{patched(name, `{"data":{"added":"by hand"}}`), gone}
		for key := range inside(o, "data") {
			text, _ := json.Marshal(key)
			out = append(out, patched(name, `{"data":{`+string(text)+`:null}}`), patched(name, `{"data":{`+string(text)+`:"by hand"}}`))
		}
		slices.SortFunc(out, func(a, b byHand) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		return out
	case "Service":
		return []byHand{label, annotation, patched(name, `{"spec":{"selector":{"by":"hand"}}}`)}
	case "NetworkPolicy":
		return []byHand{label, annotation, gone, patched(name, `{"spec":{"podSelector":{"matchLabels":{"by":"hand"}}}}`)}
	case "Role", "ClusterRole":
		return []byHand{label, annotation, patched(name, `{"rules":[`+anything+`]}`)}
	case "RoleBinding", "ClusterRoleBinding":
		more := map[string]any{"kind": "User", "name": "by-hand", "apiGroup": "rbac.authorization.k8s.io"}
		subjects, _ := o["subjects"].([]any)
		text, _ := json.Marshal(map[string]any{"subjects": append(slices.Clone(subjects), more)})
		return []byHand{label, annotation, patched(name, string(text))}
	case "AppProject":
		return []byHand{label, annotation, patched(name, `{"spec":{"destinations":[{"server":"*","namespace":"*"}]}}`)}
	case "ServiceAccount":
		return []byHand{label, annotation}
	}
	return nil
}

// unlike is a source of edits that are others each time, unless somebody names its seed.
func unlike(t *testing.T) *rand.Rand {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv("SLIPWAY_E2E_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	t.Logf("to have the same edits: SLIPWAY_E2E_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// requireUndone asserts that an install brings the objects back as they were before, and that
// the next one finds nothing to do. kinds are as objects has them, and also is what else has to
// hold in between.
func requireUndone(t *testing.T, kubectl onCluster, install func(t *testing.T) result, before map[string]string, kinds string, also ...func(t *testing.T)) {
	t.Helper()
	install(t)
	after := objects(t, kubectl, kinds)
	for name, was := range before {
		require.Contains(t, after, name)
		require.Equal(t, was, after[name], name)
	}
	for _, check := range also {
		check(t)
	}
	require.Equal(t, "Success", kubectl(t, "get", "configmap", "-n", "slipway-system", "slipway-status", "-o", "jsonpath={.data.state}"))
	again := install(t)
	require.NotRegexp(t, `(?m)^\s*(preorchestrator|orchestrator)/\S+\s+succeeded`, again.out, "and then nothing is left to undo")
}

// undoesDrift: what somebody has changed by hand is as before after an install. Which
// objects beside those of edits, and in which order, is another each time.
func undoesDrift(t *testing.T, deployment string, kubectl onCluster, install func(t *testing.T) result) {
	const kinds = ownKinds + ",applications.argoproj.io,appprojects.argoproj.io"
	random, before := unlike(t), objects(t, kubectl, kinds)
	require.Greater(t, len(before), 40)
	own := edits()
	require.GreaterOrEqual(t, len(own), 20)
	own = append(own, anyEdits(t, random, deployment, before, own, 12)...)
	all := append(own, appEdits()...)
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, edit := range all {
		require.Contains(t, before, edit.object)
		edit.do(t, kubectl)
	}
	kubectl(t, "create", "configmap", "by-hand", "-n", "argocd", "--from-literal=is=theirs")
	theirs := editSecrets(t, random, kubectl)
	requireUndone(t, kubectl, install, before, kinds, theirs, func(t *testing.T) {
		t.Helper()
		require.Equal(t, "theirs", kubectl(t, "get", "configmap", "by-hand", "-n", "argocd", "-o", "jsonpath={.data.is}"), "what is no part of the platform")
		for namespace, name := range map[string]string{"gitea": "gitea", "argocd": "argocd-repo-server"} {
			require.Equal(t, "1", kubectl(t, "get", "deployment", "-n", namespace, name, "-o", "jsonpath={.status.availableReplicas}"), name)
		}
	})
}

// undoesAnyDrift is undoesDrift of any platform: ten objects are edited, whichever these are, and
// the Secret of a certificate.
func undoesAnyDrift(t *testing.T, deployment string, kubectl onCluster, install func(t *testing.T) result, certificate string) {
	random, before := unlike(t), objects(t, kubectl, ownKinds)
	for _, edit := range anyEdits(t, random, deployment, before, nil, 10) {
		edit.do(t, kubectl)
	}
	was := ownSecrets(t, kubectl)[certificate]
	spoil(t, kubectl, certificate)
	requireUndone(t, kubectl, install, before, ownKinds, func(t *testing.T) {
		t.Helper()
		requireIssued(t, was.Data, ownSecrets(t, kubectl)[certificate].Data)
	})
}

// remakesANamespace: an install that begins while a namespace is being deleted waits until it is
// gone, makes it again with what was in it, and undoes what else has drifted.
func remakesANamespace(t *testing.T, kubectl onCluster, install func(t *testing.T) result) {
	const kinds = ownKinds + ",applications.argoproj.io,appprojects.argoproj.io"
	before := objects(t, kubectl, kinds)
	uid := func() string {
		t.Helper()
		return kubectl(t, "get", "namespace", "guestbook", "-o", "jsonpath={.metadata.uid}")
	}
	was := uid()
	byHand{"Deployment gitea/gitea", "scale", []string{"--replicas=0"}}.do(t, kubectl)
	byHand{"Namespace " + noNamespace + "/guestbook", "delete", []string{"--wait=false"}}.do(t, kubectl)
	requireUndone(t, kubectl, install, before, kinds)
	require.NotEqual(t, was, uid())
}

// noNamespace is what objects writes where a namespace would be.
const noNamespace = "<nil>"

// inside is the map under some keys; an empty one, which is not part of o, if there is none.
func inside(o map[string]any, keys ...string) map[string]any {
	for _, key := range keys {
		next, ok := o[key].(map[string]any)
		if !ok {
			return map[string]any{}
		}
		o = next
	}
	return o
}

// ownKinds are kinds of objects in namespaces of which Slipway installs some.
const ownKinds = "deployments,statefulsets,daemonsets,services,configmaps,serviceaccounts,networkpolicies,roles,rolebindings"

// objects are those of the platform, by kind, namespace and name, without what the
// cluster fills in itself. kinds are those in namespaces.
func objects(t *testing.T, kubectl onCluster, kinds string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, query := range [][]string{{"get", kinds, "-A", "-o", "json"}, {"get", "namespaces,clusterroles,clusterrolebindings", "-l", "slipway.sh/deployment", "-o", "json"}} {
		var list struct{ Items []map[string]any }
		require.NoError(t, json.Unmarshal([]byte(kubectl(t, query...)), &list))
		for _, o := range list.Items {
			meta := o["metadata"].(map[string]any)
			kind, name, namespace := o["kind"].(string), meta["name"].(string), fmt.Sprint(meta["namespace"])
			if namespace == "kube-system" && name != "coredns" || slices.Contains([]string{"kube-node-lease", "kube-public", "default"}, namespace) || name == "kube-root-ca.crt" || name == "slipway-status" {
				continue
			}
			delete(o, "status")
			delete(o, "operation")
			for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"} {
				delete(meta, field)
			}
			if notes, ok := meta["annotations"].(map[string]any); ok {
				for _, note := range []string{"deployment.kubernetes.io/revision", "argocd.argoproj.io/refresh"} {
					delete(notes, note)
				}
				if len(notes) == 0 {
					delete(meta, "annotations")
				}
			}
			if spec, ok := o["spec"].(map[string]any); ok && kind == "Service" {
				for _, field := range []string{"clusterIP", "clusterIPs", "healthCheckNodePort"} {
					delete(spec, field)
				}
				ports, _ := spec["ports"].([]any) // a headless Service may have none
				for _, port := range ports {
					delete(port.(map[string]any), "nodePort")
				}
			}
			delete(inside(o, "spec", "template", "metadata", "annotations"), "slipway.sh/config") // a digest of Secrets, too
			text, err := json.MarshalIndent(o, "", " ")
			require.NoError(t, err)
			out[kind+" "+namespace+"/"+name] = string(text)
		}
	}
	return out
}
