package postorchestrator

import (
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
)

func release() *platform.Release {
	return &platform.Release{
		Components:   []platform.Component{{Name: "argocd", Kind: platform.Manifests, Namespace: "cd"}},
		GitOps:       &platform.GitOps{Engine: "argocd", Server: &platform.GitServer{Accounts: platform.Accounts{Administrator: "gitea/gitea-admin"}}},
		Certificates: []platform.Certificate{{Secret: "gitea/gitea-tls"}},
		Links: []platform.Link{
			{Name: "Gitea", URLTemplate: "https://gitea.{domain}", Service: "gitea/gitea:443", Component: "gitea"},
			{Name: "Off", URLTemplate: "http://off.{domain}", Service: "off/off:80", Component: "off"},
		},
		Checks: []platform.Check{
			{Name: "healthy", Service: "gitea/gitea:443", TLS: true, Path: "/api/healthz", Status: 200, Contains: "pass"},
			{Name: "inside", Service: "apps/web:80", Path: "/", Status: 200},
			{Name: "off", Service: "off/off:80", Component: "off"},
		},
	}
}

func accessInput() contract.AccessInput {
	return contract.AccessInput{Domain: "example.org", Disabled: []string{"off"}, Host: "127.0.0.1"}
}

func TestTargetsAreTheLinksAndChecksThatAreOn(t *testing.T) {
	got, err := targetsOf(release(), "demo", accessInput())
	require.NoError(t, err)
	require.Equal(t, []target{
		{name: "Gitea", url: "https://gitea.example.org", link: true, namespace: "gitea", service: "gitea", port: 443},
		{name: "healthy", url: "https://gitea.example.org/api/healthz", namespace: "gitea", service: "gitea", port: 443, status: 200, contains: "pass"},
		{name: "inside", url: "http://web.apps.svc/", namespace: "apps", service: "web", port: 80, status: 200},
	}, got)
}

func TestAllBadServicesAreReported(t *testing.T) {
	r := release()
	r.Links[0].Service = "gitea:443"
	r.Checks[1].Service = "apps/web:http"
	_, err := targetsOf(r, "demo", accessInput())
	require.ErrorContains(t, err, `link Gitea: service "gitea:443"`)
	require.ErrorContains(t, err, `check inside: service "apps/web:http"`)
}

func TestAskGoesThroughTheLoadBalancer(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Host != "example.com":
			w.WriteHeader(http.StatusMisdirectedRequest)
		case r.URL.Path == "/moved":
			http.Redirect(w, r, "/elsewhere", http.StatusSeeOther)
		case r.URL.Path == "/broken":
			w.WriteHeader(http.StatusBadGateway)
		default:
			_, _ = w.Write([]byte("the rows"))
		}
	}))
	defer srv.Close()
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	ask := func(path string, status int, contains string) error {
		tg := target{url: "https://example.com" + path, status: status, contains: contains, address: srv.Listener.Addr().String()}
		return tg.request(t.Context(), roots)
	}
	require.NoError(t, ask("/", 200, "rows"))
	require.NoError(t, ask("/moved", 0, ""))
	require.EqualError(t, ask("/moved", 200, ""), "answered 303, not 200")
	require.EqualError(t, ask("/broken", 0, ""), "answered 502")
	require.EqualError(t, ask("/", 200, "columns"), `the response does not contain "columns"`)

	untrusted := target{url: "https://example.com/", address: srv.Listener.Addr().String()}
	require.ErrorContains(t, untrusted.request(t.Context(), x509.NewCertPool()), "certificate")
}

func TestGuidanceHoldsNoPassword(t *testing.T) {
	targets, err := targetsOf(release(), "demo", accessInput())
	require.NoError(t, err)
	for i := range targets {
		targets[i].address = "192.0.2.7:443"
	}
	got := describe(targets, "demo", release(), accessInput())
	require.Equal(t, []contract.Link{{Name: "Gitea", URL: "https://gitea.example.org"}}, got.URLs)
	text := strings.Join(got.Commands, "\n")
	require.Contains(t, text, "kubectl get secret -n gitea gitea-admin -o jsonpath='{.data.password}' | base64 -d")
	require.Contains(t, text, "echo '192.0.2.7 gitea.example.org' >> /etc/hosts")
	require.Contains(t, text, "kubectl get applications -n cd")
	require.Contains(t, text, "kubectl get configmap -n slipway-system slipway-ca")
}

// TestALoadBalancerWithAName: there is no line for /etc/hosts with one.
func TestALoadBalancerWithAName(t *testing.T) {
	targets, err := targetsOf(release(), "demo", accessInput())
	require.NoError(t, err)
	for address, says := range map[string]string{
		"lb-1.elb.example.com:443": "# when example.org is not in your DNS, make gitea.example.org an alias (CNAME) of lb-1.elb.example.com there",
		"[2001:db8::7]:443":        "echo '2001:db8::7 gitea.example.org' >> /etc/hosts   # when example.org is not in your DNS",
		"":                         "",
	} {
		for i := range targets {
			targets[i].address = address
		}
		text := strings.Join(describe(targets, "demo", release(), accessInput()).Commands, "\n")
		require.Contains(t, text, says)
		if !strings.HasPrefix(says, "echo") {
			require.NotContains(t, text, "/etc/hosts", address)
		}
	}
}

// TestNoGuidanceForWhatAPlatformLacks: without apps there is no Argo CD and no git server,
// without certificates no CA.
func TestNoGuidanceForWhatAPlatformLacks(t *testing.T) {
	text := strings.Join(describe(nil, "demo", &platform.Release{}, accessInput()).Commands, "\n")
	require.Contains(t, text, "slipway kubeconfig --name demo")
	require.NotContains(t, text, "kubectl get")
}

// The address of a node that Slipway runs is nothing to people: the next start
// gives it another one.
func TestTheNodeIsReachedThroughItsPorts(t *testing.T) {
	targets, err := targetsOf(release(), "demo", accessInput())
	require.NoError(t, err)
	for i := range targets {
		targets[i].address = "10.87.0.9:443"
	}
	in := accessInput()
	in.LoadBalancer.Kind = "node"
	access := describe(targets, "demo", release(), in)
	text := strings.Join(access.Commands, "\n")
	require.Contains(t, text, "slipway cluster --name demo --keep-cluster ")
	require.Contains(t, text, "slipway kubeconfig --name demo --out kubeconfig && export")
	require.Contains(t, text, "echo '127.0.0.1 gitea.example.org' >> /etc/hosts")
	require.NotContains(t, text, "10.87.0.9")
}
