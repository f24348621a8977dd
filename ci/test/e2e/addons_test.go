//go:build linux

package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// addonsDomain is the parent domain of the addons platform: one that leads to the gateway inside
// of the cluster, where an ACME server has to find it.
const addonsDomain = "traefik.traefik.svc.cluster.local"

// gitToken is what the private repository of the tree asks for.
const gitToken = "e2e-tree-token"

// addons is a deployment of the addons platform.
type addons struct {
	*kept
	release string
	git     string // the section of the configuration
	base    string // the provider's
}

// settings are those of a user; what is left out is as in the platform's own example.
type settings struct {
	host, unmanaged, automatic bool
	acme, ca                   string
	on, off                    []string // components
}

// with is the deployment with other settings.
func (a addons) with(t *testing.T, s settings) addons {
	t.Helper()
	text := configured + a.base + a.git + fmt.Sprintf("global: {domain: %s}\nplatform:\n  settings: {pathRouting: %v, managedCluster: %v, automaticCertificates: %v, acme: {server: %q, ca: %q}}\n  components:\n    {",
		addonsDomain, !s.host, !s.unmanaged, s.automatic, s.acme, s.ca)
	for _, name := range s.on {
		text += name + ": {enabled: true}, "
	}
	for _, name := range s.off {
		text += name + ": {enabled: false}, "
	}
	a.kept = a.kept.with(write(t, text+"}\n"))
	return a
}

// install installs, and answers for who would be asked.
func (a addons) install(t *testing.T, args ...string) result {
	t.Helper()
	return a.must(t, "install", append([]string{"--yes", "--platform", a.release}, args...)...)
}

// jsonpath is what kubectl gets of an object, or of all of a kind.
func (a addons) jsonpath(t *testing.T, path string, object ...string) string {
	t.Helper()
	return a.kubectl(t, append([]string{"get", "--ignore-not-found", "-o", "jsonpath=" + path}, object...)...)
}

// names are those of a kind, sorted.
func (a addons) names(t *testing.T, kind string) []string {
	t.Helper()
	out := strings.Fields(a.jsonpath(t, "{.items[*].metadata.name}", kind, "-A"))
	slices.Sort(out)
	return out
}

// becomes waits until something is so.
func (a addons) becomes(t *testing.T, within time.Duration, what string, is func() (bool, string)) {
	t.Helper()
	seen := ""
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(time.Second) {
		var ok bool
		if ok, seen = is(); ok {
			return
		}
	}
	t.Fatalf("%s: not within %s; seen last: %s", what, within, seen)
}

// app is the sync status and the health of an Application.
func (a addons) app(t *testing.T, name string) string {
	t.Helper()
	return a.jsonpath(t, "{.status.sync.status} {.status.health.status}", "application", "-n", "argocd", name)
}

// requireSynced waits for an Application that Argo CD may still compare, and fails with what of
// it differs.
func (a addons) requireSynced(t *testing.T, name string) {
	t.Helper()
	a.becomes(t, time.Minute, name+" to be synced", func() (bool, string) {
		is := a.app(t, name)
		return is == "Synced Healthy", is + a.jsonpath(t,
			`{range .status.resources[?(@.status!="Synced")]}{"\n"}{.kind} {.namespace}/{.name} {.status}{end}{"\n"}{.status.operationState.message}`, "application", "-n", "argocd", name)
	})
}

// serveTree serves the tree of a release in a private repository, over HTTPS, to whoever has
// the token. It returns the section of the configuration that reads it.
func serveTree(t *testing.T, release string) string {
	t.Helper()
	work := filepath.Join(t.TempDir(), "tree")
	require.NoError(t, os.CopyFS(filepath.Join(work, "gitops"), os.DirFS(filepath.Join(release, "gitops"))))
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"add", "-A"},
		{"-c", "user.name=e2e", "-c", "user.email=e2e@example.com", "commit", "-q", "-m", "the tree"},
	} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = work
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	path, err := exec.CommandContext(t.Context(), "git", "--exec-path").Output()
	require.NoError(t, err)
	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(path)), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + filepath.Dir(work), "GIT_HTTP_EXPORT_ALL=1"},
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, token, _ := r.BasicAuth(); token != gitToken {
			w.Header().Set("WWW-Authenticate", "Basic")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	require.NoError(t, server.Listener.Close())
	listener, err := net.Listen("tcp", net.JoinHostPort(bridgeAddress(t), "0"))
	require.NoError(t, err)
	made := issue(t, net.ParseIP(bridgeAddress(t)))
	ca, err := os.ReadFile(made.authority)
	require.NoError(t, err)
	server.Listener, server.TLS = listener, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{made.certificate(t)}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return fmt.Sprintf("git:\n  url: https://%s/tree/.git\n  revision: main\n  path: gitops\n  username: argocd\n  password: file:%s\n  ca: %q\n", listener.Addr(), write(t, gitToken), ca)
}

// TestAddonsPlatform follows the platform of addons on a local cluster: rows C1 to C8, C10 and
// E5. Each stage builds on the one before.
func TestAddonsPlatform(t *testing.T) {
	takesLong(t)
	inTurn(t)
	d := open(t, "e2e-addons")
	require.Contains(t, bundled(t, d.Bundle), "portal", "the bundle is for another platform: make bundle PLATFORM=examples/platform/addons/1.0.0")
	release := filepath.Join(root(t), "examples/platform/addons/1.0.0")
	a := addons{
		kept: &kept{deployment: d}, release: release, git: serveTree(t, release),
		base: "local: {apiPort: 7543, ports: [80, 443]}\n",
	}.with(t, settings{})
	finish(t, d.CLI(t.Context(), "cluster", "--stop")) // whatever an earlier run of the tests left
	a.must(t, "destroy", "--ignore-not-found")
	t.Cleanup(func() { _ = finish(t, d.CLI(context.Background(), "cluster", "--stop")) })

	stage := func(name string, do func(t *testing.T)) { require.True(t, t.Run(name, do)) }
	stage("C2: what is missing is named, and nothing is made", func(t *testing.T) {
		short := a.kept.with(write(t, configured+a.base+a.git+"platform: {settings: {pathRouting: true, acme: {server: '', ca: ''}}}\n"))
		r := short.cli(t, "install", "--yes", "--platform", release)
		require.Equal(t, 2, r.code, slipway.Tail(r.err))
		require.Contains(t, r.err, "PLT-009")
		require.Contains(t, r.err, "managedCluster")
		require.Contains(t, r.err, "automaticCertificates")
	})
	stage("C1: without consent nothing is made", func(t *testing.T) { a.requireConsent(t) })

	a.must(t, "install", "--yes", "--keep-cluster", "--to", "preorchestrator/secrets", "--platform", release)
	a.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	a.must(t, "kubeconfig", "--server", "https://127.0.0.1:7543", "--output", a.kubeconfig)

	// No Job is made in Dex's namespace until this goes.
	const held = "{apiVersion: v1, kind: ResourceQuota, metadata: {name: e2e-no-jobs, namespace: dex}, spec: {hard: {count/jobs.batch: 0}}}"
	a.apply(t, held)
	first := a.begin(t, "install", "--yes", "--platform", release)
	stage("C3: Argo CD, then External Secrets, within 300 s each", func(t *testing.T) {
		first.sees(t, "orchestrator/argocd: succeeded")
		first.sees(t, "orchestrator/external-secrets: succeeded")
		for _, deployment := range []string{"argocd/argocd-server", "external-secrets/external-secrets"} {
			namespace, name, _ := strings.Cut(deployment, "/")
			require.Equal(t, "True", a.jsonpath(t, "{.status.conditions[?(@.type=='Available')].status}", "deployment", "-n", namespace, name))
			created, err := time.Parse(time.RFC3339, a.jsonpath(t, "{.metadata.creationTimestamp}", "deployment", "-n", namespace, name))
			require.NoError(t, err)
			available, err := time.Parse(time.RFC3339, a.jsonpath(t, "{.status.conditions[?(@.type=='Available')].lastTransitionTime}", "deployment", "-n", namespace, name))
			require.NoError(t, err)
			require.Less(t, available.Sub(created), 300*time.Second, deployment)
			require.Equal(t, "1", a.jsonpath(t, `{.metadata.annotations.deployment\.kubernetes\.io/revision}`, "deployment", "-n", namespace, name), "the adoption has changed nothing")
			a.requireSynced(t, namespace)
		}
		require.Less(t, a.jsonpath(t, "{.metadata.creationTimestamp}", "deployment", "-n", "argocd", "argocd-server"),
			a.jsonpath(t, "{.metadata.creationTimestamp}", "deployment", "-n", "external-secrets", "external-secrets"))
		require.Empty(t, a.kubectl(t, "get", "secrets", "-A", "-l", "owner=helm,name in (argocd,external-secrets)", "-o", "name"))
	})
	stage("C4: the store makes the cluster's Secret, with all labels and annotations", func(t *testing.T) {
		first.sees(t, "orchestrator/store: succeeded")
		a.requireCluster(t)
	})
	stage("C8: the portal is not healthy before the Job of Dex", func(t *testing.T) {
		a.becomes(t, 5*time.Minute, "Dex to run", func() (bool, string) {
			seen := a.jsonpath(t, "{.status.availableReplicas}", "deployment", "-n", "dex", "dex")
			return seen == "1", seen
		})
		a.becomes(t, time.Minute, "the portal's Application", func() (bool, string) {
			seen := a.app(t, "portal-e2e-addons")
			return seen != "", seen
		})
		time.Sleep(20 * time.Second)
		require.NotContains(t, a.app(t, "portal-e2e-addons"), " Healthy")
		require.Empty(t, a.jsonpath(t, "{.status.availableReplicas}", "deployment", "-n", "portal", "portal"))
		require.Empty(t, a.names(t, "jobs"))
		a.kubectl(t, "delete", "resourcequota", "-n", "dex", "e2e-no-jobs")
		require.Zero(t, first.wait(t), slipway.Tail(first.printed()))
		a.requireSynced(t, "portal-e2e-addons")
		require.Equal(t, "1", a.jsonpath(t, "{.items[*].status.succeeded}", "jobs", "-n", "dex"))
	})
	stage("the report has the phases of the flow, with what they came to", func(t *testing.T) {
		a.requirePhases(t, "--yes", "User Approval", "Setup Configuration", "Cluster Bootstrap", "Addons Deployment", "Addon Configuration", "Monitoring and Verification")
	})
	stage("a user signs in at the portal", func(t *testing.T) { a.requireSignIn(t, addonsDomain, addonsDomain+"/dex") })
	stage("the timeline shows what ran side by side", func(t *testing.T) { a.requireParallel(t) })
	stage("a second install changes nothing", func(t *testing.T) {
		require.Contains(t, a.install(t).out, "nothing changed")
	})
	stage("C5: an addon is switched off and on", func(t *testing.T) {
		require.Contains(t, a.names(t, "applicationsets"), "workflows")
		a.with(t, settings{off: []string{"workflows"}}).install(t)
		require.NotContains(t, a.names(t, "applicationsets"), "workflows")
		require.NotContains(t, a.names(t, "applications"), "workflows-e2e-addons")
		require.Empty(t, a.jsonpath(t, "{.metadata.name}", "deployment", "-n", "argo", "workflow-controller"))
		a.install(t)
		a.requireSynced(t, "workflows-e2e-addons")
	})
	stage("C6: the routing is another ApplicationSet's", func(t *testing.T) {
		require.Equal(t, "routes-by-path", a.owner(t, "routes-e2e-addons"))
		b := a.browser(t)
		require.Contains(t, b.page(t, "https://"+addonsDomain+"/argocd/api/version"), `"Version"`)
		hosts := a.with(t, settings{host: true})
		hosts.install(t)
		require.Equal(t, "routes-by-host", a.owner(t, "routes-e2e-addons"))
		require.Contains(t, b.page(t, "https://argocd."+addonsDomain+"/api/version"), `"Version"`)
		hosts.requireSignIn(t, "portal."+addonsDomain, "dex."+addonsDomain)
		a.install(t)
		require.Equal(t, "routes-by-path", a.owner(t, "routes-e2e-addons"))
		require.Contains(t, b.page(t, "https://"+addonsDomain+"/argocd/api/version"), `"Version"`)
	})
	stage("C7: a managed cluster has no load-balancer controller", func(t *testing.T) {
		require.NotContains(t, a.names(t, "applications"), "load-balancer-e2e-addons")
		a.with(t, settings{unmanaged: true}).install(t)
		a.requireSynced(t, "load-balancer-e2e-addons")
		require.Equal(t, "addons.slipway.sh/node", a.jsonpath(t, "{.spec.loadBalancerClass}", "service", "-n", "traefik", "traefik"))
		require.Equal(t, a.jsonpath(t, "{.items[0].status.addresses[?(@.type=='InternalIP')].address}", "nodes"),
			a.jsonpath(t, "{.status.loadBalancer.ingress[0].ip}", "service", "-n", "traefik", "traefik"), "of the controller")
		a.install(t)
		require.NotContains(t, a.names(t, "applications"), "load-balancer-e2e-addons")
	})
	stage("a change of the domain in the store reaches the addons without a run", func(t *testing.T) {
		const other = "changed.test"
		a.kubectl(t, "patch", "secret", "-n", "store", "config", "--patch", `{"stringData": {"domain": "`+other+`"}}`)
		a.becomes(t, 3*time.Minute, "the portal to know the domain", func() (bool, string) {
			seen := a.jsonpath(t, "{.spec.template.spec.containers[0].env[?(@.name=='PUBLIC_URL')].value}", "deployment", "-n", "portal", "portal")
			return seen == "https://"+other, seen
		})
		a.install(t) // which brings the store back
		require.Equal(t, addonsDomain, a.jsonpath(t, "{.metadata.annotations.domain}", "secret", "-n", "argocd", "cluster"))
	})
	stage("E5: the gateway has the certificate of an ACME server, or the given one", func(t *testing.T) { a.requireAutomatic(t) })
	stage("destroy leaves nothing", func(t *testing.T) {
		require.Contains(t, a.must(t, "destroy", "--yes").err, "nothing is left")
		a.requirePhases(t, "--yes", "User Approval", "Remove Addons") // the cluster goes as a whole
	})
}

// requirePhases: the report of the last run has these phases, in this order, each with its result
// and how long it took; all of them went well, and somebody agreed in that way.
func (a addons) requirePhases(t *testing.T, how string, names ...string) {
	t.Helper()
	dir := a.report(t)
	var record struct {
		Approval struct{ How, By string }
		Phases   []struct {
			Name, Status string
			Approval     bool
			Started      time.Time
			Finished     time.Time
			Seconds      float64
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "report.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &record))
	require.Equal(t, how, record.Approval.How)
	require.NotEmpty(t, record.Approval.By)
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	require.NoError(t, err)
	summary, err := os.ReadFile(filepath.Join(dir, "summary.txt"))
	require.NoError(t, err)
	var got []string
	for _, p := range record.Phases {
		if p.Status == "" {
			continue // of other runs
		}
		got = append(got, p.Name)
		require.Contains(t, []string{"succeeded", "reused"}, p.Status, p.Name)
		require.False(t, p.Started.IsZero() || p.Finished.Before(p.Started), p.Name)
		if !p.Approval {
			require.Positive(t, p.Seconds, p.Name)
		}
		require.Contains(t, string(page), `<tr><th scope="row">`+p.Name+`</th>`)
		require.Regexp(t, `(?m)^`+p.Name+`\s{2,}(succeeded|reused|`+how+`: )`, string(summary))
	}
	require.Equal(t, names, got)
}

// owner is the ApplicationSet that has made an Application.
func (a addons) owner(t *testing.T, app string) string {
	t.Helper()
	return a.jsonpath(t, "{.metadata.ownerReferences[0].name}", "application", "-n", "argocd", app)
}

// requireConsent: whoever says no has nothing, and who cannot be asked is told.
func (a addons) requireConsent(t *testing.T) {
	t.Helper()
	r := a.cli(t, "install", "--platform", a.release)
	require.Equal(t, 2, r.code, slipway.Tail(r.err))
	require.Contains(t, r.err, "PLT-031")
	require.Contains(t, r.err, "provider    local")
	p := onTerminal(t, a.command(t.Context(), "install", "--platform", a.release))
	p.until(t, regexp.QuoteMeta("domain      "+addonsDomain))
	p.until(t, "components  argocd-definitions argocd ")
	p.until(t, regexp.QuoteMeta("Install it? [y/N] "))
	p.press(t, "no\r")
	code, text := p.wait(t, time.Minute)
	require.Zero(t, code, text)
	require.Contains(t, text, "Nothing was changed.")
	require.Equal(t, 2, a.cli(t, "status").code, "nothing was ever installed")
}

// requireCluster: the Secret that Argo CD's generators read is the operator's, made of the
// store, and has everything that is in that.
func (a addons) requireCluster(t *testing.T) {
	t.Helper()
	var secret struct {
		Metadata struct {
			Labels, Annotations map[string]string
			OwnerReferences     []struct{ Kind, Name string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(a.kubectl(t, "get", "secret", "-n", "argocd", "cluster", "-o", "json")), &secret))
	require.Len(t, secret.Metadata.OwnerReferences, 1)
	require.Equal(t, "ExternalSecret", secret.Metadata.OwnerReferences[0].Kind)
	for key, want := range map[string]string{
		"argocd.argoproj.io/secret-type": "cluster", "cluster_name": "e2e-addons", "environment": "control-plane",
		"path_routing": "true", "managed_cluster": "true", "auto_cert": "false",
	} {
		require.Equal(t, want, secret.Metadata.Labels[key], key)
	}
	var store struct{ Data map[string]string }
	require.NoError(t, json.Unmarshal([]byte(a.kubectl(t, "get", "secret", "-n", "store", "config", "-o", "json")), &store))
	for key, value := range store.Data {
		text, err := base64.StdEncoding.DecodeString(value)
		require.NoError(t, err)
		if _, ok := secret.Metadata.Labels[key]; ok {
			require.Equal(t, string(text), secret.Metadata.Labels[key], key)
			continue
		}
		require.Contains(t, secret.Metadata.Annotations, key)
		require.Equal(t, string(text), secret.Metadata.Annotations[key], key)
	}
	require.Equal(t, addonsDomain, secret.Metadata.Annotations["domain"])
}

// requireParallel: addons that do not need each other were brought about at the same time.
func (a addons) requireParallel(t *testing.T) {
	t.Helper()
	var begun, ended []time.Time
	for _, s := range a.record(t).Steps {
		if s.Stage == "orchestrator" && slices.Contains([]string{"cert-manager", "dex", "portal", "traefik", "workflows"}, s.Step) {
			begun, ended = append(begun, s.Started), append(ended, s.Finished)
		}
	}
	require.Len(t, begun, 5)
	last := slices.MaxFunc(begun, time.Time.Compare)
	first := slices.MinFunc(ended, time.Time.Compare)
	require.True(t, last.Before(first), "each began before any had ended")
}

// addonsBrowser knows no user yet. It trusts what it is told to, and finds the platform's hosts
// on the ports that the cluster publishes.
type addonsBrowser struct {
	*http.Client
	seen *x509.Certificate // what the gateway showed last
}

func (a addons) browser(t *testing.T, also ...[]byte) *addonsBrowser {
	t.Helper()
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM([]byte(a.jsonpath(t, `{.data.ca\.crt}`, "configmap", "-n", "traefik", "slipway-ca"))))
	for _, text := range also {
		require.True(t, pool.AppendCertsFromPEM(text))
	}
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	b := &addonsBrowser{}
	b.Client = &http.Client{Jar: jar, Timeout: time.Minute, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{RootCAs: pool, VerifyConnection: func(s tls.ConnectionState) error {
			b.seen = s.PeerCertificates[0]
			return nil
		}},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			_, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
		},
	}}
	return b
}

// page is what an address shows, once it does: routes come a moment after their addons.
func (b *addonsBrowser) page(t *testing.T, address string) string {
	t.Helper()
	var last string
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(time.Second) {
		r, err := b.Get(address)
		if err != nil {
			last = err.Error()
			continue
		}
		last = body(t, r)
		if r.StatusCode == http.StatusOK {
			return last
		}
	}
	t.Fatalf("%s: %s", address, last)
	return ""
}

// requireSignIn signs a user in at the portal, which is at a host, through Dex, which is at an
// address.
func (a addons) requireSignIn(t *testing.T, portal, dex string, also ...[]byte) {
	t.Helper()
	b := a.browser(t, also...)
	require.Contains(t, b.page(t, "https://"+portal+"/"), `href="/login"`)
	r, err := b.Get("https://" + portal + "/login")
	require.NoError(t, err)
	form := body(t, r)
	require.True(t, strings.HasPrefix(r.Request.URL.String(), "https://"+dex+"/"), r.Request.URL)
	action := regexp.MustCompile(`<form method="post" action="([^"]*)"`).FindStringSubmatch(form)
	require.NotNil(t, action, form)
	to, err := r.Request.URL.Parse(strings.ReplaceAll(action[1], "&amp;", "&"))
	require.NoError(t, err)
	password, err := base64.StdEncoding.DecodeString(a.jsonpath(t, "{.data.user1}", "secret", "-n", "dex", "users"))
	require.NoError(t, err)
	r, err = b.PostForm(to.String(), url.Values{"login": {"user1@" + addonsDomain}, "password": {string(password)}})
	require.NoError(t, err)
	page := body(t, r)
	require.Contains(t, page, "Signed in as <strong>user1</strong> (user1@"+addonsDomain+")")
	require.Contains(t, page, ">argocd</a>")
}

// requireAutomatic has an ACME server issue the gateway's certificate, sees it renewed, and
// goes back to the given one.
func (a addons) requireAutomatic(t *testing.T) {
	t.Helper()
	given := a.browser(t)
	given.page(t, "https://"+addonsDomain+"/")
	require.Equal(t, "tls-imported", a.jsonpath(t, "{.spec.defaultCertificate.secretName}", "tlsstore", "-n", "traefik", "default"))
	imported := given.seen.SerialNumber

	// The component acme is Pebble, whose certificates are valid for two minutes.
	asked := settings{on: []string{"acme"}}
	a.with(t, asked).install(t)
	// The portal speaks to Dex through the gateway: it must trust what that shows.
	root := a.kubectl(t, "get", "--raw", "/api/v1/namespaces/acme/services/https:pebble:15000/proxy/roots/0")
	block, _ := pem.Decode([]byte(root))
	require.NotNil(t, block, root)
	a.kubectl(t, "create", "configmap", "-n", "portal", "more-ca", "--from-literal=pebble.crt="+root)
	a.kubectl(t, "rollout", "restart", "-n", "portal", "deployment/portal")
	asked.automatic, asked.acme = true, "https://pebble.acme.svc:14000/dir"
	asked.ca = base64.StdEncoding.EncodeToString([]byte(a.jsonpath(t, `{.data.ca\.crt}`, "configmap", "-n", "acme", "slipway-ca")))
	automatic := a.with(t, asked)
	automatic.install(t)
	require.Equal(t, "tls-autocert", a.jsonpath(t, "{.spec.defaultCertificate.secretName}", "tlsstore", "-n", "traefik", "default"))
	b := a.browser(t, []byte(root))
	b.page(t, "https://"+addonsDomain+"/")
	issued := b.seen
	require.NotEqual(t, imported, issued.SerialNumber)
	require.Contains(t, issued.Issuer.CommonName, "Pebble")
	require.Equal(t, []string{addonsDomain}, issued.DNSNames)
	a.requireSignIn(t, addonsDomain, addonsDomain+"/dex", []byte(root))
	a.becomes(t, 4*time.Minute, "a renewed certificate", func() (bool, string) {
		b.page(t, "https://"+addonsDomain+"/")
		return b.seen.SerialNumber.Cmp(issued.SerialNumber) != 0 && b.seen.NotAfter.After(issued.NotAfter), b.seen.NotAfter.String()
	})

	a.install(t)
	require.Equal(t, "tls-imported", a.jsonpath(t, "{.spec.defaultCertificate.secretName}", "tlsstore", "-n", "traefik", "default"))
	a.becomes(t, time.Minute, "the given certificate", func() (bool, string) {
		given.page(t, "https://"+addonsDomain+"/")
		return given.seen.SerialNumber.Cmp(imported) == 0, given.seen.Issuer.String()
	})
}
