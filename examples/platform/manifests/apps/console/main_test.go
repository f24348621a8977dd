package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
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
	served := make(chan error, 1)
	go func() { served <- serve(ctx, listener, handler, slog.New(slog.DiscardHandler)) }()

	body := make(chan string, 1)
	go func() {
		request, _ := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, "http://"+listener.Addr().String(), nil)
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

func TestExitCodes(t *testing.T) {
	good := complete(t)
	good["DATABASE_PORT"] = "1" // nobody answers there
	with := func(changes map[string]string) map[string]string {
		out := map[string]string{}
		for _, from := range []map[string]string{good, changes} {
			for k, v := range from {
				out[k] = v
			}
		}
		return out
	}
	for name, tc := range map[string]struct {
		args []string
		env  map[string]string
		code int
		says string
	}{
		"no command":         {nil, good, 2, "usage: console serve"},
		"an unknown one":     {[]string{"bake"}, good, 2, "usage: console serve"},
		"more than one":      {[]string{"serve", "migrate"}, good, 2, "usage: console serve"},
		"nothing configured": {[]string{"serve"}, nil, 2, "ISSUER is not set"},
		"a session key":      {[]string{"serve"}, with(map[string]string{"SESSION_KEY_FILE": "", "SESSION_KEY": "short"}), 2, "64 hexadecimal digits"},
		"a CA that is none":  {[]string{"serve"}, with(map[string]string{"CA_FILE": "/no/such/file"}), 2, "CA_FILE"},
		"no certificate":     {[]string{"serve"}, good, 2, "/tls.crt"},
		"no administrator":   {[]string{"create-admin"}, nil, 2, "ADMIN_EMAIL is not set"},
		"no database":        {[]string{"migrate"}, nil, 2, "DATABASE_HOST is not set"},
		"a silent database":  {[]string{"migrate"}, with(map[string]string{"DATABASE_HOST": "127.0.0.1"}), 1, "connect to console@127.0.0.1:1/console"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			require.Equal(t, tc.code, run(t.Context(), tc.args, env(tc.env), &log), log.String())
			require.Contains(t, log.String(), tc.says)
			require.NotContains(t, log.String(), "s3cret")
		})
	}
}
