package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// Docker's network, in which a registry listens on the first address.
const (
	dockerGateway = "10.213.0.1"
	dockerNetwork = "10.213.0.0/24"
)

// withoutResource is a container runtime for machines whose root lacks CAP_SYS_RESOURCE, which
// Docker gives to privileged containers: it takes it out, and is runc otherwise.
const withoutResource = `#!/bin/sh
set -e
drop() { jq '(.. | objects | select(has("bounding"))) |= map_values(map(select(. != "CAP_SYS_RESOURCE")))' "$1" >"$1.new"; cat "$1.new" >"$1"; rm "$1.new"; }
before=
for argument; do
	case "$before" in
	--bundle) drop "$argument/config.json" ;;
	--process) drop "$argument" ;;
	esac
	before=$argument
done
exec /usr/sbin/runc "$@"
`

// dockerd is a Docker daemon of this test's own, whose bridge other daemons of this machine
// would have: it has to be the only one.
type dockerd struct {
	dir string
	env []string // for what calls docker
}

// startDocker runs a daemon that trusts an authority, until the test ends.
func startDocker(t *testing.T, authority string) *dockerd {
	t.Helper()
	if _, err := os.Stat("/sys/class/net/docker0"); err == nil {
		t.Skip("Docker runs on this machine already")
	}
	dir, err := os.MkdirTemp(os.Getenv("HOME"), ".slipway-docker-") // the path of its socket has to be short, and what it keeps on a disk
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	d := &dockerd{dir: dir, env: []string{"DOCKER_HOST=unix://" + dir + "/docker.sock", "XDG_CONFIG_HOME=" + dir + "/config"}}
	args := []string{"--host", "unix://" + dir + "/docker.sock", "--data-root", dir + "/data", "--exec-root", dir + "/exec", "--pidfile", dir + "/docker.pid",
		"--bip", dockerGateway + "/24", "--iptables=false", "--userland-proxy=false"}
	if status, err := os.ReadFile("/proc/self/status"); err == nil && !hasCapability(string(status), 24) {
		runtime := filepath.Join(dir, "runtime")
		require.NoError(t, os.WriteFile(runtime, []byte(withoutResource), 0o755))
		args = append(args, "--add-runtime", "without-resource="+runtime, "--default-runtime", "without-resource")
	}
	// Authorities: for the daemon in one file, for the engine in a folder, as docs/docker.md says.
	trusted, err := os.ReadFile("/etc/ssl/certs/ca-certificates.crt")
	require.NoError(t, err)
	own, err := os.ReadFile(authority)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(dir+"/trusted.crt", append(trusted, own...), 0o644))
	folder := dir + "/config/dagger/ca-certificates"
	require.NoError(t, os.MkdirAll(folder, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "registry.crt"), own, 0o644))
	machine, err := filepath.Glob("/usr/local/share/ca-certificates/*.crt")
	require.NoError(t, err)
	for _, file := range machine {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, filepath.Base(file)), text, 0o644))
	}
	rule := []string{"-t", "nat", "POSTROUTING", "-s", dockerNetwork, "!", "-o", "docker0", "-j", "MASQUERADE"}
	nat := func(action string) {
		out, err := exec.Command("iptables", append([]string{rule[0], rule[1], action}, rule[2:]...)...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	log, err := os.Create(dir + "/log")
	require.NoError(t, err)
	cmd := exec.Command("dockerd", args...)
	cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+dir+"/trusted.crt")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	nat("-A")
	t.Cleanup(func() {
		nat("-D")
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		_ = cmd.Wait()
		out, err := exec.Command("ip", "link", "delete", "docker0").CombinedOutput()
		require.NoError(t, err, string(out))
		if t.Failed() {
			text, _ := os.ReadFile(dir + "/log")
			t.Log("the end of Docker's log:\n" + slipway.Tail(string(text)))
		}
	})
	require.Eventually(t, func() bool { return finish(t, d.command(t, "docker", "info")).code == 0 }, time.Minute, time.Second)
	return d
}

// hasCapability reads the set of capabilities that a process can have.
func hasCapability(status string, bit uint) bool {
	_, rest, _ := strings.Cut(status, "CapBnd:")
	var set uint64
	_, err := fmt.Sscanf(strings.TrimSpace(rest), "%x", &set)
	return err != nil || set&(1<<bit) != 0
}

// command is one with the daemon's environment.
func (d *dockerd) command(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = root(t), append(os.Environ(), d.env...)
	return cmd
}

// must runs a command, which succeeds, and returns what it printed.
func (d *dockerd) must(t *testing.T, name string, args ...string) string {
	t.Helper()
	r := finish(t, d.command(t, name, args...))
	require.Zero(t, r.code, "%s %v\n%s\n%s", name, args, r.out, slipway.Tail(r.err))
	t.Logf("%s %s: after %s", name, strings.Join(args, " "), r.took.Round(time.Second))
	return strings.TrimSpace(r.out)
}

// startDebianRegistry runs Debian's registry with a certificate and one account.
func startDebianRegistry(t *testing.T, of issued, password string) (address string) {
	t.Helper()
	dir := t.TempDir()
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(dir+"/htpasswd", []byte(puller+":"+string(hash)+"\n"), 0o600))
	listener, err := net.Listen("tcp", dockerGateway+":0")
	require.NoError(t, err)
	address = listener.Addr().String()
	require.NoError(t, listener.Close())
	config := dir + "/config.yml"
	require.NoError(t, os.WriteFile(config, []byte(fmt.Sprintf(`version: 0.1
log: {level: error}
storage: {filesystem: {rootdirectory: %q}}
auth: {htpasswd: {realm: registry, path: %q}}
http: {addr: %q, tls: {certificate: %q, key: %q}}
`, dir+"/blobs", dir+"/htpasswd", address, of.cert, of.key)), 0o600))
	cmd := exec.Command("docker-registry", "serve", config)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
	})
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", address)
		return err == nil && conn.Close() == nil
	}, time.Minute, 100*time.Millisecond)
	return address
}

// TestDocker has Docker run the engine, of an image from a registry with TLS and accounts, and
// brings the platform up from that registry and from a bundle.
func TestDocker(t *testing.T) {
	takesLong(t)
	inTurn(t)
	of := issue(t, net.ParseIP(dockerGateway))
	docker := startDocker(t, of.authority)
	secret := password()
	address := startDebianRegistry(t, of, secret)
	docker.env = append(docker.env, "DOCKER_CONFIG="+loggedIn(t, address, secret), "SSL_CERT_FILE="+docker.dir+"/trusted.crt")
	d := open(t, "e2e-docker")

	image := docker.must(t, "make", "-s", "engine-image", "REGISTRY="+address+"/team/engine")
	require.Regexp(t, `^`+address+`/team/engine@sha256:[0-9a-f]{64}$`, image)
	lockFile := filepath.Join(t.TempDir(), "slipway.lock.json")
	docker.must(t, filepath.Join(d.Bundle, "bin", "slipway"), "bundle", "push", d.Bundle, address+"/team/slipway", "--out", lockFile)

	// From here on the store is one of its own: that of the tests has an engine that runs.
	docker.env = append(docker.env, "SLIPWAY_CACHE="+t.TempDir())
	t.Run("without the image there is no engine", func(t *testing.T) {
		cmd := docker.command(t, "make", "engine")
		cmd.Env = append(cmd.Env, "_EXPERIMENTAL_DAGGER_RUNNER_HOST=", "SLIPWAY_ENGINE_IMAGE="+address+"/team/engine:none")
		r := finish(t, cmd)
		require.NotZero(t, r.code)
		require.Contains(t, r.err, "ENG-003")
	})
	docker.env = append(docker.env, "_EXPERIMENTAL_DAGGER_RUNNER_HOST=", "SLIPWAY_ENGINE_IMAGE="+image)
	began := time.Now()
	docker.must(t, "make", "engine")
	t.Cleanup(func() {
		cmd := exec.Command("docker", "rm", "--force", "slipway-engine")
		cmd.Env = append(os.Environ(), docker.env...)
		_ = finish(t, cmd)
	})
	var host string
	for line := range strings.Lines(docker.must(t, "make", "-s", "engine-env")) {
		if rest, ok := strings.CutPrefix(line, "export _EXPERIMENTAL_DAGGER_RUNNER_HOST='"); ok {
			host = strings.TrimSuffix(strings.TrimSpace(rest), "'")
		}
	}
	require.Equal(t, "docker-image://"+image+"?cleanup=false&container=slipway-engine&volume=slipway-engine", host)
	with := func(d deployment, more ...string) *kept {
		d.Env = append(append(append([]string{}, docker.env...), "_EXPERIMENTAL_DAGGER_RUNNER_HOST="+host, "SLIPWAY_CACHE="), more...)
		return &kept{deployment: d, config: write(t, configured+"local: {apiPort: 6943}\n"), kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	}

	published := d
	published.Lock = lockFile
	k := with(published)
	t.Run("from the registry", func(t *testing.T) {
		k.must(t, "install", "--keep-cluster")
		took := time.Since(began).Round(time.Second)
		t.Logf("from no image in Docker to a platform that is installed: %s", took)
		k.must(t, "status", "--live")
		k.must(t, "kubeconfig", "--out", k.kubeconfig)
		require.Contains(t, k.kubectl(t, "get", "nodes"), " Ready ", "it is published on this machine")
	})
	t.Run("another engine takes the volume over", func(t *testing.T) {
		k.must(t, "cluster", "--stop")
		docker.must(t, "make", "engine-stop")
		require.Empty(t, docker.must(t, "docker", "container", "ls", "--all", "--quiet"))
		require.Equal(t, "slipway-engine", docker.must(t, "docker", "volume", "ls", "--quiet"))
		docker.must(t, "make", "engine")
		k.must(t, "status", "--live")
		k.must(t, "destroy", "--yes")
	})
	t.Run("from a bundle", func(t *testing.T) {
		b := with(d)
		b.Name = "e2e-docker-b"
		b.must(t, "install")
		b.must(t, "destroy", "--yes")
	})
	t.Run("the module", func(t *testing.T) {
		m := k.deployment
		m.Flags = []string{"--registry-auth", "file:" + loggedIn(t, address, secret) + "/config.json"}
		r := m.call(t, "install", "--config", k.config)
		require.Zero(t, r.code, slipway.Tail(r.err))
		require.Zero(t, m.call(t, "destroy").code)
	})
	require.NotContains(t, k.printed.String(), secret)
}
