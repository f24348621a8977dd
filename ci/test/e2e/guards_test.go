package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// onCluster runs kubectl on a cluster and returns what it prints.
type onCluster func(t *testing.T, args ...string) string

// pushes is a push to the platform's repository by somebody who may push, as a script: what
// is to bring it is in EVIL, and beside it are a right to everything, a right to everything
// in a namespace, and a ConfigMap, which in itself is nothing, also in the namespace of
// others. The account that Argo CD has is told to push before. It prints the commit.
const pushes = `
git config --global http.sslVerify false
cd "$(mktemp -d)"
git clone -q "https://argocd:$READER@$ADDRESS/slipway/platform.git" .
git config user.name evil
git config user.email evil@example.com
git commit -q --allow-empty -m "from the one that reads"
for branch in main more; do
  ! git push -q origin "HEAD:$branch" 2>said || echo "it may write"
  grep -Eq '403|denied|not authorized' said || cat said
done
git reset -q --hard origin/main
git remote set-url origin "https://slipway:$WRITER@$ADDRESS/slipway/platform.git"
mkdir -p evil/cluster evil/namespace evil/harmless evil/others evil/hooks
cat > evil/cluster/admin.yaml <<'Y'
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: evil}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: User, name: evil}]
Y
sed 's/ClusterRoleBinding/RoleBinding/' evil/cluster/admin.yaml > evil/namespace/admin.yaml
printf '%s\n' '{apiVersion: v1, kind: ConfigMap, metadata: {name: evil}}' > evil/harmless/configmap.yaml
printf '%s\n' '{apiVersion: v1, kind: ConfigMap, metadata: {name: evil, namespace: kube-system}}' > evil/others/configmap.yaml
printf '%s\n' '{apiVersion: v1, kind: ConfigMap, metadata: {name: fine}}' > evil/hooks/fine.yaml
sed 's/{name: evil}/{name: evil, annotations: {argocd.argoproj.io\/hook: PreDelete}}/' evil/cluster/admin.yaml > evil/hooks/admin.yaml
printf '%s\n' '{apiVersion: v1, kind: ConfigMap, metadata: {name: evil, namespace: kube-system, annotations: {argocd.argoproj.io/hook: PostDelete}}}' > evil/hooks/others.yaml
printf '%s\n' "$EVIL" > root-app/templates/evil.yaml
git add -A
git commit -qm evil
git push -q origin HEAD:main
git rev-parse HEAD
test "$(git ls-remote origin | wc -l)" = 2 || git ls-remote origin # HEAD and main
`

// evilApp is an Application that brings one of the folders of pushes to a namespace.
func evilApp(name, project, folder, namespace string) string {
	return fmt.Sprintf(`---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: %s, namespace: argocd}
spec:
  project: %s
  source: {repoURL: "{{ .Values.repository.url }}", targetRevision: main, path: evil/%s}
  destination: {server: https://kubernetes.default.svc, namespace: %s}
  syncPolicy: {automated: {prune: true}}
`, name, project, folder, namespace)
}

// evilProject is an AppProject without bounds.
func evilProject(name string) string {
	return fmt.Sprintf(`---
apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: %s, namespace: argocd}
spec:
  sourceRepos: ["*"]
  destinations: [{server: "*", namespace: "*"}]
  clusterResourceWhitelist: [{group: "*", kind: "*"}]
`, name)
}

// said is what Argo CD says of its Applications, by name: one line for each condition,
// operation and object.
func said(t *testing.T, kubectl onCluster) map[string]string {
	t.Helper()
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Status   struct {
				Conditions     []struct{ Type, Message string }
				OperationState struct {
					Phase, Message string
					SyncResult     struct {
						Revision  string
						Resources []struct{ Kind, Name, Status, Message string }
					}
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(kubectl(t, "get", "applications", "-n", "argocd", "-o", "json")), &list))
	out := map[string]string{}
	for _, a := range list.Items {
		var b strings.Builder
		for _, c := range a.Status.Conditions {
			fmt.Fprintf(&b, "%s: %s\n", c.Type, c.Message)
		}
		operation := a.Status.OperationState
		fmt.Fprintf(&b, "at %s: %s: %s\n", operation.SyncResult.Revision, operation.Phase, operation.Message)
		for _, r := range operation.SyncResult.Resources {
			fmt.Fprintf(&b, "%s %s: %s: %s\n", r.Kind, r.Name, r.Status, r.Message)
		}
		out[a.Metadata.Name] = b.String()
	}
	return out
}

// refusesEvilPushes: whoever pushes to the platform's repository gets no right by it, in the
// cluster or in a namespace, and nothing into the namespaces of others; the account that
// Argo CD has cannot even push. toolchain runs a script with the variables; install brings
// the platform back.
func refusesEvilPushes(t *testing.T, kubectl onCluster, toolchain func(t *testing.T, script string, env ...string) string, install func(t *testing.T) result) {
	password := func(secret string) string {
		t.Helper()
		text, err := base64.StdEncoding.DecodeString(kubectl(t, "get", "secret", "-n", "gitea", secret, "-o", "jsonpath={.data.password}"))
		require.NoError(t, err)
		require.NotEmpty(t, text)
		return string(text)
	}
	address := kubectl(t, "get", "service", "-n", "gitea", "gitea", "-o", "jsonpath={.status.loadBalancer.ingress[0].ip}")
	evil := func(t *testing.T) string {
		t.Helper()
		return kubectl(t, "get", "clusterrolebindings,rolebindings,configmaps,appprojects", "-A", "--field-selector", "metadata.name=evil", "-o", "name")
	}
	bounds := func(t *testing.T) string {
		t.Helper()
		return kubectl(t, "get", "appprojects", "-n", "argocd", "-o", "jsonpath={range .items[*]}{.metadata.name} {.spec}{\"\\n\"}{end}")
	}
	before := bounds(t)
	const finalizers = "finalizers: [pre-delete-finalizer.argocd.argoproj.io, post-delete-finalizer.argocd.argoproj.io]"
	hooks := strings.Replace(evilApp("evil-hooks", "platform", "hooks", "guestbook"), "namespace: argocd}", "namespace: argocd, "+finalizers+"}", 1)
	says := func(t *testing.T, what map[string]string) {
		t.Helper()
		open := maps.Clone(what)
		var seen map[string]string
		for end := time.Now().Add(90 * time.Second); len(open) > 0; time.Sleep(time.Second) {
			require.True(t, time.Now().Before(end), "Argo CD does not say %v, but %v", open, seen)
			seen = said(t, kubectl)
			maps.DeleteFunc(open, func(app, says string) bool { return regexp.MustCompile(says).MatchString(seen[app]) })
		}
		time.Sleep(5 * time.Second) // what it was refused once must stay so
		require.Empty(t, evil(t))
	}
	for name, c := range map[string]struct {
		push string
		says map[string]string // what Argo CD has to say of an Application
	}{
		"Applications": {
			evilApp("evil-cluster", "platform", "cluster", "guestbook") +
				evilApp("evil-namespace", "platform", "namespace", "guestbook") +
				evilApp("evil-argocd", "platform", "harmless", "argocd") +
				evilApp("evil-system", "platform", "harmless", "kube-system") +
				evilApp("evil-others", "platform", "others", "guestbook") +
				evilApp("evil-root", "slipway-root", "cluster", "guestbook") +
				evilApp("evil-default", "default", "cluster", "guestbook"),
			map[string]string{
				"evil-cluster":   `ClusterRoleBinding is not permitted in project platform`,
				"evil-namespace": `RoleBinding is not permitted in project platform`,
				"evil-argocd":    `InvalidSpecError: .*namespace 'argocd' do not match any of the allowed destinations in project 'platform'`,
				"evil-system":    `InvalidSpecError: .*namespace 'kube-system' do not match any of the allowed destinations in project 'platform'`,
				"evil-others":    `namespace kube-system is not permitted in project 'platform'`,
				"evil-root":      `InvalidSpecError: .*project 'slipway-root'`,
				"evil-default":   `InvalidSpecError: .*default`,
			},
		},
		"hooks of a deletion": {hooks, map[string]string{"evil-hooks": `ConfigMap fine: Synced`}},
		"projects": {
			evilProject("evil") + evilProject("platform") + evilApp("evil-own", "evil", "cluster", "guestbook"),
			map[string]string{"root": `AppProject evil: SyncFailed: .*AppProject is not permitted in project slipway-root(?s:.*)AppProject platform: SyncFailed: `},
		},
	} {
		t.Run(name, func(t *testing.T) {
			push := func(evil string) (seen string) { // what Argo CD says of the root once it has it
				t.Helper()
				revision := strings.TrimSpace(toolchain(t, pushes, "READER="+password("gitea-reader"), "WRITER="+password("gitea-slipway"), "ADDRESS="+address, "EVIL="+evil))
				require.Regexp(t, `^[0-9a-f]{40}$`, revision, "it could be pushed, and not by the account that reads")
				kubectl(t, "annotate", "application", "-n", "argocd", "root", "--overwrite", "argocd.argoproj.io/refresh=hard")
				return "at " + revision + ": (?s:.*)"
			}
			c.says["root"] = push(c.push) + c.says["root"]
			says(t, c.says)
			if c.push == hooks { // which Argo CD runs when the Application is deleted
				kubectl(t, "delete", "application", "-n", "argocd", "evil-hooks", "--wait=false")
				says(t, map[string]string{"evil-hooks": `not permitted in project platform`})
				says(t, map[string]string{"root": push("# nothing evil")}) // or the root makes it again, and nobody removes its finalizers
				kubectl(t, "patch", "application", "-n", "argocd", "evil-hooks", "--type=merge", "--patch", `{"metadata": {"finalizers": null}}`)
			}
			require.Equal(t, before, bounds(t))
			install(t) // which pushes the release's tree
		})
	}
	require.NotContains(t, kubectl(t, "get", "applications", "-n", "argocd", "-o", "name"), "evil")
}
