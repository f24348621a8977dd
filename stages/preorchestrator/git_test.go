package preorchestrator

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/gitserver"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
	"github.com/slipway-sh/slipway/stages/internal/plan"
	"github.com/slipway-sh/slipway/stages/step"
)

// forge is a git server with accounts whose passwords are their names turned around: one
// that administers it, one that pushes and one that reads.
type forge struct {
	root     string       // of the repositories
	git      *cgi.Handler // nil: pushes are not possible
	openDoor bool         // a stranger can sign up
	broken   string       // what of a path is answered with status 500
	mu       sync.Mutex
	users    map[string]bool
	readers  map[string]bool // "repository/user"
	url      string          // where it listens
	ca       string          // PEM
}

func newForge(t *testing.T) *forge {
	t.Helper()
	f := &forge{root: t.TempDir(), users: map[string]bool{"root": true, "slipway": true, "argocd": true}, readers: map[string]bool{}}
	if dir, err := exec.CommandContext(t.Context(), "git", "--exec-path").Output(); err == nil {
		f.git = &cgi.Handler{
			Path: filepath.Join(strings.TrimSpace(string(dir)), "git-http-backend"),
			Env:  []string{"GIT_PROJECT_ROOT=" + f.root, "GIT_HTTP_EXPORT_ALL=1", "HOME=" + f.root},
		}
	}
	s := httptest.NewTLSServer(f)
	t.Cleanup(s.Close)
	f.url = s.Listener.Addr().String()
	f.ca = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	return f
}

func reversed(s string) string {
	var b strings.Builder
	for i := len(s); i > 0; i-- {
		b.WriteByte(s[i-1])
	}
	return b.String()
}

func (f *forge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	user, password, _ := r.BasicAuth()
	path := strings.TrimPrefix(r.URL.Path, "/api/v1")
	switch {
	case f.broken != "" && strings.Contains(r.URL.Path, f.broken):
		w.WriteHeader(http.StatusInternalServerError)
	case path == "/user/sign_up":
		if f.openDoor {
			f.users[r.FormValue("user_name")] = true
		}
	case !f.users[user] || password != reversed(user):
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		w.WriteHeader(http.StatusUnauthorized)
	case path == "/user":
		_ = json.NewEncoder(w).Encode(map[string]string{"login": user})
	case strings.HasPrefix(path, "/users/"):
		if user != "root" || !f.users[strings.TrimPrefix(path, "/users/")] {
			w.WriteHeader(http.StatusNotFound)
		}
	case path == "/user/repos":
		var in struct{ Name string }
		_ = json.NewDecoder(r.Body).Decode(&in)
		if err := f.create(r, user, in.Name); err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, err.Error())
		}
	case strings.Contains(path, "/collaborators/"):
		name, ask := strings.CutSuffix(strings.Replace(strings.TrimPrefix(path, "/repos/slipway/"), "/collaborators/", "/", 1), "/permission")
		if !ask {
			f.readers[name] = true
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"permission": map[bool]string{true: "read", false: "none"}[f.readers[name]]})
	case strings.HasPrefix(path, "/repos/"):
		if _, err := os.Stat(filepath.Join(f.root, strings.TrimPrefix(path, "/repos/")+".git")); err != nil {
			w.WriteHeader(http.StatusNotFound)
		}
	case f.git != nil:
		f.git.ServeHTTP(w, r)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// create makes a repository.
func (f *forge) create(r *http.Request, owner, name string) error {
	dir := filepath.Join(f.root, owner, name+".git")
	if f.git == nil {
		return os.MkdirAll(dir, 0o700)
	}
	_, one := exec.CommandContext(r.Context(), "git", "init", "-q", "--bare", "-b", "main", dir).Output()
	_, two := exec.CommandContext(r.Context(), "git", "-C", dir, "config", "http.receivepack", "true").Output()
	return errors.Join(one, two)
}

// cluster is one in which the platform of the release runs with f as its git server.
func (f *forge) cluster(t *testing.T) (*kubetest.API, *step.Env) {
	t.Helper()
	_, port, _ := strings.Cut(f.url, ":")
	api := kubetest.Serve(t)
	env := connected(t, api.URL)
	for name, text := range map[string]string{
		platform.File: `apiVersion: slipway/v2
name: sample
version: 1.0.0
namespaces: [{name: code}, {name: cd}, {name: shop}]
certificates: [{secret: code/git-tls, hosts: ["*.{domain}"]}]
components:
  - {name: git-server, kind: manifests, path: a.yaml, namespace: code, required: true}
  - {name: argocd, kind: manifests, path: a.yaml, namespace: cd, required: true}
  - {name: web, kind: app, path: gitops/web, namespace: shop}
gitops:
  engine: argocd
  server:
    component: git-server
    service: code/git:` + port + `
    hosts: [git.code.svc, "git.{domain}"]
    repository: slipway/platform
    accounts: {administrator: code/root, writer: code/writer, reader: code/reader}
`,
		"a.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", "gitops/web/Chart.yaml": "name: web",
	} {
		file := filepath.Join(env.PlatformDir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	set := func(path string, fields map[string]any) {
		text, err := yaml.Marshal(fields)
		require.NoError(t, err)
		api.Set(t, path, string(text))
	}
	set("/api/v1/namespaces/slipway-system/configmaps/slipway-ca", map[string]any{"data": map[string]string{"ca.crt": f.ca}})
	api.Set(t, "/api/v1/namespaces/code/services/git", "{status: {loadBalancer: {ingress: [{ip: 127.0.0.1}]}}}")
	for name, user := range map[string]string{"root": "root", "writer": "slipway", "reader": "argocd"} {
		set("/api/v1/namespaces/code/secrets/"+name, map[string]any{"data": map[string][]byte{"username": []byte(user), "password": []byte(reversed(user))}})
	}
	return api, env
}

func gitInput() contract.GitInput {
	return contract.GitInput{Domain: "example.com", GitHost: "git.example.com"} // which httptest's certificate is for
}

// text is a Secret's data.
func text(t *testing.T, api *kubetest.API, path string) map[string]string {
	t.Helper()
	b, err := json.Marshal(api.Get(path)["data"])
	require.NoError(t, err)
	var data map[string][]byte
	require.NoError(t, json.Unmarshal(b, &data))
	out := map[string]string{}
	for k, v := range data {
		out[k] = string(v)
	}
	return out
}

func TestTheGitServerIsVerifiedByUseAndRegistered(t *testing.T) {
	f := newForge(t)
	if f.git == nil {
		t.Skip("git is not installed")
	}
	api, env := f.cluster(t)
	_, err := step.Unchanged(runGit)(t.Context(), env, gitInput())
	require.ErrorIs(t, err, plan.ErrLater)
	require.Empty(t, api.Writes())

	out, err := runGit(t.Context(), env, gitInput())
	require.NoError(t, err)
	require.Equal(t, contract.Git{
		GitServer: contract.GitServer{URL: "https://git.example.com", Address: f.url}, ClusterURL: "https://git.example.com",
		Repository: "slipway/platform", Writer: "code/writer",
	}, out)
	require.DirExists(t, filepath.Join(f.root, "slipway/platform.git"))
	require.Equal(t, map[string]bool{"platform/argocd": true}, f.readers)
	for path, want := range map[string]struct {
		kind string
		data map[string]string
	}{
		"/api/v1/namespaces/cd/secrets/repository-platform":  {"repository", map[string]string{"type": "git", "url": "https://git.example.com/slipway/platform.git", "username": "argocd", "password": "dcogra"}},
		"/api/v1/namespaces/cd/secrets/repositories-slipway": {"repo-creds", map[string]string{"type": "git", "url": "https://git.example.com/slipway/", "username": "argocd", "password": "dcogra"}},
	} {
		require.Equal(t, want.data, text(t, api, path), "the account that reads, and no other")
		labels := api.Get(path)["metadata"].(map[string]any)["labels"].(map[string]any)
		require.Equal(t, map[string]any{kube.ManagedBy: "slipway", kube.DeploymentLabel: "demo", "argocd.argoproj.io/secret-type": want.kind}, labels)
	}

	before := len(api.Writes())
	_, err = step.Unchanged(runGit)(t.Context(), env, gitInput())
	require.NoError(t, err)
	again, err := runGit(t.Context(), env, gitInput())
	require.NoError(t, err)
	require.Equal(t, out, again)
	require.Len(t, api.Writes(), before, "nothing has changed")

	api.Set(t, "/api/v1/namespaces/cd/secrets/repository-platform", "data: {password: YQ==}")
	_, err = step.Unchanged(runGit)(t.Context(), env, gitInput())
	require.ErrorIs(t, err, plan.ErrChange)
	_, err = runGit(t.Context(), env, gitInput())
	require.NoError(t, err)
	require.Equal(t, "dcogra", text(t, api, "/api/v1/namespaces/cd/secrets/repository-platform")["password"])
}

// TestOneAccountThatPushesAndReads: a release may name one for both.
func TestOneAccountThatPushesAndReads(t *testing.T) {
	f := newForge(t)
	if f.git == nil {
		t.Skip("git is not installed")
	}
	api, env := f.cluster(t)
	api.Set(t, "/api/v1/namespaces/code/secrets/reader", "data: {username: c2xpcHdheQ==, password: eWF3cGlscw==}")
	_, err := runGit(t.Context(), env, gitInput())
	require.NoError(t, err)
	require.Empty(t, f.readers, "the owner need not be let in")
	require.Equal(t, "slipway", text(t, api, "/api/v1/namespaces/cd/secrets/repository-platform")["username"])
}

func TestAGitServerThatDoesNotDoWhatItMust(t *testing.T) {
	for what, c := range map[string]struct {
		change func(*testing.T, *forge, *kubetest.API)
		host   string
		code   fault.Code
		says   string
	}{
		"no repository":  {func(_ *testing.T, f *forge, _ *kubetest.API) { f.broken = "/api/v1/user/repos" }, "git.example.com", gitserver.CodeServer, "on the git server: POST /api/v1/user/repos answered 500"},
		"no reader":      {func(_ *testing.T, f *forge, _ *kubetest.API) { f.broken = "/collaborators/" }, "git.example.com", gitserver.CodeServer, "let argocd read the repository "},
		"open to all":    {func(_ *testing.T, f *forge, _ *kubetest.API) { f.openDoor = true }, "git.example.com", gitserver.CodeServer, "try to sign up on the git server as a stranger: anybody can sign up"},
		"cannot tell":    {func(_ *testing.T, f *forge, _ *kubetest.API) { f.broken = "/api/v1/users/" }, "git.example.com", gitserver.CodeServer, "try to sign up as a stranger on the git server: "},
		"no certificate": {func(*testing.T, *forge, *kubetest.API) {}, "", gitserver.CodeServer, "no certificate of the platform is for one of its hosts: git.code.svc, git.{domain}"},
		"of somebody else's": {func(t *testing.T, _ *forge, api *kubetest.API) {
			api.Set(t, "/api/v1/namespaces/code/secrets/writer", "data: {username: cm9vdA==}")
		}, "git.example.com", gitserver.CodeServer, "open the repository slipway/platform on the git server: it is not of the account that pushes, root (gitops.server in platform.yaml)"},
	} {
		t.Run(what, func(t *testing.T) {
			f := newForge(t)
			api, env := f.cluster(t)
			c.change(t, f, api)
			in := gitInput()
			in.GitHost = c.host
			_, err := runGit(t.Context(), env, in)
			refused(t, err, c.code, c.says)
			require.Empty(t, api.Writes(), "Argo CD is told of none that does not work")
		})
	}
}

func TestTheRemedyNamesTheGitServersLog(t *testing.T) {
	g := &git{server: &platform.GitServer{Service: "code/git:" + strconv.Itoa(443)}}
	f := new(fault.Fault)
	require.ErrorAs(t, g.bad(gitserver.CodePush, "push over HTTPS", errors.New("refused")), &f)
	require.Equal(t, "look at its log: slipway toolchain -- kubectl logs -n code service/git", f.Fix)
}
