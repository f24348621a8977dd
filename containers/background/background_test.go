package background_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/background"
	"github.com/slipway-sh/slipway/fault"
)

var info = background.Info{Deployment: "dev", Node: "n1", Session: background.Session{Port: 4711, Token: "secret"}, Background: true, Log: "/dev.log"}

// serve shares a cluster whose ports are published at once.
func serve(t *testing.T, publish func(ready func()) error) (*background.Server, *background.Log, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "background", "s")
	var log background.Log
	s, err := background.Serve(t.Context(), file, info, &log, publish)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s, &log, file
}

func find(t *testing.T, file string) *background.Client {
	t.Helper()
	c, err := background.Find(t.Context(), file)
	require.NoError(t, err)
	return c
}

func TestASessionIsLent(t *testing.T) {
	s, _, file := serve(t, nil)
	c := find(t, file)
	require.NotNil(t, c)
	want := info
	want.Version, want.PID = 1, os.Getpid()
	require.Equal(t, want, c.Info)
	for name, mode := range map[string]os.FileMode{file: 0o600, filepath.Dir(file): 0o700} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), "it gives a password away")
	}
	require.True(t, s.Found())
	require.NoError(t, s.Close())
	require.Nil(t, find(t, file))
	require.NoError(t, s.Cause())
}

func TestATokenIsNotPrinted(t *testing.T) {
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		require.NotContains(t, fmt.Sprintf(format, info), "secret", format)
	}
}

// Who comes while the cluster stops must neither join it nor start another one.
func TestOneThatEndsIsWaitedFor(t *testing.T) {
	s, _, file := serve(t, nil)
	s.Drain(t.Context())
	found := make(chan *background.Client, 1)
	go func() {
		c, err := background.Find(t.Context(), file)
		if err != nil {
			t.Error(err)
		}
		found <- c
	}()
	select {
	case <-found:
		t.Fatal("it did not wait")
	case <-time.After(100 * time.Millisecond):
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := background.Find(ctx, file)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, s.Close())
	require.Nil(t, <-found)
}

// TestOneThatHangsUpIsAskedAgain: it is just ending, and then nobody is there.
func TestOneThatHangsUpIsAskedAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", file)
	require.NoError(t, err)
	go func() {
		for range 20 { // by chance before or after the request is sent
			conn, err := l.Accept()
			if err == nil {
				_ = conn.Close()
			}
		}
		_ = l.Close()
	}()
	require.Nil(t, find(t, file))
}

func TestAnotherVersionIsNotTalkedTo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", file)
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"version":2,"deployment":"dev","pid":4711}`)
	}))
	server.Listener = listener
	server.Start()
	defer server.Close()
	_, err = background.Find(t.Context(), file)
	require.ErrorIs(t, err, &fault.Fault{Code: "DEP-004"})
	require.ErrorContains(t, err, "another version of slipway (process 4711)")
}

func TestNobodyLends(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s")
	require.Nil(t, find(t, file))
	listener, err := net.Listen("unix", file)
	require.NoError(t, err)
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, listener.Close())
	require.FileExists(t, file, "as a process leaves it that was killed")
	require.Nil(t, find(t, file))
	s, err := background.Serve(t.Context(), file, info, new(background.Log), nil)
	require.NoError(t, err, "it is replaced")
	require.NotNil(t, find(t, file))
	require.NoError(t, s.Close())
}

func TestASecondIsRefused(t *testing.T) {
	_, _, file := serve(t, nil)
	_, err := background.Serve(t.Context(), file, info, new(background.Log), nil)
	require.ErrorIs(t, err, &fault.Fault{Code: "DEP-004"})
	require.Equal(t, fault.Locked, fault.ClassOf(err))
	require.ErrorContains(t, err, "the cluster of deployment dev runs in the background already (process ")
}

func TestASocketThatCannotBeMade(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	for _, file := range []string{
		filepath.Join(dir, "file", "s"),
		filepath.Join(dir, strings.Repeat("long", 40)),
	} {
		_, err := background.Serve(t.Context(), file, info, new(background.Log), nil)
		require.ErrorIs(t, err, &fault.Fault{Code: "DEP-005"}, file)
	}
}

func TestTheEnginesLogReachesWhoWorksInTheSession(t *testing.T) {
	_, log, file := serve(t, nil)
	said, lines := io.Pipe()
	leave, err := find(t, file).Attend(t.Context(), "install", lines)
	require.NoError(t, err)
	_, err = io.WriteString(log, "pulling\n")
	require.NoError(t, err)
	text := make([]byte, 8)
	_, err = io.ReadFull(said, text)
	require.NoError(t, err)
	require.Equal(t, "pulling\n", string(text))
	leave()
	_, err = io.WriteString(log, "nobody reads this\n")
	require.NoError(t, err)
}

// A follower that does not read must not stop the engine.
func TestASlowFollowerHoldsNobodyUp(t *testing.T) {
	_, log, file := serve(t, nil)
	blocked, lines := io.Pipe()
	leave, err := find(t, file).Attend(t.Context(), "", lines)
	require.NoError(t, err)
	for range 100_000 {
		_, err := io.WriteString(log, strings.Repeat("x", 100))
		require.NoError(t, err)
	}
	require.NoError(t, blocked.Close())
	leave()
}

func TestWhoIsKilledAtWorkTakesTheSessionAlong(t *testing.T) {
	s, _, file := serve(t, nil)
	vanish(t, file, "")
	select {
	case <-s.Done():
		t.Fatal("a look that is gone harms nobody")
	case <-time.After(100 * time.Millisecond):
	}
	vanish(t, file, "install")
	<-s.Done()
	require.ErrorIs(t, s.Cause(), &fault.Fault{Code: "DEP-007"})
	require.ErrorContains(t, s.Cause(), "process 1 (install) was killed while it worked on it")
}

// vanish works in a session and is gone without a word.
func vanish(t *testing.T, file, work string) {
	t.Helper()
	conn, err := net.Dial("unix", file)
	require.NoError(t, err)
	_, err = io.WriteString(conn, "GET /attend?pid=1&work="+work+" HTTP/1.1\r\nHost: s\r\nConnection: Upgrade\r\nUpgrade: slipway-session\r\n\r\n")
	require.NoError(t, err)
	_, err = conn.Read(make([]byte, 1))
	require.NoError(t, err)
	require.NoError(t, conn.Close())
}

func TestStopWaitsForTheEnd(t *testing.T) {
	s, _, file := serve(t, nil)
	c := find(t, file)
	var last sync.WaitGroup
	last.Go(func() {
		<-s.Done()
		s.Drain(t.Context())
		time.Sleep(50 * time.Millisecond) // the cluster stops
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	start := time.Now()
	require.NoError(t, c.Stop(t.Context()))
	require.GreaterOrEqual(t, time.Since(start), 50*time.Millisecond)
	last.Wait()
	require.NoError(t, s.Cause())
	require.NoError(t, c.Stop(t.Context()), "it is gone already")
}

func TestAStopIsRefusedWhileARunWorks(t *testing.T) {
	s, _, file := serve(t, nil)
	c := find(t, file)
	leave, err := c.Attend(t.Context(), "install", io.Discard)
	require.NoError(t, err)
	require.Contains(t, s.Working(), "(install)")
	require.True(t, s.Does("install"))
	require.False(t, s.Does("destroy"))
	err = c.Stop(t.Context())
	require.ErrorIs(t, err, &fault.Fault{Code: "DEP-004"})
	require.Equal(t, fault.Locked, fault.ClassOf(err))

	drained := make(chan struct{})
	go func() {
		defer close(drained)
		s.Drain(t.Context())
	}()
	select {
	case <-drained:
		t.Fatal("it did not wait for the run")
	case <-time.After(100 * time.Millisecond):
	}
	leave()
	<-drained
	require.Empty(t, s.Working())
	require.False(t, s.Does("install"))
}

func TestNoRunBeginsInASessionThatEnds(t *testing.T) {
	s, _, file := serve(t, nil)
	c := find(t, file)
	s.End(nil)
	_, err := c.Attend(t.Context(), "install", io.Discard)
	require.ErrorIs(t, err, &fault.Fault{Code: "DEP-004"})
	require.ErrorContains(t, err, "is about to end")
}

func TestDrainGivesUp(t *testing.T) {
	s, _, file := serve(t, nil)
	_, err := find(t, file).Attend(t.Context(), "install", io.Discard)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	s.Drain(ctx)
	require.NotEmpty(t, s.Working())
}

func TestPublishReturnsWhenThePortsAreThere(t *testing.T) {
	published := 0
	begun, end := make(chan struct{}), make(chan struct{})
	s, _, file := serve(t, func(ready func()) error {
		published++
		<-begun
		ready()
		<-end
		return nil
	})
	c := find(t, file)
	first := make(chan error, 1)
	go func() { first <- c.Publish(t.Context()) }()
	select {
	case err := <-first:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(begun)
	require.NoError(t, <-first)
	require.NoError(t, c.Publish(t.Context()), "again")
	close(end)
	<-s.Done()
	require.Equal(t, 1, published)
}

func TestAFailureToPublishIsTold(t *testing.T) {
	for _, told := range []error{
		&fault.Fault{Code: "DEP-001", Class: fault.Usage, Op: "run the cluster", Fix: "install it", Err: errors.New("nothing is there")},
		errors.New("nothing is there"),
	} {
		s, _, file := serve(t, func(func()) error { return told })
		err := find(t, file).Publish(t.Context())
		require.ErrorContains(t, err, "nothing is there")
		require.Equal(t, fault.ClassOf(told), fault.ClassOf(err))
		<-s.Done()
		require.Equal(t, told, s.Cause())
	}
}
