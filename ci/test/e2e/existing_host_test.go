package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// theirObjects are what others have in a cluster: among them a volume that nobody claims
// any more, of a namespace that is gone, a Helm release and a load balancer.
const theirObjects = `
apiVersion: v1
kind: Namespace
metadata: {name: foreign, labels: {owner: others}, annotations: {note: keep}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: foreign}
data: {colour: red}
---
apiVersion: v1
kind: Secret
metadata: {name: sh.helm.release.v1.theirs.v1, namespace: foreign, labels: {owner: helm, name: theirs, status: deployed, version: "1"}}
type: helm.sh/release.v1
stringData: {release: theirs}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: foreign-bound}
spec:
  capacity: {storage: 1Mi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  hostPath: {path: /tmp/foreign-bound}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: kept, namespace: foreign}
spec: {storageClassName: "", volumeName: foreign-bound, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: foreign-released}
spec:
  capacity: {storage: 1Mi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  hostPath: {path: /tmp/foreign-released}
  claimRef: {apiVersion: v1, kind: PersistentVolumeClaim, namespace: gone, name: data, uid: 6f3b2f0a-0000-4000-8000-000000000000}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: foreign-reader}
rules: [{apiGroups: [""], resources: [namespaces], verbs: [get, list, watch]}]
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: foreign}
provisioner: example.com/none
reclaimPolicy: Retain
---
apiVersion: v1
kind: Service
metadata: {name: site, namespace: foreign}
spec: {type: LoadBalancer, selector: {app: site}, ports: [{port: 18999}]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: weak, namespace: foreign}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: foreign-weak}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: foreign-reader}
subjects: [{kind: ServiceAccount, name: weak, namespace: foreign}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: installer, namespace: foreign}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: foreign-installer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: installer, namespace: foreign}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: lesser, namespace: foreign}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: foreign-lesser}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: foreign-lesser}
subjects: [{kind: ServiceAccount, name: lesser, namespace: foreign}]
---
# What docs/existing.md has a platform without Argo CD need, one that labels a node, has gates
# of kind http, and of the other kinds PodDisruptionBudgets.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: foreign-lesser}
rules:
  - {apiGroups: ["*"], resources: ["*"], verbs: [list]}
  - {apiGroups: [""], resources: [nodes], verbs: [get, list, watch, patch]}
  - {apiGroups: [""], resources: [events], verbs: [get, list, watch]}
  - {apiGroups: [storage.k8s.io], resources: [storageclasses], verbs: [get, list, watch]}
  - {apiGroups: [""], resources: [pods/log, services/proxy], verbs: [get]}
  - {apiGroups: [""], resources: [persistentvolumes], verbs: [get, list, patch, delete]}
  - apiGroups: ["", apps, batch, policy, networking.k8s.io, apiextensions.k8s.io, rbac.authorization.k8s.io]
    resources:
      - namespaces
      - secrets
      - configmaps
      - services
      - serviceaccounts
      - pods
      - persistentvolumeclaims
      - deployments
      - statefulsets
      - daemonsets
      - jobs
      - poddisruptionbudgets
      - networkpolicies
      - customresourcedefinitions
      - roles
      - clusterroles
      - rolebindings
      - clusterrolebindings
    verbs: [get, list, watch, create, update, patch, delete]
`

// allow tells a node that it pulls from a registry without TLS, as its owner would: the
// first text is the image of a shell, the second the registry.
const allow = `
apiVersion: v1
kind: Pod
metadata: {name: allow-registry, namespace: foreign}
spec:
  restartPolicy: Never
  volumes: [{name: registries, hostPath: {path: /run/slipway-node/registries, type: Directory}}]
  containers:
    - name: allow
      image: %[1]s
      command: [/bin/sh, -c, 'busybox mkdir -p "/registries/%[2]s" && busybox printf "server = \"http://%[2]s\"\n[host.\"http://%[2]s\"]\n  capabilities = [\"pull\", \"resolve\"]\n" >"/registries/%[2]s/hosts.toml"']
      volumeMounts: [{name: registries, mountPath: /registries}]
`

// apply applies YAML.
func (k *kept) apply(t *testing.T, text string) {
	t.Helper()
	k.kubectl(t, "apply", "--filename", write(t, text))
}

// everything is all objects of a cluster, without what changes by itself, by kind and name.
func (k *kept) everything(t *testing.T) map[string]string {
	t.Helper()
	var kinds []string
	for _, kind := range strings.Fields(k.kubectl(t, "api-resources", "--verbs=list", "-o", "name")) {
		if !slices.Contains([]string{"events", "events.events.k8s.io", "leases.coordination.k8s.io", "componentstatuses", "endpoints", "endpointslices.discovery.k8s.io"}, kind) {
			kinds = append(kinds, kind)
		}
	}
	var list struct{ Items []map[string]any }
	require.NoError(t, json.Unmarshal([]byte(k.kubectl(t, "get", strings.Join(kinds, ","), "-A", "-o", "json")), &list))
	out := map[string]string{}
	for _, o := range list.Items {
		meta, _ := o["metadata"].(map[string]any)
		for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
			delete(meta, field)
		}
		delete(o, "status")
		text, err := json.Marshal(o)
		require.NoError(t, err)
		out[fmt.Sprintf("%v %v %v/%v", o["apiVersion"], o["kind"], meta["namespace"], meta["name"])] = string(text)
	}
	require.Contains(t, out, "v1 ConfigMap foreign/settings")
	return out
}

// requireAgain asserts that a cluster holds these objects again, and no others. What
// controllers made for ours goes after it.
func (k *kept) requireAgain(t *testing.T, before map[string]string) {
	t.Helper()
	var after map[string]string
	for end := time.Now().Add(time.Minute); ; time.Sleep(2 * time.Second) {
		if after = k.everything(t); len(after) == len(before) || time.Now().After(end) {
			break
		}
	}
	require.Equal(t, before, after)
}

// kubeconfigAt is a copy of the cluster's kubeconfig with another address of this machine.
func (k *kept) kubeconfigAt(t *testing.T, address string) string {
	t.Helper()
	text, err := os.ReadFile(k.kubeconfig)
	require.NoError(t, err)
	require.Contains(t, string(text), "https://127.0.0.1:")
	file := filepath.Join(t.TempDir(), "theirs.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "https://127.0.0.1:", "https://"+address+":")), 0o600))
	return file
}

// another starts the cluster of another deployment, in which others have objects, and
// whose node pulls from a registry. It is published on all addresses, and another returns the
// kubeconfig with which this machine's neighbours reach it.
func another(t *testing.T, r *testRegistry, d deployment) (host *kept, kubeconfig string) {
	t.Helper()
	host = &kept{deployment: d, config: write(t, configured+"local: {apiPort: 8443, bind: 0.0.0.0}\n")}
	finish(t, d.CLI(t.Context(), "cluster", "--stop")) // whatever an earlier run of the tests left
	host.must(t, "destroy", "--yes", "--ignore-not-found")
	t.Cleanup(func() {
		_ = finish(t, d.CLI(context.Background(), "cluster", "--stop"))
		_ = finish(t, d.CLI(context.Background(), "destroy", "--yes", "--ignore-not-found"))
	})
	host.must(t, "install", "--keep-cluster", "--until", "infrastructure/local-addons")
	host.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	host.must(t, "kubeconfig", "--out", host.kubeconfig)
	host.apply(t, theirObjects)
	shell := bundled(t, d.Bundle)["busybox"]
	host.apply(t, fmt.Sprintf(allow, shell, r.bridge))
	host.kubectl(t, "wait", "-n", "foreign", "pod/allow-registry", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=2m")
	host.kubectl(t, "wait", "pv/foreign-released", "--for=jsonpath={.status.phase}=Released", "--timeout=2m")
	host.kubectl(t, "wait", "pv/foreign-bound", "--for=jsonpath={.status.phase}=Bound", "--timeout=2m")
	host.kubectl(t, "wait", "-n", "foreign", "service/site", "--for=jsonpath={.status.loadBalancer.ingress[0].ip}", "--timeout=2m")
	host.requireClaimsGranted(t, shell)

	bridge, _, err := net.SplitHostPort(r.bridge)
	require.NoError(t, err)
	kubeconfig = host.kubeconfigAt(t, bridge)
	config := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), filepath.Join(d.Bundle, "bin", "kubectl"), append([]string{"--kubeconfig", kubeconfig, "config"}, args...)...).CombinedOutput()
		require.NoError(t, err, string(out))
		return strings.TrimSpace(string(out))
	}
	cluster := config("view", "-o", "jsonpath={.clusters[0].name}")
	for _, account := range []string{"weak", "installer", "lesser"} {
		config("set-credentials", account, "--token="+strings.TrimSpace(host.kubectl(t, "create", "token", account, "-n", "foreign", "--duration=2h")))
	}
	config("set-credentials", "plugin", "--exec-command=aws", "--exec-api-version=client.authentication.k8s.io/v1")
	for _, context := range []string{"weak", "installer", "lesser", "plugin"} {
		config("set-context", context, "--cluster="+cluster, "--user="+context)
	}
	return host, kubeconfig
}
