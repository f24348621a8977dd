package orchestrator

import (
	"context"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/gitserver"
	"github.com/slipway-sh/slipway/stages/step"
)

func TestATreeThatTheGitServerDoesNotTake(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer srv.Close()
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	user := &gitserver.Server{URL: "https://example.com", Address: srv.Listener.Addr().String(), Roots: roots}
	env := step.NewEnv("r", "orchestrator/publish", step.Dirs{}, io.Discard, io.Discard)
	_, err := publish(t.Context(), env, user, gitserver.Tree{"a": []byte("a")}, testRelease(), input())
	require.ErrorIs(t, err, &fault.Fault{Code: gitserver.CodePush})
	require.Equal(t, fault.Step, fault.ClassOf(err))
	require.ErrorContains(t, err, "push the GitOps tree: list the branches of slipway/platform: ")
}

func TestATreeThatTheGitServerDoesNotTakeInTime(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	user := &gitserver.Server{URL: "https://example.com", Address: "127.0.0.1:1"}
	env := step.NewEnv("r", "orchestrator/publish", step.Dirs{}, io.Discard, io.Discard)
	_, err := publish(ctx, env, user, gitserver.Tree{"a": []byte("a")}, testRelease(), input())
	require.ErrorIs(t, err, &fault.Fault{Code: gitserver.CodePush})
	require.Equal(t, fault.Timeout, fault.ClassOf(err))
}
