package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// neighbour is another machine as far as the network knows: a network namespace on a cable of
// its own, which sends through this machine what is for the engine's network.
type neighbour struct{ name, host, network string }

func newNeighbour(t *testing.T, engine string) neighbour {
	t.Helper()
	n := neighbour{name: "slipway-e2e", host: "198.51.100.1", network: "198.51.100.0/30"}
	remove := func() {
		for _, line := range []string{"link del slipway-e2e0", "netns del " + n.name} {
			_ = exec.CommandContext(context.WithoutCancel(t.Context()), "ip", strings.Fields(line)...).Run() // not there yet, or gone with the other
		}
	}
	remove()
	t.Cleanup(remove)
	for _, line := range []string{
		"netns add " + n.name,
		"link add slipway-e2e0 type veth peer name eth0 netns " + n.name,
		"addr add " + n.host + "/30 dev slipway-e2e0",
		"link set slipway-e2e0 up",
		"-n " + n.name + " addr add 198.51.100.2/30 dev eth0",
		"-n " + n.name + " link set eth0 up",
		"-n " + n.name + " route add " + engine + " via " + n.host,
	} {
		out, err := exec.CommandContext(t.Context(), "ip", strings.Fields(line)...).CombinedOutput()
		require.NoError(t, err, "ip %s: %s", line, out)
	}
	return n
}

// admit lets a network into another one, or to an address there, despite the rule of make engine
// that lets nobody into an engine's network.
func admit(t *testing.T, from, to string) (undo func()) {
	t.Helper()
	pid := strconv.Itoa(enginePID(t))
	change := func(how string) result { // with the engine's own iptables
		return finish(t, exec.CommandContext(context.WithoutCancel(t.Context()), "nsenter", "-t", pid, "-m",
			"iptables", "-w", how, "FORWARD", "-s", from, "-d", to, "-j", "ACCEPT"))
	}
	for change("-D").code == 0 { // what a run of the tests that was killed has left
	}
	r := change("-I")
	require.Zero(t, r.code, r.err)
	undo = sync.OnceFunc(func() {
		r := change("-D")
		require.Zero(t, r.code, r.err)
	})
	t.Cleanup(undo)
	return undo
}

// reaches reports whether a connection from there to a port comes about.
func (n neighbour) reaches(t *testing.T, address string, port int) bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "ip", "netns", "exec", n.name, "timeout", "2", "bash", "-c", "exec 3<>/dev/tcp/"+address+"/"+strconv.Itoa(port))
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && (exit.ExitCode() == 124 || strings.Contains(string(out), "Connection refused")) {
		return false
	}
	require.NoError(t, err, string(out))
	return true
}

// engineNetwork is that of an engine in which an address is.
func engineNetwork(t *testing.T, address string) string {
	t.Helper()
	part := strings.Split(address, ".")
	require.Len(t, part, 4)
	return part[0] + "." + part[1] + ".0.0/16"
}

// unenforced is what docs/local-cluster.md, docs/platforms.md and validate say of NetworkPolicies: a Pod that
// the database's does not let in reaches it.
func (k *kept) unenforced(t *testing.T) {
	k.shell(t, fmt.Sprintf(`kubectl get networkpolicy -n database database
kubectl run stranger -n default --image=%s --restart=Never --command -- /bin/sh -c 'busybox nc -w 5 database.database 5432 </dev/null'
kubectl wait pod/stranger -n default --for=jsonpath={.status.phase}=Succeeded --timeout=1m
kubectl delete pod/stranger -n default --now`, bundled(t, k.Bundle)["busybox"]))
}

// closed is that nobody but this machine and the engine's containers reaches the cluster, whose
// API is published on a port, as another port of it is, and that these need a certificate for its
// health.
func (k *kept) closed(api, app int) func(*testing.T) {
	return func(t *testing.T) {
		node := strings.Fields(k.shell(t, "getent hosts cluster"))[0]
		n := newNeighbour(t, engineNetwork(t, node))
		l, err := net.Listen("tcp4", "0.0.0.0:0")
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
		require.True(t, n.reaches(t, n.host, l.Addr().(*net.TCPAddr).Port), "it reaches what listens on all addresses of this machine")

		for _, port := range []int{api, app} {
			require.False(t, n.reaches(t, n.host, port), "port %d is published on 127.0.0.1 only", port)
		}
		for _, port := range []int{6443, 6444, 10250, 80} {
			require.False(t, n.reaches(t, node, port), "port %d of the node", port)
		}
		for _, address := range []string{net.JoinHostPort("127.0.0.1", strconv.Itoa(api)), net.JoinHostPort("127.0.0.1", strconv.Itoa(app)), net.JoinHostPort(node, "6443")} {
			conn, err := net.DialTimeout("tcp", address, 5*time.Second)
			require.NoError(t, err, "this machine itself does")
			require.NoError(t, conn.Close())
		}

		out := k.shell(t, `curl -s http://cluster:6444/readyz
curl -sk https://cluster:6444/readyz || echo "refused: $?"
kubectl get --raw /readyz --server https://cluster:6444`)
		before, after, found := strings.Cut(out, "refused: ")
		require.True(t, found, out)
		require.Equal(t, "Client sent an HTTP request to an HTTPS server.\n", before)
		require.Contains(t, after, `"ready": true`)

		t.Run("nothing but the rule keeps it out of the node", func(t *testing.T) {
			undo := admit(t, n.network, node)
			for _, port := range []int{6443, 6444, 10250, 80} {
				require.True(t, n.reaches(t, node, port), port)
			}
			undo()
			require.False(t, n.reaches(t, node, 6443))
		})
	}
}
