package preorchestrator

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	helmkube "helm.sh/helm/v3/pkg/kube/fake"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/gitserver"
	"github.com/slipway-sh/slipway/stages/internal/kube"
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
	env := step.NewEnv("r1", "preorchestrator/test", step.Dirs{State: t.TempDir(), Platform: t.TempDir(), Bundle: t.TempDir()}, io.Discard, io.Discard)
	require.NoError(t, os.MkdirAll(filepath.Dir(env.Kubeconfig), 0o700))
	text := fmt.Sprintf(`{"clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`, s.URL)
	require.NoError(t, os.WriteFile(env.Kubeconfig, []byte(text), 0o600))
	return env
}

// gitServer is one that knows both accounts, and answers the rest as answers say
// by path with a status; what they do not name is a status 500. It comes with the
// objects of a cluster that lead to it.
func gitServer(t *testing.T, answers map[string]int) (user, admin *gitserver.Server, objects map[string]any) {
	t.Helper()
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, _, _ := r.BasicAuth()
		if r.URL.Path == "/api/v1/user" {
			_ = json.NewEncoder(w).Encode(map[string]string{"login": name})
			return
		}
		for prefix, status := range answers {
			if strings.HasPrefix(r.URL.Path, prefix) {
				w.WriteHeader(status)
				return
			}
		}
		w.WriteHeader(http.StatusInternalServerError)
	}))
	t.Cleanup(srv.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	secret := func(name string) map[string]any {
		encode := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
		return map[string]any{"kind": "Secret", "apiVersion": "v1", "data": map[string]string{"username": encode(name), "password": encode("secret")}}
	}
	objects = map[string]any{
		"/api/v1/namespaces/slipway-system/configmaps/slipway-ca": map[string]any{
			"kind": "ConfigMap", "apiVersion": "v1", "data": map[string]string{"ca.crt": string(ca)},
		},
		"/api/v1/namespaces/gitea/secrets/" + gitserver.User:  secret("slipway"),
		"/api/v1/namespaces/gitea/secrets/" + gitserver.Admin: secret("root"),
	}
	c, err := kube.Connect(newEnv(t, objects).Kubeconfig, nil)
	require.NoError(t, err)
	at := contract.GitServer{URL: "https://example.com", Address: srv.Listener.Addr().String()}
	user, err = gitserver.Account(t.Context(), c, at, gitserver.User, func(string) {})
	require.NoError(t, err)
	admin, err = gitserver.Account(t.Context(), c, at, gitserver.Admin, func(string) {})
	require.NoError(t, err)
	return user, admin, objects
}

func TestAnImageWithoutAReference(t *testing.T) {
	values, err := giteaValues(contract.GiteaInput{Values: []byte(`{"scale":"500","tls":{"extra":true},"more":1}`)}, platform.Component{Name: "gitea"})
	require.NoError(t, err)
	require.Equal(t, "500", values["scale"], "the user's wins")
	require.Equal(t, map[string]any{"secretName": giteaTLS, "extra": true}, values["tls"])
	require.InDelta(t, 1, values["more"], 0)
	_, err = giteaValues(contract.GiteaInput{}, platform.Component{Images: []string{"gitea"}})
	refused(t, err, CodeImage, "neither the bundle nor the registry has an image named gitea")
}

func TestAChartThatIsNone(t *testing.T) {
	_, err := openRelease(&kube.Client{}, slog.New(slog.DiscardHandler), "", "gitea", "gitea", t.TempDir(), nil)
	refused(t, err, CodeChart, "render the chart gitea: Chart.yaml file is missing")
}

func TestHelmThatCannotInstall(t *testing.T) {
	r := &chartRelease{
		client: &kube.Client{}, log: slog.New(slog.DiscardHandler), name: "gitea", namespace: "gitea",
		chart: &chart.Chart{Metadata: &chart.Metadata{Name: "gitea", Version: "1.0.0"}},
		config: &action.Configuration{
			Releases:     storage.Init(driver.NewMemory()),
			KubeClient:   &helmkube.FailingKubeClient{PrintingKubeClient: helmkube.PrintingKubeClient{Out: io.Discard}, BuildError: errors.New("no route to the cluster")},
			Capabilities: chartutil.DefaultCapabilities,
			Log:          func(string, ...any) {},
		},
	}
	_, err := r.converge(t.Context())
	refused(t, err, CodeRelease, "install the chart gitea: ", "no route to the cluster")
}

// TestAnUpgradeThatCannotBePlanned: only what cannot be rendered is the chart's fault.
func TestAnUpgradeThatCannotBePlanned(t *testing.T) {
	ch := &chart.Chart{Metadata: &chart.Metadata{Name: "gitea", Version: "1.0.0"}, Templates: []*chart.File{{Name: "templates/a.yaml", Data: []byte(`{{ fail "no host" }}`)}}}
	memory := driver.NewMemory()
	memory.SetNamespace("gitea")
	r := &chartRelease{
		client: &kube.Client{}, log: slog.New(slog.DiscardHandler), name: "gitea", namespace: "gitea", chart: ch,
		config: &action.Configuration{Releases: storage.Init(memory), Capabilities: chartutil.DefaultCapabilities, Log: func(string, ...any) {}},
	}
	require.NoError(t, r.config.Releases.Create(&release.Release{
		Name: "gitea", Namespace: "gitea", Version: 1, Chart: ch, Info: &release.Info{Status: release.StatusDeployed},
	}))
	r.config.KubeClient = &helmkube.PrintingKubeClient{Out: io.Discard}
	_, err := r.converge(t.Context())
	refused(t, err, CodeChart, "render the chart gitea: ", "no host")

	r.config.KubeClient = awayCluster{&helmkube.PrintingKubeClient{Out: io.Discard}}
	_, err = r.converge(t.Context())
	refused(t, err, CodeRelease, "plan the upgrade of the chart gitea: the cluster: connection refused")
}

// awayCluster is Helm's client of a cluster that does not answer.
type awayCluster struct{ *helmkube.PrintingKubeClient }

func (awayCluster) IsReachable() error { return fmt.Errorf("the cluster: %w", syscall.ECONNREFUSED) }

func TestTheGitServerIsVerifiedByUse(t *testing.T) {
	for what, c := range map[string]struct {
		answers map[string]int
		code    fault.Code
		says    string
	}{
		"no repository": {map[string]int{"/user/sign_up": 403, "/api/v1/users/": 404}, CodeGitServer, "make the repository platform on the git server: "},
		"open to all":   {map[string]int{"/api/v1/repos/": 200, "/user/sign_up": 303, "/api/v1/users/": 200}, CodeSignUp, "anybody can sign up"},
		"cannot tell":   {map[string]int{"/api/v1/repos/": 200, "/user/sign_up": 303}, CodeGitServer, "try to sign up as a stranger on the git server: "},
		"as it must be": {map[string]int{"/api/v1/repos/": 200, "/user/sign_up": 403, "/api/v1/users/": 404}, "", ""},
	} {
		t.Run(what, func(t *testing.T) {
			user, admin, _ := gitServer(t, c.answers)
			err := (&gitea{client: &kube.Client{}, env: newEnv(t, nil)}).use(t.Context(), admin, user)
			if c.code == "" {
				require.NoError(t, err)
			} else {
				refused(t, err, c.code, c.says)
			}
		})
	}
}

func TestManifestsOfArgoCDThatAreMissing(t *testing.T) {
	env := newEnv(t, nil)
	fix := func(err error) string {
		f, _ := errors.AsType[*fault.Fault](err)
		return f.Fix
	}
	_, err := argoManifests(env, &platform.Release{}, settings{})
	refused(t, err, CodeManifests, "no bootstrap component in namespace argocd")
	require.Equal(t, fixRelease, fix(err))
	component := platform.Component{Name: "argocd", Kind: platform.Bootstrap, Namespace: "argocd", Bundle: "argocd", Path: "overlay"}
	_, err = argoManifests(env, &platform.Release{Components: []platform.Component{component}}, settings{})
	refused(t, err, CodeManifests, "read Argo CD's manifests: the bundle: ")
	require.Equal(t, fixBundle, fix(err))
	manifests := filepath.Join(env.BundleDir, "manifests", "argocd")
	require.NoError(t, os.MkdirAll(manifests, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(manifests, "a.yaml"), []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"), 0o600))
	_, err = argoManifests(env, &platform.Release{Components: []platform.Component{component}}, settings{})
	refused(t, err, CodeManifests, "read Argo CD's manifests: the platform release: ")
	require.Equal(t, fixRelease, fix(err))
}

func TestAPushThatTheGitServerRefuses(t *testing.T) {
	user, _, objects := gitServer(t, nil)
	in := contract.GiteaPushInput{Gitea: contract.GitServer{URL: user.URL, Address: user.Address}}
	_, err := runPush(t.Context(), newEnv(t, objects), in)
	refused(t, err, CodePush, "push to the git server over HTTPS: GET /api/v1/repos/slipway/probe answered 500")
}

func TestAnApplicationThatArgoCDDoesNotReconcile(t *testing.T) {
	_, err := runReconcile(t.Context(), newEnv(t, nil), contract.ReconcileInput{})
	refused(t, err, CodeReconcile, "let Argo CD reconcile an Application outside its namespace: ", "you may not")
}

func TestWhatTakesTooLongIsATimeout(t *testing.T) {
	late := fmt.Errorf("waited 2s for the git server: %w", context.DeadlineExceeded)
	for code, err := range map[fault.Code]error{
		CodeGitServer: badServer("make a repository", late), CodePush: badPush(late),
		CodeReconcile: badReconcile(&fault.Fault{Code: kube.CodeWait, Class: fault.Timeout, Err: late}),
	} {
		require.ErrorIs(t, err, &fault.Fault{Code: code})
		require.Equal(t, fault.Timeout, fault.ClassOf(err), code)
	}
}
