package main

import (
	"context"
	"fmt"
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
)

// postgresVar names the folder that holds initdb, postgres and psql, such as
// /usr/lib/postgresql/15/bin. The tests that need a database are skipped
// without it.
const postgresVar = "GUESTBOOK_TEST_POSTGRES"

// What the platform's Job runs, so that the app is tested against the tables, the
// rows and the role that it meets in a cluster: of release 1.0.0, with the authors
// in the table of the entries, and of 2.0.0, where they have one of their own.
const (
	seedTogether = "../../1.0.0/gitops/apps/database/files/seed.sql"
	seedApart    = "../../2.0.0/gitops/apps/database/files/seed.sql"
)

// server is a PostgreSQL that runs on the loopback interface.
type server struct {
	bin, port string
	owner     *syscall.Credential // nil: as this process
}

func (s server) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, name), args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.owner}
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "PGHOST=127.0.0.1", "PGPORT="+s.port, "PGUSER=platform", "PGDATABASE=postgres",
		"PGPASSWORD=owner-password", "READER_USER=reader", "READER_PASSWORD=reader's \"password\"")
	return cmd
}

// sql runs psql on standard input.
func (s server) sql(t *testing.T, input string) string {
	t.Helper()
	cmd := s.command(t.Context(), "psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align")
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return strings.TrimSpace(string(out))
}

// postgres starts a server of its own that ends with the test.
func postgres(t *testing.T) server {
	t.Helper()
	s := server{bin: os.Getenv(postgresVar)}
	if s.bin == "" {
		t.Skipf("%s is not set", postgresVar)
	}
	dir, err := os.MkdirTemp("", "guestbook") // not t.TempDir: it is handed to another user
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	if os.Geteuid() == 0 { // PostgreSQL refuses to run as root
		s.owner = &syscall.Credential{Uid: 65534, Gid: 65534}
		require.NoError(t, os.Chown(dir, 65534, 65534))
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.port = strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	require.NoError(t, listener.Close())

	password := filepath.Join(dir, "password")
	require.NoError(t, os.WriteFile(password, []byte("owner-password\n"), 0o644))
	data := filepath.Join(dir, "data")
	out, err := s.command(t.Context(), "initdb", "--no-sync", "--auth=scram-sha-256", "--username=platform",
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
	return s
}

func (s server) open(t *testing.T) *Entries {
	t.Helper()
	entries, err := Open(t.Context(), Database{
		Host: "127.0.0.1", Port: s.port, Name: "postgres", User: "reader", Password: `reader's "password"`,
	})
	require.NoError(t, err)
	t.Cleanup(entries.Close)
	return entries
}

// seed runs a release's script, and returns what it says.
func (s server) seed(t *testing.T, file string) string {
	t.Helper()
	script, err := os.ReadFile(file)
	require.NoError(t, err)
	return s.sql(t, string(script))
}

func TestEntriesOfTheSeededDatabase(t *testing.T) {
	for _, file := range []string{seedTogether, seedApart} {
		t.Run(filepath.Dir(file), func(t *testing.T) { seeded(t, file) })
	}
}

func seeded(t *testing.T, file string) {
	s := postgres(t)
	entries := s.open(t)
	require.Error(t, entries.Ping(t.Context()), "not ready before the role and the table are there")

	require.Equal(t, "3 entries", s.seed(t, file))
	first := s.sql(t, "SELECT * FROM entries ORDER BY id")
	require.Equal(t, "3 entries", s.seed(t, file))
	require.Equal(t, first, s.sql(t, "SELECT * FROM entries ORDER BY id"), "a second run changes no row")

	require.NoError(t, entries.Ping(t.Context()))
	list, err := entries.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, []Entry{
		{ID: 3, Author: "Katherine", Message: "She floats!", Created: time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)},
		{ID: 2, Author: "Grace", Message: "Hull, rudder and crew are on board.", Created: time.Date(2026, 1, 5, 9, 30, 0, 0, time.UTC)},
		{ID: 1, Author: "Ada", Message: "The slipway is greased.", Created: time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)},
	}, list, "the newest first, wherever the authors are")

	_, err = entries.pool.Exec(t.Context(), "DELETE FROM entries")
	require.ErrorContains(t, err, "permission denied", "the app's role only reads")
}

func TestListIsLimited(t *testing.T) {
	s := postgres(t)
	s.seed(t, seedTogether)
	s.sql(t, fmt.Sprintf("INSERT INTO entries (author, message) SELECT 'bot', 'line ' || i FROM generate_series(1, %d) i", MaxEntries+5))
	list, err := s.open(t).List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, MaxEntries)
}

func TestDatabaseThatIsNotThere(t *testing.T) {
	entries, err := Open(t.Context(), Database{Host: "127.0.0.1", Port: "1", Name: "d", User: "u", Password: "s3cret"})
	require.NoError(t, err, "opening does not connect")
	t.Cleanup(entries.Close)
	err = entries.Ping(t.Context())
	require.ErrorContains(t, err, "ask the database")
	require.NotContains(t, err.Error(), "s3cret")
	_, err = entries.List(t.Context())
	require.ErrorContains(t, err, "read the entries")
}
