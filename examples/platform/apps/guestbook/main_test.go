package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestServeFinishesRunningRequests(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	started, release := make(chan struct{}), make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(started)
		<-release
		_, _ = io.WriteString(w, "done")
	})
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := "http://" + listener.Addr().String()
	served := make(chan error, 1)
	go func() { served <- serve(ctx, listener, handler, 0) }()

	body := make(chan string, 1)
	go func() {
		request, _ := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, address, nil)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			body <- err.Error()
			return
		}
		defer func() { _ = response.Body.Close() }()
		content, _ := io.ReadAll(response.Body)
		body <- string(content)
	}()
	<-started
	stop()
	require.Eventually(t, func() bool { // new connections are refused before the old one ends
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", listener.Addr().String())
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	}, 5*time.Second, 10*time.Millisecond)
	close(release)
	require.Equal(t, "done", <-body)
	require.NoError(t, <-served)
}

// TestServeGoesOnForAWhile: who has not heard yet that it stops is answered.
func TestServeGoesOnForAWhile(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	const linger = time.Second
	go func() { served <- serve(ctx, listener, http.NotFoundHandler(), linger) }()
	stopped := time.Now()
	stop()
	answers := 0
	for time.Since(stopped) < linger/2 {
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String(), nil)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.True(t, response.Close || answers == 0, "it keeps no connection")
		require.NoError(t, response.Body.Close())
		answers++
		time.Sleep(10 * time.Millisecond)
	}
	require.Greater(t, answers, 5)
	require.NoError(t, <-served)
	require.GreaterOrEqual(t, time.Since(stopped), linger)
}

func TestServeReportsItsListener(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	require.ErrorContains(t, serve(t.Context(), listener, http.NotFoundHandler(), 0), "serve on 127.0.0.1")
}

func TestRunExitCodes(t *testing.T) {
	var log bytes.Buffer
	require.Equal(t, 2, run(t.Context(), env(nil), &log))
	require.Contains(t, log.String(), "DATABASE_HOST is not set")

	log.Reset()
	values := map[string]string{
		"LISTEN": "127.0.0.1:0", "DATABASE_HOST": "127.0.0.1", "DATABASE_PORT": "70000",
		"DATABASE_NAME": "d", "DATABASE_USER": "u", "DATABASE_PASSWORD": "s3cret",
	}
	require.Equal(t, 1, run(t.Context(), env(values), &log))
	require.Contains(t, log.String(), "DATABASE_PORT")

	log.Reset()
	values["DATABASE_PORT"] = "1"
	stopped, stop := context.WithCancel(t.Context())
	stop()
	require.Equal(t, 0, run(stopped, env(values), &log), "it serves without its database, and stops when told")
	require.NotContains(t, log.String(), "s3cret")
}
