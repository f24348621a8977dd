package main

import (
	"fmt"
	"os"
	"time"
)

// etcdCommand runs etcd on loopback, for clients with a certificate of
// its own authority. There is one member, so elections need not wait.
func etcdCommand(s settings) command {
	const peer = "https://127.0.0.1:2380"
	return command{
		name: "etcd", program: "etcd",
		args: []string{
			"--name=" + nodeName,
			"--data-dir=" + s.file("etcd"),
			"--listen-client-urls=" + etcdURL,
			"--advertise-client-urls=" + etcdURL,
			"--listen-peer-urls=" + peer,
			"--initial-advertise-peer-urls=" + peer,
			"--initial-cluster=" + nodeName + "=" + peer,
			"--client-cert-auth",
			"--trusted-ca-file=" + s.pki("etcd-ca.crt"),
			"--cert-file=" + s.pki("etcd.crt"),
			"--key-file=" + s.pki("etcd.key"),
			"--peer-client-cert-auth",
			"--peer-trusted-ca-file=" + s.pki("etcd-ca.crt"),
			"--peer-cert-file=" + s.pki("etcd.crt"),
			"--peer-key-file=" + s.pki("etcd.key"),
			"--heartbeat-interval=50", // a tick; idle, they are what it costs
			"--election-timeout=250",
			"--snapshot-count=10000",
			"--quota-backend-bytes=4294967296",
			"--log-level=warn",
		},
		stop: 2 * time.Second,
	}
}

func containerdCommand() command {
	return command{
		name: "containerd", program: "containerd",
		args: []string{"--config=" + containerdConfig, "--log-level=warn"},
		stop: 2 * time.Second,
	}
}

// apiServerCommand: TLS and a client certificate or token everywhere, RBAC, no
// anonymous requests.
func apiServerCommand(s settings, self string) command {
	return command{
		name: "kube-apiserver", program: self,
		args: []string{
			"kube-apiserver",
			"--advertise-address=" + nodeAddress,
			"--bind-address=0.0.0.0",
			fmt.Sprintf("--secure-port=%d", apiPort),
			"--allow-privileged=true",
			"--anonymous-auth=false",
			"--authorization-mode=Node,RBAC",
			"--enable-admission-plugins=NodeRestriction",
			"--enable-priority-and-fairness=false",
			"--profiling=false",
			"--event-ttl=3h",
			"--service-cluster-ip-range=" + serviceCIDR,
			"--etcd-servers=" + etcdURL,
			"--etcd-cafile=" + s.pki("etcd-ca.crt"),
			"--etcd-certfile=" + s.pki("etcd-client.crt"),
			"--etcd-keyfile=" + s.pki("etcd-client.key"),
			"--tls-cert-file=" + s.pki("apiserver.crt"),
			"--tls-private-key-file=" + s.pki("apiserver.key"),
			"--client-ca-file=" + s.pki("ca.crt"),
			"--kubelet-certificate-authority=" + s.pki("ca.crt"),
			"--kubelet-client-certificate=" + s.pki("apiserver-kubelet-client.crt"),
			"--kubelet-client-key=" + s.pki("apiserver-kubelet-client.key"),
			"--kubelet-preferred-address-types=InternalIP",
			"--requestheader-client-ca-file=" + s.pki("front-proxy-ca.crt"),
			"--requestheader-allowed-names=front-proxy-client",
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--requestheader-group-headers=X-Remote-Group",
			"--requestheader-username-headers=X-Remote-User",
			"--proxy-client-cert-file=" + s.pki("front-proxy-client.crt"),
			"--proxy-client-key-file=" + s.pki("front-proxy-client.key"),
			"--service-account-issuer=https://kubernetes.default.svc." + clusterDomain,
			"--service-account-key-file=" + s.pki("service-account.key"),
			"--service-account-signing-key-file=" + s.pki("service-account.key"),
		},
		stop: 1500 * time.Millisecond,
	}
}

func controllerManagerCommand(s settings, self string) command {
	return command{
		name: "kube-controller-manager", program: self,
		args: []string{
			"kube-controller-manager",
			"--kubeconfig=" + s.pki("controller-manager.kubeconfig"),
			"--bind-address=127.0.0.1",
			"--leader-elect=false", // after a kill the old lease would cost 15 s
			"--profiling=false",
			"--use-service-account-credentials=true",
			"--service-account-private-key-file=" + s.pki("service-account.key"),
			"--root-ca-file=" + s.pki("ca.crt"),
			"--cluster-signing-cert-file=" + s.pki("ca.crt"),
			"--cluster-signing-key-file=" + s.pki("ca.key"),
			"--cluster-name=" + s.ClusterName,
			"--kube-api-qps=500",
			"--kube-api-burst=1000",
			"--node-monitor-period=2s",
			"--concurrent-deployment-syncs=10",
			"--concurrent-replicaset-syncs=10",
			"--concurrent-statefulset-syncs=10",
			"--concurrent-job-syncs=10",
			"--concurrent-namespace-syncs=20",
			"--concurrent-serviceaccount-token-syncs=10",
			"--endpointslice-updates-batch-period=100ms",
		},
		stop: time.Second,
	}
}

func schedulerCommand(self string) command {
	return command{
		name: "kube-scheduler", program: self,
		args: []string{"kube-scheduler", "--config=" + schedulerConfig, "--bind-address=127.0.0.1", "--profiling=false"},
		stop: time.Second,
	}
}

func kubeletCommand(s settings, self string) command {
	return command{
		name: "kubelet", program: self,
		args: []string{
			"kubelet",
			"--config=" + kubeletConfig,
			"--kubeconfig=" + s.pki("kubelet.kubeconfig"),
			"--root-dir=" + s.file("kubelet"),
			"--hostname-override=" + nodeName,
			"--node-ip=" + nodeAddress,
		},
		stop: time.Second,
	}
}

func proxyCommand(self string) command {
	return command{
		name: "kube-proxy", program: self,
		args: []string{"kube-proxy", "--config=" + proxyConfig},
		stop: time.Second,
	}
}

// Where the components' own configuration files are.
const (
	kubeletConfig   = runDir + "/kubelet.yaml"
	schedulerConfig = runDir + "/scheduler.yaml"
	proxyConfig     = runDir + "/proxy.yaml"
)

func writeComponentConfigs(s settings) error {
	if err := os.MkdirAll(s.file("kubelet"), 0o755); err != nil {
		return fmt.Errorf("make the kubelet's directory: %w", err)
	}
	for path, content := range map[string]string{
		kubeletConfig:   kubeletYAML(s),
		schedulerConfig: schedulerYAML(s),
		proxyConfig:     proxyYAML(s),
	} {
		if err := writeFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// kubeletYAML: cgroups are not enforced, because a container's view of them is
// partial on hosts with cgroup v1. Nothing is evicted or collected for disk
// space, which is the host's; an image goes once nothing has used it for a
// week. Limits that protect a registry or a big API server are off.
func kubeletYAML(s settings) string {
	return `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous:
    enabled: false
  webhook:
    enabled: true
  x509:
    clientCAFile: ` + s.pki("ca.crt") + `
authorization:
  mode: Webhook
tlsCertFile: ` + s.pki("kubelet-server.crt") + `
tlsPrivateKeyFile: ` + s.pki("kubelet-server.key") + `
containerRuntimeEndpoint: unix://` + criSocket + `
podLogsDir: ` + s.file("pod-logs") + `
volumePluginDir: ` + s.file("kubelet/volume-plugins") + `
clusterDNS:
- ` + dnsServiceIP + `
clusterDomain: ` + clusterDomain + `
resolvConf: /etc/resolv.conf
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
maxPods: 250
serializeImagePulls: false
registryPullQPS: 0
eventRecordQPS: 0
kubeAPIQPS: 500
kubeAPIBurst: 1000
syncFrequency: 10s
nodeStatusUpdateFrequency: 5s
imageGCHighThresholdPercent: 100
imageMaximumGCAge: 168h
evictionHard:
  memory.available: 64Mi
  nodefs.available: 0%
  nodefs.inodesFree: 0%
  imagefs.available: 0%
  imagefs.inodesFree: 0%
crashLoopBackOff:
  maxContainerRestartPeriod: 20s
`
}

// schedulerYAML: pods that could not be placed, because the node was not ready
// yet, are tried again at once.
func schedulerYAML(s settings) string {
	return `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection:
  kubeconfig: ` + s.pki("scheduler.kubeconfig") + `
  qps: 500
  burst: 1000
leaderElection:
  leaderElect: false
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 2
`
}

// proxyYAML: the limits of connection tracking belong to the host and stay as
// they are.
func proxyYAML(s settings) string {
	return `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection:
  kubeconfig: ` + s.pki("proxy.kubeconfig") + `
hostnameOverride: ` + nodeName + `
healthzBindAddress: 127.0.0.1:10256
metricsBindAddress: 127.0.0.1:10249
mode: iptables
clusterCIDR: ` + podCIDR + `
detectLocalMode: ClusterCIDR
iptables:
  localhostNodePorts: false
  minSyncPeriod: 200ms
  syncPeriod: 30s
conntrack:
  maxPerCore: 0
  min: 0
  tcpEstablishedTimeout: 0s
  tcpCloseWaitTimeout: 0s
`
}
