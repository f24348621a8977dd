package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// claims is what pods of public charts ask of a cluster, and Services with one port as TCP and
// UDP, one of them on a port that the node itself has as TCP. The first text is the image of a
// shell, the second the address of a load balancer. The pod succeeds once the Services answer.
const claims = `
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: claims}
value: 100000
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: claims}
handler: runc
---
apiVersion: v1
kind: Pod
metadata: {name: claims, namespace: claims}
spec:
  restartPolicy: Never
  priorityClassName: claims
  runtimeClassName: claims
  terminationGracePeriodSeconds: 0
  volumes: [{name: scratch, emptyDir: {sizeLimit: 64Mi}}]
  containers:
    - name: claims
      image: %[1]s
      command: [/bin/sh, -euc, 'for at in both.claims.svc.cluster.local %[2]s; do busybox nslookup kubernetes.default.svc.cluster.local $at; echo | busybox nc -w 5 $at 53; done; echo answered']
      resources:
        requests: {cpu: 10m, memory: 16Mi, ephemeral-storage: 64Mi}
        limits: {memory: 64Mi, ephemeral-storage: 1Gi}
      volumeMounts: [{name: scratch, mountPath: /scratch}]
`

const bothProtocols = `
apiVersion: v1
kind: Namespace
metadata: {name: claims}
---
apiVersion: v1
kind: Service
metadata: {name: both, namespace: claims}
spec:
  type: LoadBalancer
  ports: [{name: udp, port: 53, protocol: UDP}, {name: tcp, port: 53, protocol: TCP}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: both, namespace: claims, labels: {kubernetes.io/service-name: both}}
addressType: IPv4
ports: [{name: udp, port: 53, protocol: UDP}, {name: tcp, port: 53, protocol: TCP}]
endpoints: [{addresses: ["%s"]}]
---
apiVersion: v1
kind: Service
metadata: {name: udp, namespace: claims}
spec: {type: LoadBalancer, ports: [{port: 10250, protocol: UDP}]}
`

// requireClaimsGranted has a node of provider local run a pod with requests, a priority and a
// runtime class, which reaches Services with one port as TCP and UDP.
func (k *kept) requireClaimsGranted(t *testing.T, image string) {
	t.Helper()
	dns := k.kubectl(t, "get", "pods", "-n", "kube-system", "-l", "app.kubernetes.io/name=coredns", "-o", "jsonpath={.items[0].status.podIP}")
	k.apply(t, fmt.Sprintf(bothProtocols, dns))
	const address = "{.status.loadBalancer.ingress[0].ip}"
	k.kubectl(t, "wait", "-n", "claims", "service/both", "service/udp", "--for=jsonpath="+address, "--timeout=1m")
	k.apply(t, fmt.Sprintf(claims, image, k.kubectl(t, "get", "-n", "claims", "service/both", "-o", "jsonpath="+address)))
	k.kubectl(t, "wait", "-n", "claims", "pod/claims", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=1m")
	require.Contains(t, k.kubectl(t, "logs", "-n", "claims", "claims"), "answered")
	k.kubectl(t, "delete", "namespace/claims", "priorityclass/claims", "runtimeclass/claims")
}
