package preorchestrator

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/gitserver"
	"github.com/slipway-sh/slipway/stages/step"
)

// refused fails the test unless err has that code, is of class Step, and says all
// of it.
func refused(t *testing.T, err error, code fault.Code, says ...string) {
	t.Helper()
	require.ErrorIs(t, err, &fault.Fault{Code: code})
	require.Equal(t, fault.Step, fault.ClassOf(err))
	for _, s := range says {
		require.ErrorContains(t, err, s)
	}
}

// newEnv is the environment of a step whose cluster answers GET requests as
// answers say by path, and forbids all else.
func newEnv(t *testing.T, answers map[string]any) *step.Env {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if answer, ok := answers[r.URL.Path]; ok && r.Method == http.MethodGet {
			_ = json.NewEncoder(w).Encode(answer)
			return
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"you may not"}`)
	}))
	t.Cleanup(s.Close)
	return connected(t, s.URL)
}

// connected is the environment of a step whose cluster is at url.
func connected(t *testing.T, url string) *step.Env {
	t.Helper()
	env := step.NewEnv("r1", "preorchestrator/test", step.Dirs{State: t.TempDir(), Platform: t.TempDir(), Bundle: t.TempDir()}, io.Discard, io.Discard)
	env.Deployment = "demo"
	require.NoError(t, os.MkdirAll(filepath.Dir(env.Kubeconfig), 0o700))
	text := fmt.Sprintf(`{"clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`, url)
	require.NoError(t, os.WriteFile(env.Kubeconfig, []byte(text), 0o600))
	return env
}

func TestWhatTakesTooLongIsATimeout(t *testing.T) {
	late := fmt.Errorf("waited 2s for the git server: %w", context.DeadlineExceeded)
	g := &git{server: &platform.GitServer{Service: "code/git:443"}}
	for code, err := range map[fault.Code]error{
		gitserver.CodeServer: g.bad(gitserver.CodeServer, "make a repository", late), gitserver.CodePush: g.bad(gitserver.CodePush, "push over HTTPS", late),
	} {
		require.ErrorIs(t, err, &fault.Fault{Code: code})
		require.Equal(t, fault.Timeout, fault.ClassOf(err), code)
	}
}
