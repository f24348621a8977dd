package background

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// taking is a connection that the server is about to take over.
type taking struct {
	http.ResponseWriter
	hijack func() (net.Conn, error)
}

func (t taking) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, err := t.hijack()
	return conn, nil, err
}

// A run that was not refused is waited for, also while its connection is taken over.
func TestARunThatJoinsAtTheEndIsWaitedFor(t *testing.T) {
	s, err := Serve(t.Context(), filepath.Join(t.TempDir(), "s"), Info{}, new(Log), nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	here, there := net.Pipe()
	drained, joined := make(chan struct{}), make(chan struct{})
	w := taking{httptest.NewRecorder(), func() (net.Conn, error) {
		go func() {
			defer close(drained)
			s.Drain(t.Context())
		}()
		<-s.Done()
		select {
		case <-drained: // too early
		case <-time.After(50 * time.Millisecond):
		}
		return there, nil
	}}
	go func() {
		defer close(joined)
		s.attend(w, httptest.NewRequest(http.MethodGet, "/attend?pid=7&work=install", http.NoBody))
	}()
	_, err = here.Read(make([]byte, 1024))
	require.NoError(t, err)
	select {
	case <-drained:
		t.Fatal("the cluster is stopped under a run")
	case <-time.After(100 * time.Millisecond):
	}
	_, err = io.WriteString(here, bye)
	require.NoError(t, err)
	<-drained
	<-joined
	require.NoError(t, s.Cause())
}

func TestARunWhoseConnectionIsLostWorksNoMore(t *testing.T) {
	s, err := Serve(t.Context(), filepath.Join(t.TempDir(), "s"), Info{}, new(Log), nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	w := taking{httptest.NewRecorder(), func() (net.Conn, error) {
		require.Equal(t, "process 7 (install)", s.Working())
		return nil, errors.New("it is gone")
	}}
	s.attend(w, httptest.NewRequest(http.MethodGet, "/attend?pid=7&work=install", http.NoBody))
	require.Empty(t, s.Working())
	select {
	case <-s.Done():
		t.Fatal("nothing was begun")
	default:
	}
}
