package gitserver_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/stages/internal/gitserver"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
)

// newGit serves bare repositories over HTTPS with git's own server, to the user
// "slipway" with the password "secret" only. Its certificate is for example.com.
func newGit(t *testing.T) (*gitserver.Server, string) {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	out, err := exec.CommandContext(t.Context(), git, "--exec-path").Output()
	require.NoError(t, err)
	root := t.TempDir()
	for _, args := range [][]string{
		{"init", "-q", "--bare", "-b", "main", filepath.Join(root, "slipway", "platform.git")},
		{"-C", filepath.Join(root, "slipway", "platform.git"), "config", "http.receivepack", "true"},
	} {
		out, err := exec.CommandContext(t.Context(), git, args...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(out)), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "HOME=" + root},
	}
	return serve(t, backend), root
}

// serve answers over HTTPS; the server that it returns goes through the address.
func serve(t *testing.T, h http.Handler) *gitserver.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, p, _ := r.BasicAuth(); !strings.HasPrefix(r.URL.Path, "/user/") && (u != "slipway" || p != "secret") {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	}))
	srv.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	return &gitserver.Server{
		URL: "https://example.com", Address: srv.Listener.Addr().String(),
		Roots: roots, Username: "slipway", Password: redact.New([]byte("secret")),
	}
}

func commit() gitserver.Commit {
	return gitserver.Commit{Author: "Slipway", Email: "slipway@example.org", Message: "first", When: time.Unix(1700000000, 0)}
}

func TestPushWritesOnlyWhatDiffers(t *testing.T) {
	s, root := newGit(t)
	ctx := t.Context()
	tree := gitserver.Tree{
		"apps/web/values.yaml": []byte("replicas: 1\n"),
		"apps/web.yaml":        []byte("a: 1\n"),
		"apps-other/x":         []byte("x"),
		"README":               []byte("hello\n"),
	}
	first, changed, err := s.Push(ctx, "slipway/platform", "main", tree, commit())
	require.NoError(t, err)
	require.True(t, changed)

	again, changed, err := s.Push(ctx, "slipway/platform", "main", tree, commit())
	require.NoError(t, err)
	require.False(t, changed, "an equal tree is not pushed")
	require.Equal(t, first, again)

	tree["README"] = []byte("bye\n")
	second, changed, err := s.Push(ctx, "slipway/platform", "main", tree, commit())
	require.NoError(t, err)
	require.True(t, changed)
	require.NotEqual(t, first, second)

	delete(tree, "apps-other/x")
	third, changed, err := s.Push(ctx, "slipway/platform", "main", tree, commit())
	require.NoError(t, err)
	require.True(t, changed, "a removed file is removed from the branch")

	bare := filepath.Join(root, "slipway", "platform.git")
	run := func(args ...string) string {
		cmd := exec.CommandContext(ctx, "git", append([]string{"-C", bare}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return strings.TrimSpace(string(out))
	}
	require.Equal(t, third, run("rev-parse", "main"))
	require.Equal(t, "3", run("rev-list", "--count", "main"))
	require.Equal(t, "README\napps/web.yaml\napps/web/values.yaml", run("ls-tree", "-r", "--name-only", "main"))
	require.Equal(t, "bye", run("show", "main:README"))
	require.Equal(t, "Slipway <slipway@example.org>", run("log", "-1", "--format=%an <%ae>"))
	run("fsck", "--strict")

	head, got, err := s.Head(ctx, "slipway/platform", "main")
	require.NoError(t, err)
	require.Equal(t, third, head)
	require.Equal(t, run("rev-parse", "main^{tree}"), got)
}

func TestHeadOfAnEmptyRepository(t *testing.T) {
	s, _ := newGit(t)
	commit, tree, err := s.Head(t.Context(), "slipway/platform", "main")
	require.NoError(t, err)
	require.Empty(t, commit)
	require.Empty(t, tree)
}

func TestPushSaysWhatIsWrong(t *testing.T) {
	s, _ := newGit(t)
	tree := gitserver.Tree{"a": []byte("a")}

	_, _, err := s.Push(t.Context(), "slipway/nothere", "main", tree, commit())
	require.ErrorContains(t, err, "slipway/nothere")

	wrong := *s
	wrong.Password = redact.New([]byte("wrong-password"))
	_, _, err = wrong.Push(t.Context(), "slipway/platform", "main", tree, commit())
	require.ErrorContains(t, err, "authentication required")
	require.NotContains(t, err.Error(), "wrong-password")

	untrusted := *s
	untrusted.Roots = x509.NewCertPool()
	_, _, err = untrusted.Push(t.Context(), "slipway/platform", "main", tree, commit())
	require.ErrorContains(t, err, "certificate")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = s.Push(ctx, "slipway/platform", "main", tree, commit())
	require.ErrorIs(t, err, context.Canceled)

	_, _, err = s.Push(t.Context(), "slipway/platform", "main", gitserver.Tree{"../x": nil}, commit())
	require.ErrorContains(t, err, "../x")
	_, _, err = s.Push(t.Context(), "slipway/platform", "main", gitserver.Tree{"x": nil, "x/y": nil}, commit())
	require.ErrorContains(t, err, "both a file and a folder")
}

// fakeAPI is the part of the git server's API that the client uses.
type fakeAPI struct {
	signUpOpen bool
	repos      map[string]bool
	users      map[string]bool
	readers    map[string]string // the permission of who is not the owner, by "repository/user"
	granted    int               // how often one was given
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/api/v1")
	switch {
	case path == "/user":
		_ = json.NewEncoder(w).Encode(map[string]string{"login": "slipway"})
	case path == "/user/sign_up":
		if !f.signUpOpen {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		f.users[r.FormValue("user_name")] = true
		w.WriteHeader(http.StatusSeeOther)
	case path == "/user/repos" && r.Method == http.MethodPost:
		var in struct {
			Name    string `json:"name"`
			Private bool   `json:"private"`
		}
		_ = json.NewDecoder(r.Body).Decode(&in)
		f.repos[in.Name] = in.Private
		w.WriteHeader(http.StatusCreated)
	case strings.Contains(path, "/collaborators/"):
		f.collaborate(w, r, strings.Replace(strings.TrimPrefix(path, "/repos/slipway/"), "/collaborators/", "/", 1))
	case strings.HasPrefix(path, "/repos/slipway/"):
		if _, ok := f.repos[strings.TrimPrefix(path, "/repos/slipway/")]; !ok {
			w.WriteHeader(http.StatusNotFound)
		}
	case strings.HasPrefix(path, "/users/"):
		if !f.users[strings.TrimPrefix(path, "/users/")] {
			w.WriteHeader(http.StatusNotFound)
		}
	default:
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = fmt.Fprintf(w, `{"message":"no such path %s"}`, path)
	}
}

// collaborate reads and gives permissions; name is "repository/user", with "/permission"
// to read one.
func (f *fakeAPI) collaborate(w http.ResponseWriter, r *http.Request, name string) {
	name, read := strings.CutSuffix(name, "/permission")
	_, user, _ := strings.Cut(name, "/")
	switch {
	case !f.users[user]:
		w.WriteHeader(http.StatusNotFound)
	case read:
		_ = json.NewEncoder(w).Encode(map[string]string{"permission": f.readers[name]})
	case r.Method == http.MethodPut:
		var in struct {
			Permission string `json:"permission"`
		}
		_ = json.NewDecoder(r.Body).Decode(&in)
		f.readers[name] = in.Permission
		f.granted++
		w.WriteHeader(http.StatusNoContent)
	}
}

func TestAReaderMayReadAndNotWrite(t *testing.T) {
	api := &fakeAPI{repos: map[string]bool{}, users: map[string]bool{"argocd": true}, readers: map[string]string{"platform/argocd": "none"}}
	s := serve(t, api)
	for range 2 {
		require.NoError(t, s.EnsureReader(t.Context(), "platform", "argocd"))
		require.Equal(t, map[string]string{"platform/argocd": "read"}, api.readers)
	}
	require.Equal(t, 1, api.granted, "it is given once")

	api.readers["platform/argocd"] = "write"
	require.NoError(t, s.EnsureReader(t.Context(), "platform", "argocd"))
	require.Equal(t, "read", api.readers["platform/argocd"], "no more than that")
	require.ErrorContains(t, s.EnsureReader(t.Context(), "platform", "nobody"), "answered 404")
}

func TestAPI(t *testing.T) {
	api := &fakeAPI{repos: map[string]bool{}, users: map[string]bool{}}
	s := serve(t, api)
	login, err := s.User(t.Context())
	require.NoError(t, err)
	require.Equal(t, "slipway", login)

	created, err := s.EnsureRepository(t.Context(), "platform", "the platform")
	require.NoError(t, err)
	require.True(t, created)
	require.True(t, api.repos["platform"], "the repository is private")
	created, err = s.EnsureRepository(t.Context(), "platform", "the platform")
	require.NoError(t, err)
	require.False(t, created)

	require.NoError(t, s.CheckSignUpRefused(t.Context()))
	api.signUpOpen = true
	require.ErrorIs(t, s.CheckSignUpRefused(t.Context()), gitserver.ErrSignUpOpen)

	s.Password = redact.New([]byte("wrong"))
	_, err = s.User(t.Context())
	e := new(gitserver.StatusError)
	require.ErrorAs(t, err, &e)
	require.Equal(t, http.StatusUnauthorized, e.Status)
}

func TestPasswordIsNeverPrinted(t *testing.T) {
	s := gitserver.Server{Username: "slipway", Password: redact.New([]byte("canary-4711"))}
	b, err := json.Marshal(s)
	require.NoError(t, err)
	for _, text := range []string{fmt.Sprint(s), fmt.Sprintf("%+v %#v %s", s, s, s.Password), string(b)} {
		require.NotContains(t, text, "canary-4711")
	}
}

// TestAMachineThatSleptPushesNothing, and makes nothing, also where its context has not ended.
func TestAMachineThatSleptPushesNothing(t *testing.T) {
	s, _ := newGit(t)
	work, sleep := kubetest.Work(t)
	ctx := context.WithoutCancel(work)
	commit := gitserver.Commit{Author: "a", Email: "a@b", Message: "m", When: time.Now()}
	first, changed, err := s.Push(ctx, "slipway/platform", "main", gitserver.Tree{"a": []byte("1")}, commit)
	require.NoError(t, err)
	require.True(t, changed)
	sleep()
	_, _, err = s.Push(ctx, "slipway/platform", "main", gitserver.Tree{"a": []byte("2")}, commit)
	require.ErrorIs(t, err, &fault.Fault{Code: lock.CodeLost})
	head, _, err := s.Head(ctx, "slipway/platform", "main")
	require.NoError(t, err)
	require.Equal(t, first, head)
}
