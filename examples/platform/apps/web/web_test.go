package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestServeLosesNoRequest: after the signal, new requests are answered for a while, and running
// ones are finished.
func TestServeLosesNoRequest(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	started, release := make(chan struct{}), make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/", OK)
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		close(started)
		<-release
		OK(w, r)
	})
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- serve(ctx, listener, mux) }()
	get := func(path string) string {
		request, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, "http://"+listener.Addr().String()+path, nil)
		if err != nil {
			return err.Error()
		}
		r, err := http.DefaultClient.Do(request)
		if err != nil {
			return err.Error()
		}
		defer func() { _ = r.Body.Close() }()
		text, _ := io.ReadAll(r.Body)
		return string(text)
	}
	slow := make(chan string, 1)
	go func() { slow <- get("/slow") }()
	<-started
	stop()
	for end := time.Now().Add(linger / 2); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		require.Equal(t, "ok\n", get("/"))
	}
	time.Sleep(linger)
	require.Contains(t, get("/"), "refused")
	close(release)
	require.Equal(t, "ok\n", <-slow)
	require.NoError(t, <-served)
}

func TestSettings(t *testing.T) {
	dir := t.TempDir()
	file, empty := filepath.Join(dir, "password"), filepath.Join(dir, "empty")
	require.NoError(t, os.WriteFile(file, []byte("s3cret\n"), 0o600))
	require.NoError(t, os.WriteFile(empty, []byte("\n"), 0o600))
	values := map[string]string{"TITLE": " Rows ", "PASSWORD_FILE": file, "EMPTY_FILE": empty, "ADDRESS": "https://a.test/x/", "WRONG": "a.test"}
	env := &Env{getenv: func(name string) string { return values[name] }}
	require.Equal(t, "Rows", env.Text("TITLE", "Title"))
	require.Equal(t, ":80", env.Text("LISTEN", ":80"))
	require.Equal(t, "https://a.test/x", env.URL("ADDRESS"))
	secret := env.File("PASSWORD_FILE")
	require.Equal(t, Secret("s3cret"), secret)
	require.NotContains(t, fmt.Sprintf("%v %+v %#v %s", secret, secret, secret, secret), "s3cret")
	require.NoError(t, env.Err())

	env.Text("HOST", "")
	env.URL("WRONG")
	env.File("EMPTY_FILE")
	env.File("KEY_FILE")
	require.EqualError(t, env.Err(), "HOST is not set\nWRONG: \"a.test\" is no URL\nEMPTY_FILE: "+empty+" is empty\nKEY_FILE is not set")
}

func TestExitCodes(t *testing.T) {
	commands := map[string]Command{
		"work": func(context.Context, *Env, *slog.Logger) error { return nil },
		"fail": func(context.Context, *Env, *slog.Logger) error { return errors.New("no database") },
	}
	for code, args := range [][]string{{"work"}, {"fail"}, {"work", "fail"}} {
		var log bytes.Buffer
		require.Equal(t, code, Run(t.Context(), args, os.Getenv, &log, commands), log.String())
	}
}

func TestPagesAreSecure(t *testing.T) {
	w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/logout", nil)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	Secure(http.HandlerFunc(OK)).ServeHTTP(w, r)
	require.Equal(t, http.StatusForbidden, w.Code)
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	require.Contains(t, w.Header().Get("Content-Security-Policy"), "default-src 'none'")

	var log bytes.Buffer
	w = httptest.NewRecorder()
	Fail(w, slog.New(slog.NewTextHandler(&log, nil)), http.StatusServiceUnavailable, errors.New("dial 10.0.0.7"))
	require.Equal(t, "Service Unavailable\n", w.Body.String())
	require.Contains(t, log.String(), "10.0.0.7")
}
