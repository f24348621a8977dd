package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// TestExistingCluster installs the platform to an existing cluster, with
// objects of others in it, and removes it again.
func TestExistingCluster(t *testing.T) {
	inTurn(t)
	r := startRegistry(t)
	host, kubeconfig := another(t, r, open(t, "e2e-host"))
	bytes, err := os.ReadFile(kubeconfig)
	require.NoError(t, err)

	d := open(t, "e2e-existing")
	lock := r.push(t, d.Bundle, filepath.Join(t.TempDir(), "slipway.lock.json"))
	base := func(context string) string {
		return fmt.Sprintf("provider: existing\nexisting: {kubeconfig: \"file:%s\", context: %q, registry: %q}\n", kubeconfig, context, r.bridge+"/team/slipway")
	}
	as := func(context string) string { return write(t, configured+base(context)) }
	own := strings.TrimSpace(host.kubectl(t, "config", "current-context"))
	bundle := &kept{deployment: d, config: as(own), kubeconfig: host.kubeconfig}
	d.Lock = lock
	k := &kept{deployment: d, config: as(own), kubeconfig: host.kubeconfig}
	k.forget(t)
	before := host.everything(t)

	// Each builds on the one before.
	stage := func(name string, do func(t *testing.T)) { require.True(t, t.Run(name, do)) }
	stage("what cannot be used is refused, and nothing is made", func(t *testing.T) {
		for name, c := range map[string]struct {
			with *kept
			code int
			says []string
		}{
			"credentials of a program": {k.with(as("plugin")), 2, []string{"ACC-003", "(exec: aws)", "kubectl create clusterrolebinding slipway"}},
			"another context":          {k.with(as("prod")), 2, []string{"ACC-001", "it has no context prod, but ", "installer, lesser, plugin"}},
			"few rights": {k.with(as("weak")), 3, []string{"INF-008", "may not do everything", "may not create, update, patch, delete namespaces",
				"may not get, list, watch, create, update, patch, delete clusterroles.rbac.authorization.k8s.io"}},
			"a bundle": {bundle, 2, []string{"IMG-008", "slipway bundle push"}},
		} {
			r := c.with.cli(t, "install")
			require.Equal(t, c.code, r.code, "%s: %s", name, slipway.Tail(r.err))
			for _, says := range c.says {
				require.Contains(t, r.err, says, name)
			}
		}
		require.Equal(t, before, host.everything(t))
	})

	stage("without volumes and addresses nothing is installed", long(func(t *testing.T) {
		of := func(class string) *kept {
			return k.with(write(t, configured+strings.TrimSuffix(base(own), "}\n")+", storageClass: "+class+"}\n"))
		}
		bad := of("nobodys")
		r := bad.cli(t, "install")
		require.Equal(t, 3, r.code, slipway.Tail(r.err))
		require.Contains(t, r.err, "the cluster has no storage class nobodys; it has: foreign, ")
		host.apply(t, "{apiVersion: v1, kind: Service, metadata: {name: taken, namespace: foreign}, spec: {type: LoadBalancer, selector: {app: site}, ports: [{port: 18080}]}}")
		host.kubectl(t, "wait", "-n", "foreign", "service/taken", "--for=jsonpath={.status.loadBalancer.ingress[0].ip}", "--timeout=2m")
		bad = of("foreign") // which nobody provides
		r = bad.cli(t, "install")
		require.Contains(t, []int{4, 5}, r.code, slipway.Tail(r.err))
		for _, says := range []string{"INF-020", "check that the storage class works", "use the load balancer: ", "port 18080/TCP is taken by Service foreign/taken"} {
			require.Contains(t, r.err, says)
		}
		host.kubectl(t, "delete", "service", "-n", "foreign", "taken")
		require.NotContains(t, host.kubectl(t, "get", "namespaces", "-o", "name"), "gitea")
		bad.must(t, "destroy", "--yes")
		host.requireAgain(t, before)
	}))

	stage("install", func(t *testing.T) {
		k.killed(t, 30*time.Second)
		requireInstalled(t, k.must(t, "install", patient))
		k.requireAlike(t, r.bridge+"/team/slipway/")
		now := host.everything(t)
		for name, text := range before {
			require.Equal(t, text, now[name], name)
		}
		pods := host.kubectl(t, "get", "pods", "-A", "-o", "jsonpath={range .items[*]}{.metadata.namespace}{range .spec.containers[*]} {.image}{end}{\"\\n\"}{end}")
		for line := range strings.Lines(pods) {
			if namespace, image, _ := strings.Cut(strings.TrimSpace(line), " "); namespace != "kube-system" && namespace != "foreign" && !strings.HasPrefix(namespace, "local-path") {
				require.Contains(t, image, r.bridge+"/team/slipway/", line)
			}
		}
	})

	stage("what was changed by hand is undone", long(func(t *testing.T) {
		undoesAnyDrift(t, k.Name, host.kubectl, func(t *testing.T) result { return k.must(t, "install") }, "gitea/gitea-tls")
	}))

	stage("commands reach it", func(t *testing.T) {
		var s status
		require.NoError(t, json.Unmarshal([]byte(k.must(t, "status", "--live", "--output", "json").out), &s))
		requireHealthy(t, s, apps...)
		require.Contains(t, k.must(t, "toolchain", "--", "kubectl", "get", "configmap", "-n", "foreign", "settings", "-o", "name").out, "configmap/settings")
		require.Contains(t, k.must(t, "kubeconfig").out, "tls-server-name: cluster")
		k.must(t, "test", "smoke")
		k.must(t, "test", "apps-deploy") // which the destroy finds
		up := k.cli(t, "cluster")
		require.Equal(t, 2, up.code)
		require.Contains(t, up.err, "DEP-002")
	})

	stage("a state that knows nothing of it touches nothing", long(func(t *testing.T) {
		installed := host.everything(t)
		k.must(t, "toolchain", "--", "rm", "-r", "/slipway/state/cluster", "/slipway/state/deployment")
		for _, command := range []string{"install", "destroy"} {
			r := k.cli(t, command, "--yes")
			require.Equal(t, 3, r.code, "%s: %s", command, slipway.Tail(r.err))
			require.Contains(t, r.err, "INF-013")
			require.Contains(t, r.err, "the cluster has a deployment e2e-existing since")
		}
		require.Equal(t, installed, host.everything(t))
		require.Regexp(t, `(?m)^\s*preorchestrator/gitea\s+reused`, k.must(t, "install", "--take-ownership").out)
	}))

	stage("with new credentials everything is reused", long(func(t *testing.T) {
		again := k.with(as("installer")).must(t, "install")
		for _, step := range []string{
			"infrastructure/cluster-preflight", "infrastructure/terraform", "infrastructure/cluster", "infrastructure/storage", "infrastructure/loadbalancer",
			"preorchestrator/namespaces", "preorchestrator/gitea", "preorchestrator/argocd", "orchestrator/sync",
		} {
			require.Regexp(t, `(?m)^\s*`+step+`\s+reused`, again.out)
		}
		require.Regexp(t, `(?m)^\s*postorchestrator/access\s+succeeded`, again.out, "it keeps the configuration, which names the credentials")
	}))

	stage("no credential is in the record", func(t *testing.T) {
		secret := map[string]string{}
		for _, path := range []string{"{.users[*].user.token}", "{.users[*].user.client-key-data}"} {
			value, err := exec.CommandContext(t.Context(), filepath.Join(d.Bundle, "bin", "kubectl"), "--kubeconfig", kubeconfig, "config", "view", "--raw", "-o", "jsonpath="+path).Output()
			require.NoError(t, err)
			for n, part := range strings.Fields(string(value)) {
				secret[fmt.Sprint(path, n)] = part
			}
		}
		require.Len(t, secret, 4)
		dir := filepath.Join(t.TempDir(), "report")
		k.must(t, "report", "--out", dir)
		require.NoError(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			for name, value := range secret {
				require.NotContains(t, string(text), value, "%s in %s", name, path)
			}
			return err
		}))
	})

	const forged = "Application tenant/forged (with the deployment's label, though Slipway did not make it)"
	stage("a tenant adds nothing to what a destroy takes", func(t *testing.T) {
		host.apply(t, tenants)
		plan := k.must(t, "plan", "destroy").out
		require.NotContains(t, plan, "tenants-target")
		require.NotContains(t, plan, "tenant/")
		host.kubectl(t, "create", "configmap", "-n", "slipway-system", "slipway-removal", "--from-literal=removal.json={}")
		k.must(t, "plan", "destroy") // whoever may write ConfigMaps there changes nothing
	})

	stage("destroy takes out what is ours and nothing else", func(t *testing.T) {
		r := k.must(t, "destroy", "--yes")
		require.Contains(t, r.err, "kept "+forged)
		host.kubectl(t, "get", "clusterrole", "tenants-target")
		host.kubectl(t, "get", "application", "-n", "tenant", "forged")
		host.kubectl(t, "delete", "clusterrole/tenants-target", "namespace/tenant")
		k.must(t, "destroy", "--yes") // which takes the definition, now that nobody has an object of it
		require.Regexp(t, `infrastructure/platform-remove\s+succeeded`, r.out)
		require.Regexp(t, `infrastructure/crds-remove\s+succeeded`, r.out)
		require.Regexp(t, `infrastructure/inventory\s+succeeded`, r.out)
		host.requireAgain(t, before)
		require.Equal(t, "Released", host.kubectl(t, "get", "pv", "foreign-released", "-o", "jsonpath={.status.phase}"))
		require.NotEmpty(t, host.kubectl(t, "get", "service", "-n", "foreign", "site", "-o", "jsonpath={.status.loadBalancer.ingress[0].ip}"))
	})

	stage("images of any chart come from the registry", long(func(t *testing.T) { k.imagesThere(t, r, base(own)) }))
	stage("a platform of manifests, with no more rights than it needs", long(k.with(as("lesser")).manifestsThere))
	stage("a platform of addons as well", long(func(t *testing.T) { k.addonsThere(t, base(own)) }))

	now, err := os.ReadFile(kubeconfig)
	require.NoError(t, err)
	require.Equal(t, string(bytes), string(now), "the user's own file is never written")
}

// tenants is what somebody with rights in a namespace of their own makes there, and what that
// names: a role of somebody else's.
const tenants = `
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: tenants-target}, rules: []}
---
{apiVersion: v1, kind: Namespace, metadata: {name: tenant}}
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: forged
  namespace: tenant
  labels: {slipway.sh/deployment: e2e-existing}
  annotations: {argocd.argoproj.io/tracking-id: "root:argoproj.io/Application:tenant/forged"}
spec:
  project: default
  source: {repoURL: "https://git.invalid/x.git", path: ., targetRevision: main}
  destination: {server: "https://kubernetes.default.svc", namespace: tenant}
status: {resources: [{group: rbac.authorization.k8s.io, kind: ClusterRole, name: tenants-target}]}
`
