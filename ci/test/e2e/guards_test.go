package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// onCluster runs kubectl on a cluster and returns what it prints.
type onCluster func(t *testing.T, args ...string) string

// pushes is a push to the platform's repository by somebody who may push, as a script:
// a right to everything, and what is to bring it, in EVIL.
const pushes = `
git config --global http.sslVerify false
cd "$(mktemp -d)"
git clone -q "https://slipway:$PASSWORD@$ADDRESS/slipway/platform.git" . 2>&1
mkdir -p evil
cat > evil/admin.yaml <<'Y'
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: evil}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: User, name: evil}]
Y
printf '%s\n' "$EVIL" > root-app/templates/evil.yaml
git add -A
git -c user.name=evil -c user.email=evil@example.com commit -qm evil
git push -q origin HEAD:main
revision=$(git rev-parse HEAD)
kubectl annotate application -n argocd root --overwrite argocd.argoproj.io/refresh=hard >/dev/null
seen=
for i in $(seq 60); do
  kubectl get applications -n argocd -o json >seen.json
  if grep -q "$revision" seen.json && grep -q 'not permitted\|InvalidSpecError' seen.json && grep -q "$SAYS" seen.json; then
    seen=refused
    break
  fi
  sleep 1
done
sleep 5 # what it was refused once must stay so
kubectl get clusterrolebinding evil --ignore-not-found -o name
kubectl get clusterrolebinding evil >/dev/null 2>&1 || echo "not the administrator"
if [ "$seen" = refused ]; then echo refused; else cat seen.json; fi`

// evilApp is an Application of a project that brings the ClusterRoleBinding.
func evilApp(project string) string {
	return fmt.Sprintf(`apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: evil, namespace: argocd}
spec:
  project: %s
  source: {repoURL: "{{ .Values.repository.url }}", targetRevision: main, path: evil}
  destination: {server: https://kubernetes.default.svc, namespace: guestbook}
  syncPolicy: {automated: {prune: true}}
`, project)
}

const evilProject = `apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: evil, namespace: argocd}
spec:
  sourceRepos: ["*"]
  destinations: [{server: "*", namespace: "*"}]
  clusterResourceWhitelist: [{group: "*", kind: "*"}]
---
`

// refusesEvilPushes: whoever pushes to the platform's repository does not become the
// cluster's administrator by it. toolchain runs a script with the variables; install
// brings the platform back.
func refusesEvilPushes(t *testing.T, kubectl onCluster, toolchain func(t *testing.T, script string, env ...string) string, install func(t *testing.T) result) {
	password, err := base64.StdEncoding.DecodeString(kubectl(t, "get", "secret", "-n", "gitea", "gitea-slipway", "-o", "jsonpath={.data.password}"))
	require.NoError(t, err)
	address := kubectl(t, "get", "service", "-n", "gitea", "gitea", "-o", "jsonpath={.status.loadBalancer.ingress[0].ip}")
	for name, c := range map[string]struct{ push, says string }{
		"a project of its own":       {evilProject + evilApp("evil"), "AppProject"},
		"in the apps' project":       {evilApp("platform"), "ClusterRoleBinding"},
		"in the root's project":      {evilApp("slipway-root"), "slipway-root"},
		"in the project default":     {evilApp("default"), "default"},
		"the apps' project, widened": {strings.ReplaceAll(evilProject, "name: evil", "name: platform"), "AppProject"},
	} {
		t.Run(name, func(t *testing.T) {
			out := toolchain(t, pushes, "PASSWORD="+string(password), "ADDRESS="+address, "EVIL="+c.push, "SAYS="+c.says)
			require.Equal(t, "not the administrator\nrefused\n", out)
			install(t) // which pushes the release's tree
		})
	}
}

// edits are what somebody does to the reference platform by hand.
func edits() [][]string {
	patch := func(namespace, object, json string) []string {
		out := []string{"patch", object, "--type", "merge", "-p", json}
		if namespace != "" {
			out = append(out, "-n", namespace)
		}
		return out
	}
	return [][]string{
		{"scale", "-n", "gitea", "deployment/gitea", "--replicas=0"},
		{"set", "env", "-n", "gitea", "deployment/gitea", "HOME=/elsewhere"},
		{"set", "env", "-n", "gitea", "deployment/gitea", "ADDED=by-hand"},
		{"label", "-n", "gitea", "service/gitea", "app.kubernetes.io/name-", "by=hand"},
		patch("gitea", "configmap/gitea", `{"data":{"app.ini":"nothing","more":"of it"}}`),
		{"delete", "-n", "gitea", "networkpolicy/gitea"},
		{"scale", "-n", "argocd", "deployment/argocd-redis", "--replicas=0"},
		{"set", "env", "-n", "argocd", "deployment/argocd-repo-server", "ARGOCD_GPG_ENABLED=true"},
		{"delete", "-n", "argocd", "deployment/argocd-applicationset-controller"},
		{"delete", "-n", "argocd", "serviceaccount/argocd-redis"},
		patch("argocd", "configmap/argocd-cm", `{"data":{"timeout.reconciliation":"1h","added":"by hand"}}`),
		patch("argocd", "configmap/argocd-cmd-params-cm", `{"data":{"application.namespaces":null}}`),
		patch("argocd", "role/argocd-application-controller", `{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`),
		patch("argocd", "rolebinding/argocd-redis", `{"subjects":[{"kind":"User","name":"somebody","apiGroup":"rbac.authorization.k8s.io"}]}`),
		patch("", "clusterrole/argocd-application-controller", `{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]},{"nonResourceURLs":["*"],"verbs":["*"]},{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`),
		patch("argocd", "appproject/platform", `{"spec":{"clusterResourceWhitelist":[{"group":"*","kind":"*"}]}}`),
		patch("argocd", "configmap/outgoing-proxy", `{"data":{"HTTP_PROXY":"http://somebody:3128"}}`),
		{"delete", "-n", "argocd", "configmap/argocd-tls-certs-cm"},
		{"label", "namespace/database", "pod-security.kubernetes.io/enforce=privileged", "--overwrite"},
		{"scale", "-n", "guestbook", "deployment/guestbook", "--replicas=0"},
		{"delete", "-n", "guestbook", "service/guestbook"},
		{"delete", "-n", "database", "configmap", "--all"},
		{"label", "-n", "kube-system", "deployment/coredns", "by=hand"},
	}
}

// undoesDrift: what somebody has changed by hand is as before after an install. The
// edits come in any order.
func undoesDrift(t *testing.T, kubectl onCluster, install func(t *testing.T) result) {
	before := objects(t, kubectl)
	all := edits()
	require.GreaterOrEqual(t, len(all), 20)
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, edit := range all {
		t.Logf("kubectl %s", strings.Join(edit, " "))
		kubectl(t, edit...)
	}
	install(t)
	after := objects(t, kubectl)
	for name, was := range before {
		require.Contains(t, after, name)
		require.Equal(t, was, after[name], name)
	}
	require.Equal(t, "Success", kubectl(t, "get", "configmap", "-n", "slipway-system", "slipway-status", "-o", "jsonpath={.data.state}"))
	again := install(t)
	require.NotRegexp(t, `(?m)^\s*(preorchestrator|orchestrator)/\S+\s+succeeded`, again.out, "and then nothing is left to undo")
}

// objects are those of the platform, by kind, namespace and name, without what the
// cluster fills in itself.
func objects(t *testing.T, kubectl onCluster) map[string]string {
	t.Helper()
	const kinds = "deployments,statefulsets,daemonsets,services,configmaps,serviceaccounts,networkpolicies,roles,rolebindings,applications.argoproj.io,appprojects.argoproj.io"
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
				for _, port := range spec["ports"].([]any) {
					delete(port.(map[string]any), "nodePort")
				}
			}
			text, err := json.MarshalIndent(o, "", " ")
			require.NoError(t, err)
			out[kind+" "+namespace+"/"+name] = string(text)
		}
	}
	require.Greater(t, len(out), 40)
	return out
}

// wavesWait: what comes in a later wave was made after what comes in an earlier one was
// ready, by the cluster's own clock.
func wavesWait(t *testing.T, kubectl onCluster) {
	at := func(args ...string) time.Time {
		t.Helper()
		when, err := time.Parse(time.RFC3339, strings.TrimSpace(kubectl(t, args...)))
		require.NoError(t, err)
		return when
	}
	made := func(kind, namespace, name string) time.Time {
		t.Helper()
		return at("get", kind, "-n", namespace, name, "-o", "jsonpath={.metadata.creationTimestamp}")
	}
	base, database, guestbook := made("application", "argocd", "base"), made("application", "argocd", "database"), made("application", "argocd", "guestbook")
	require.False(t, database.Before(base))
	ready := at("get", "pods", "-n", "database", "-l", "app.kubernetes.io/name=database", "-o", `jsonpath={.items[0].status.conditions[?(@.type=="Ready")].lastTransitionTime}`)
	require.False(t, guestbook.Before(ready), "the guestbook was made at %s, the database was ready at %s", guestbook, ready)
	require.True(t, made("deployment", "guestbook", "guestbook").After(database))
	require.Empty(t, strings.TrimSpace(kubectl(t, "get", "application", "-n", "argocd", "toolbox", "--ignore-not-found", "-o", "name")), "an app that is off is absent")
}
