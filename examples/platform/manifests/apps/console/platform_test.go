package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// The programs of the platform's images. The tests that need one are skipped without it.
const (
	postgresVar = "CONSOLE_TEST_POSTGRES" // folder of initdb, postgres and psql, such as /usr/lib/postgresql/15/bin
	dexVar      = "CONSOLE_TEST_DEX"      // path of dex
)

// release is the platform release, so that the console is tested against what it meets in
// a cluster.
const release = "../../1.0.0"

// domain is that of the platform under test.
const domain = "slipway.test"

// configMap is the text of a ConfigMap of the release: one of a file, or, without one, of
// platform.yaml.
func configMap(t *testing.T, file, name, key string) string {
	t.Helper()
	if file != "" {
		var o struct{ Data map[string]string }
		decode(t, file, &o)
		require.Contains(t, o.Data, key)
		return o.Data[key]
	}
	var p struct {
		ConfigMaps []struct {
			Name string
			Data map[string]string
		} `yaml:"configMaps"`
	}
	decode(t, "platform.yaml", &p)
	for _, m := range p.ConfigMaps {
		if m.Name == name {
			require.Contains(t, m.Data, key)
			return strings.ReplaceAll(m.Data[key], "{domain}", domain)
		}
	}
	t.Fatalf("platform.yaml has no ConfigMap %s", name)
	return ""
}

func decode(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(release, file))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, into))
}

// server is a PostgreSQL that runs on the loopback interface.
type server struct {
	bin, port string
	owner     *syscall.Credential // nil: as this process
}

// passwords are those of the roles that the platform's Job makes.
func passwords() map[string]Secret {
	return map[string]Secret{"dex": `dex's "password"`, "console": `console's "password"`}
}

func (s server) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, name), args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.owner}
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "PGHOST=127.0.0.1", "PGPORT="+s.port, "PGUSER=postgres", "PGDATABASE=postgres", "PGPASSWORD=owner-password",
		"DEX_USER=dex", "DEX_PASSWORD="+string(passwords()["dex"]), "CONSOLE_USER=console", "CONSOLE_PASSWORD="+string(passwords()["console"]))
	return cmd
}

// sql runs psql on standard input, as the superuser.
func (s server) sql(t *testing.T, database, input string) string {
	t.Helper()
	cmd := s.command(t.Context(), "psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--dbname="+database)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return strings.TrimSpace(string(out))
}

// database is how a role reaches a database.
func (s server) database(role, name string) Database {
	return Database{Host: "127.0.0.1", Port: s.port, Name: name, User: role, Password: passwords()[role]}
}

// freePort is a TCP port of the loopback interface.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}

// postgres starts a server of its own that ends with the test, after the platform's Job.
func postgres(t *testing.T) server {
	t.Helper()
	s := server{bin: os.Getenv(postgresVar), port: freePort(t)}
	if s.bin == "" {
		t.Skipf("%s is not set", postgresVar)
	}
	dir, err := os.MkdirTemp("", "console") // not t.TempDir: it is handed to another user
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	if os.Geteuid() == 0 { // PostgreSQL refuses to run as root
		s.owner = &syscall.Credential{Uid: 65534, Gid: 65534}
		require.NoError(t, os.Chown(dir, 65534, 65534))
	}
	password := filepath.Join(dir, "password")
	require.NoError(t, os.WriteFile(password, []byte("owner-password\n"), 0o644))
	data := filepath.Join(dir, "data")
	out, err := s.command(t.Context(), "initdb", "--no-sync", "--auth=scram-sha-256", "--username=postgres",
		"--pwfile="+password, "--pgdata="+data).CombinedOutput()
	require.NoError(t, err, "%s", out)
	daemon := s.command(context.WithoutCancel(t.Context()), "postgres", "-D", data, "-p", s.port,
		"-c", "unix_socket_directories=", "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off")
	require.NoError(t, daemon.Start())
	t.Cleanup(func() {
		require.NoError(t, daemon.Process.Signal(os.Interrupt))
		require.NoError(t, daemon.Wait())
	})
	require.Eventually(t, func() bool {
		return s.command(t.Context(), "psql", "--no-psqlrc", "-c", "SELECT 1").Run() == nil
	}, 30*time.Second, 50*time.Millisecond)
	s.job(t)
	return s
}

// job is what the platform's Job databases runs.
func (s server) job(t *testing.T) {
	t.Helper()
	script := configMap(t, "jobs/databases/databases.sql.yaml", "", "databases.sql")
	require.Equal(t, "console|console\ndex|dex", s.sql(t, "postgres", script))
}

// pair is a certificate of a self-signed authority of its own for the platform's hosts.
type pair struct {
	dir  string // tls.crt, tls.key, ca.crt
	pool *x509.CertPool
	cert tls.Certificate
}

func newPair(t *testing.T) pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IsCA: true, DNSNames: []string{"dex." + domain, "console." + domain}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	crt := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	p := pair{dir: t.TempDir(), pool: x509.NewCertPool()}
	for name, content := range map[string][]byte{"tls.crt": crt, "ca.crt": crt, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})} {
		require.NoError(t, os.WriteFile(filepath.Join(p.dir, name), content, 0o600))
	}
	require.True(t, p.pool.AppendCertsFromPEM(crt))
	p.cert, err = tls.LoadX509KeyPair(filepath.Join(p.dir, "tls.crt"), filepath.Join(p.dir, "tls.key"))
	require.NoError(t, err)
	return p
}

// dex is a running Dex.
type dex struct {
	https, grpc string // addresses
}

// startDex starts Dex with the platform's configuration, on the platform's database.
func startDex(t *testing.T, s server, p pair) dex {
	t.Helper()
	program := os.Getenv(dexVar)
	if program == "" {
		t.Skipf("%s is not set", dexVar)
	}
	d := dex{"127.0.0.1:" + freePort(t), "127.0.0.1:" + freePort(t)}
	telemetry := "127.0.0.1:" + freePort(t)
	text := configMap(t, "", "dex", "config.yaml")
	for from, to := range map[string]string{ // what is otherwise in a cluster
		"0.0.0.0:5556": d.https, "0.0.0.0:5557": d.grpc, "0.0.0.0:5558": telemetry,
		"host: postgres": "host: 127.0.0.1", "port: 5432": "port: " + s.port, "/etc/dex/tls": p.dir,
	} {
		require.Contains(t, text, from)
		text = strings.ReplaceAll(text, from, to)
	}
	config := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(config, []byte(text), 0o600))
	s.sql(t, "postgres", "ALTER ROLE dex PASSWORD 'lettersanddigits1'") // as the platform generates them
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, "serve", config)
	cmd.Env = []string{"DATABASE_PASSWORD=lettersanddigits1", "CLIENT_SECRET=cl1ent"}
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	require.NoError(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is ended by a signal
		close(ended)
	}()
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		<-ended
		if t.Failed() {
			t.Logf("%s", output.String())
		}
	})
	require.Eventually(t, func() bool {
		conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: p.pool, ServerName: "dex." + domain}}).DialContext(t.Context(), "tcp", d.https)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, 30*time.Second, 50*time.Millisecond)
	return d
}
