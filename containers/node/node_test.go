package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/clientcmd"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func testSettings(t *testing.T) settings {
	s, err := parseSettings([]string{"--data=/data", "--registry-mirror=http://registry:5000", "--cluster-name=test"})
	require.NoError(t, err)
	return s
}

func TestRenderedConfiguration(t *testing.T) {
	s := testSettings(t)
	s.PauseImage = "slipway.local/pause:1.0"
	golden(t, "containerd.toml", s.render("containerd.toml", map[string]any{"snapshotter": snapshotOverlay}))
	golden(t, "network.conflist", s.render("network.conflist", map[string]any{"mtu": 1450}))
	golden(t, "hosts.toml", ownHosts)
	for _, name := range []string{"kubelet.yaml", "scheduler.yaml", "proxy.yaml"} {
		golden(t, name, s.render(name, nil))
	}
	var commands strings.Builder
	for _, name := range []string{"etcd", "containerd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy"} {
		c := s.component(name, "slipway-node")
		commands.WriteString(c.name + ": " + c.program + "\n  " + strings.Join(c.args, "\n  ") + "\n")
	}
	golden(t, "commands.txt", commands.String())
}

func TestFlags(t *testing.T) {
	for _, args := range [][]string{{"--data=/"}, {"--data=relative"}, {"--registry-mirror=registry:5000"}, {"--registry-mirror=https:///path"}, {"surplus"}, {"--no-such-flag"}} {
		_, err := parseSettings(args)
		require.ErrorIs(t, err, errUsage, "%v", args)
	}
	s := testSettings(t)
	require.Equal(t, "/data/logs", s.LogDir)
	require.Equal(t, "http://registry:5000", s.RegistryMirror)
}

func TestKubeconfigs(t *testing.T) {
	dir := t.TempDir()
	s := settings{Data: dir, AccessFile: filepath.Join(dir, "out", "kubeconfig"), ClusterName: "test"}
	p, err := ensurePKI(s.pki(""), []string{"cluster"}, time.Now())
	require.NoError(t, err)
	require.NoError(t, p.writeKubeconfigs(s))

	c, err := clientcmd.BuildConfigFromFlags("", s.AccessFile)
	require.NoError(t, err)
	require.Equal(t, "https://cluster:6443", c.Host)
	require.Equal(t, p.pairs["ca"].certPEM, c.CAData)
	require.Equal(t, p.pairs["admin"].keyPEM, c.KeyData)
	info, err := os.Stat(s.AccessFile)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	c, err = clientcmd.BuildConfigFromFlags("", s.pki("scheduler.kubeconfig"))
	require.NoError(t, err)
	require.Equal(t, "https://127.0.0.1:6443", c.Host)
}

func TestLockExcludes(t *testing.T) {
	dir := t.TempDir()
	first, err := lockData(t.Context(), dir, 0, func(string) {})
	require.NoError(t, err)

	var told []string
	_, err = lockData(t.Context(), dir, 150*time.Millisecond, func(s string) { told = append(told, s) })
	require.ErrorContains(t, err, "another node uses this volume")
	require.Len(t, told, 1)

	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = lockData(stopped, dir, time.Hour, func(string) {})
	require.ErrorIs(t, err, context.Canceled)

	require.NoError(t, first.Close())
	second, err := lockData(t.Context(), dir, 0, func(string) {})
	require.NoError(t, err)
	require.NoError(t, second.Close())
}

func TestWipeLeavesNothingButTheLock(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "etcd", "member"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "etcd", "member", "db"), []byte("x"), 0o600))
	lock, err := lockData(t.Context(), dir, 0, func(string) {})
	require.NoError(t, err)
	require.ErrorContains(t, wipe(t.Context(), settings{Data: dir}), "another node")
	require.FileExists(t, filepath.Join(dir, "etcd", "member", "db"))
	require.NoError(t, lock.Close())

	require.NoError(t, wipe(t.Context(), settings{Data: dir}))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, lockFile, entries[0].Name())
}

// TestAWipeThatIsInterruptedLeavesTheKeys: a node would make new ones for what is left.
func TestAWipeThatIsInterruptedLeavesTheKeys(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"volumes", lockFile, pkiDir, "etcd"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Equal(t, []string{"etcd", "volumes", pkiDir}, wipeOrder(entries))
}

func TestHealth(t *testing.T) {
	h := newHealth(time.Now())
	ask := func(path string) (int, report) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		var r report
		if w.Code != http.StatusNotFound {
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &r))
		}
		return w.Code, r
	}
	h.set(partAPI, "ready", "")
	h.set(partBalancer, "failed", "no address")
	code, r := ask("/readyz")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.False(t, r.Ready)
	require.Equal(t, "no address", r.Parts[partBalancer].Detail)
	require.Equal(t, "waiting", r.Parts[partNode].State)

	h.set(partNode, "ready", "")
	h.set(partRegistry, "ready", "")
	code, _ = ask("/readyz")
	require.Equal(t, http.StatusServiceUnavailable, code, "Services get no address yet")
	h.set(partBalancer, "ready", "")
	code, r = ask("/readyz")
	require.Equal(t, http.StatusOK, code)
	require.True(t, r.Ready)
	code, _ = ask("/readyz/pods")
	require.Equal(t, http.StatusServiceUnavailable, code)
	h.set(partPods, "ready", "")
	code, _ = ask("/readyz/pods")
	require.Equal(t, http.StatusOK, code)
	since := h.report().Parts[partPods].Since
	h.set(partPods, "ready", "again")
	require.Equal(t, since, h.report().Parts[partPods].Since, "the time is that of the change")
	code, _ = ask("/")
	require.Equal(t, http.StatusNotFound, code)
}

func TestPodsOfTheLastStart(t *testing.T) {
	pod := func(name string, ready corev1.ConditionStatus) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
			Spec:       corev1.PodSpec{NodeName: nodeName},
			Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready, Reason: "x"}}},
		}
	}
	client := fake.NewClientset(pod("a", corev1.ConditionTrue), pod("b", corev1.ConditionFalse), pod("c", corev1.ConditionTrue))
	refused := false
	client.PrependReactor("patch", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		first := !refused && a.(clienttesting.PatchAction).GetName() == "c"
		refused = refused || first
		return first, nil, errors.New("etcd: leader changed")
	})
	were := map[types.UID]bool{}
	require.ErrorContains(t, markPodsNotReady(t.Context(), client, were), "mark pod default/c of the last start: etcd: leader changed")
	require.NoError(t, markPodsNotReady(t.Context(), client, were))
	require.Equal(t, map[types.UID]bool{"a": true, "c": true}, were, "the first attempt has marked one of them already")
	list, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, p := range list.Items {
		require.Equal(t, corev1.ConditionFalse, p.Status.Conditions[0].Status, p.Name)
	}
	require.ElementsMatch(t, []string{"default/a", "default/c"}, notBack(list.Items, were))
	a, c := pod("a", corev1.ConditionTrue), pod("c", corev1.ConditionFalse)
	require.Equal(t, []string{"default/c"}, notBack([]corev1.Pod{*a, *c}, were))
	c.Status.Phase = corev1.PodFailed
	require.Empty(t, notBack([]corev1.Pod{*a, *c}, were), "an ended pod does not come back")
}

func TestTheNodeIsMadeOnce(t *testing.T) {
	client := fake.NewClientset()
	require.NoError(t, makeNode(t.Context(), client))
	require.NoError(t, makeNode(t.Context(), client), "at the second start it is there")
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, nodes.Items, 1)
	require.Equal(t, nodeName, nodes.Items[0].Name)
	client.PrependReactor("create", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("etcd: leader changed")
	})
	require.EqualError(t, makeNode(t.Context(), client), "make node "+nodeName+": etcd: leader changed")
}

func TestOwnCgroupView(t *testing.T) {
	require.True(t, ownCgroupView("0::/\n"))
	require.True(t, ownCgroupView("0::/slipway-node\n"))
	require.False(t, ownCgroupView("0::/docker/0123\n"), "the host's groups are not ours")
	require.False(t, ownCgroupView("4:memory:/\n"))
}

// TestHealthIsForWhoHasACertificate: what else asks gets a sign of life, as commands want it.
func TestHealthIsForWhoHasACertificate(t *testing.T) {
	p, err := ensurePKI(t.TempDir(), []string{"127.0.0.1"}, time.Now())
	require.NoError(t, err)
	n := &node{health: newHealth(time.Now())}
	n.mutual, err = p.mutual("apiserver")
	require.NoError(t, err)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.Addr().String()
	require.NoError(t, free.Close())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.serveHealth(ctx, address) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-ended) })
	ask := func(scheme string, config *tls.Config) (int, string) {
		transport := &http.Transport{TLSClientConfig: config}
		defer transport.CloseIdleConnections()
		r, err := (&http.Client{Transport: transport}).Get(scheme + "://" + address + "/readyz")
		if err != nil {
			return 0, err.Error()
		}
		defer release(r.Body)
		text, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		return r.StatusCode, string(text)
	}
	require.Eventually(t, func() bool {
		code, said := ask("http", nil)
		return code == http.StatusBadRequest && said == "Client sent an HTTP request to an HTTPS server.\n"
	}, 5*time.Second, 10*time.Millisecond)
	trusts := &tls.Config{RootCAs: pool(p.pairs[clusterCA])}
	code, said := ask("https", trusts)
	require.Zero(t, code)
	require.Contains(t, said, "certificate required")
	own, err := tls.X509KeyPair(p.pairs["admin"].certPEM, p.pairs["admin"].keyPEM)
	require.NoError(t, err)
	trusts.Certificates = []tls.Certificate{own}
	code, said = ask("https", trusts)
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Contains(t, said, `"parts"`)
}
