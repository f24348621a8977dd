//go:build linux

package e2e

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// follow is the platform's life up to its removal, in stages of which each builds on the one
// before: rows C1 to C8, and E5. ready is called when there is a cluster.
func (a addons) follow(t *testing.T, stage func(name string, do func(*testing.T)), ready func(*testing.T)) {
	t.Helper()
	stage("C2: what is missing is named, and nothing is made", long(a.requireMissing))
	stage("C1: without consent nothing is made", long(a.requireConsent))
	install := append([]string{"--yes", "--platform", a.release}, a.early...)
	a.must(t, "install", append(install, "--until", "preorchestrator/secrets")...)
	ready(t)
	stage("a token that is wrong is found before anything waits for the repository", long(a.requireToken))
	if all() {
		// No Job is made in Dex's namespace until this goes.
		a.apply(t, "{apiVersion: v1, kind: ResourceQuota, metadata: {name: e2e-no-jobs, namespace: dex}, spec: {hard: {count/jobs.batch: 0}}}")
		first := a.begin(t, "install", "--yes", "--platform", a.release)
		stage("C3: Argo CD, then External Secrets, within 300 s each", func(t *testing.T) { a.requireBootstrap(t, first) })
		stage("C4: the store makes the cluster's Secret, with all labels and annotations", func(t *testing.T) {
			first.sees(t, "orchestrator/store: succeeded")
			a.requireCluster(t)
		})
		stage("C8: the portal is not healthy before the Job of Dex", func(t *testing.T) { a.requireUnhealthy(t, first) })
	} else {
		stage("an install that is killed goes on", func(t *testing.T) {
			a.killed(t, time.Minute, "--yes", "--platform", a.release)
			a.install(t, patient)
			a.requireCluster(t)
		})
	}
	stage("the report has the phases of the flow, with what they came to", func(t *testing.T) {
		a.requirePhases(t, "--yes", "User Approval", "Setup Configuration", "Cluster Bootstrap", "Addons Deployment", "Addon Configuration", "Monitoring and Verification")
	})
	stage("a user signs in at the portal", func(t *testing.T) { a.requireSignIn(t, addonsDomain, addonsDomain+"/dex") })
	stage("the timeline shows what ran side by side", long(a.requireParallel))
	stage("a second install changes nothing", func(t *testing.T) { require.Contains(t, a.install(t).out, "nothing changed") })
	stage("C5: an addon is switched off and on", a.requireSwitch)
	stage("C6: the routing is another ApplicationSet's", long(a.requireRouting))
	stage("C7: a managed cluster has no load-balancer controller", long(a.requireManaged))
	stage("a change of the domain in the store reaches the addons without a run", a.requireDomain)
	stage("E5: the gateway has the certificate of an ACME server, or the given one", long(a.requireAutomatic))
}

// requireMissing: what a configuration lacks is named, and the user's own kubeconfig stays as
// it is.
func (a addons) requireMissing(t *testing.T) {
	t.Helper()
	short := a.kept.with(write(t, configured+a.base+a.git+"platform: {settings: {pathRouting: true, acme: {server: '', ca: ''}}}\n"))
	const theirs = "{apiVersion: v1, kind: Config, current-context: theirs}\n"
	own := write(t, theirs)
	cmd := short.command(t.Context(), "install", "--yes", "--platform", a.release)
	cmd.Env = append(cmd.Environ(), "KUBECONFIG="+own)
	r := finish(t, cmd)
	require.Equal(t, 2, r.code, slipway.Tail(r.err))
	require.Contains(t, r.err, "PLT-003")
	require.Contains(t, r.err, "managedCluster")
	require.Contains(t, r.err, "automaticCertificates")
	require.Equal(t, theirs, read(t, filepath.Dir(own), filepath.Base(own)))
}

// requireToken: the server of the repository refuses a token that is wrong, which is said at once.
func (a addons) requireToken(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(a.config)
	require.NoError(t, err)
	wrong := regexp.MustCompile(`password: "?file:[^",}\s]+"?`).ReplaceAllString(string(text), fmt.Sprintf("password: %q", "file:"+write(t, "nobody's")))
	require.NotEqual(t, string(text), wrong)
	r := a.kept.with(write(t, wrong)).cli(t, "install", append([]string{"--yes", "--platform", a.release, "--until", "preorchestrator/repository"}, a.early...)...)
	require.Equal(t, 4, r.code, slipway.Tail(r.err))
	require.Contains(t, r.err, "error PRE-014: ")
	require.Contains(t, r.err, "authentication required")
}

// requireBootstrap: a first install has Argo CD and the operator take each other over, without
// a change.
func (a addons) requireBootstrap(t *testing.T, first *begun) {
	t.Helper()
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
}

// requireUnhealthy: the portal of a first install, in which no Job can be made, waits for that of
// Dex; it is healthy when there is one.
func (a addons) requireUnhealthy(t *testing.T, first *begun) {
	t.Helper()
	a.becomes(t, 5*time.Minute, "Dex to run", func() (bool, string) {
		seen := a.jsonpath(t, "{.status.availableReplicas}", "deployment", "-n", "dex", "dex")
		return seen == "1", seen
	})
	a.becomes(t, time.Minute, "the portal's Application", func() (bool, string) {
		seen := a.is(t, a.app("portal"))
		return seen != "", seen
	})
	time.Sleep(20 * time.Second)
	require.NotContains(t, a.is(t, a.app("portal")), " Healthy")
	require.Empty(t, a.jsonpath(t, "{.status.availableReplicas}", "deployment", "-n", "portal", "portal"))
	require.Empty(t, a.kubectl(t, "get", "jobs", "-n", "dex", "-o", "name"))
	a.kubectl(t, "delete", "resourcequota", "-n", "dex", "e2e-no-jobs")
	require.Zero(t, first.wait(t), slipway.Tail(first.printed()))
	a.requireSynced(t, a.app("portal"))
	require.Equal(t, "1", a.jsonpath(t, "{.items[*].status.succeeded}", "jobs", "-n", "dex"))
}

// requireSwitch: an addon that is switched off is gone, with its ApplicationSet.
func (a addons) requireSwitch(t *testing.T) {
	t.Helper()
	require.Contains(t, a.names(t, "applicationsets"), "workflows")
	a.with(t, settings{off: []string{"workflows"}}).install(t)
	require.NotContains(t, a.names(t, "applicationsets"), "workflows")
	require.NotContains(t, a.names(t, "applications"), a.app("workflows"))
	require.Empty(t, a.jsonpath(t, "{.metadata.name}", "deployment", "-n", "argo", "workflow-controller"))
	a.install(t)
	a.requireSynced(t, a.app("workflows"))
}

// requireRouting: apps are reached by the host, or by the path.
func (a addons) requireRouting(t *testing.T) {
	t.Helper()
	require.Equal(t, "routes-by-path", a.owner(t, a.app("routes")))
	b := a.browser(t)
	require.Contains(t, b.page(t, "https://"+addonsDomain+"/argocd/api/version"), `"Version"`)
	hosts := a.with(t, settings{host: true})
	hosts.install(t)
	require.Equal(t, "routes-by-host", a.owner(t, a.app("routes")))
	require.Contains(t, b.page(t, "https://argocd."+addonsDomain+"/api/version"), `"Version"`)
	hosts.requireSignIn(t, "portal."+addonsDomain, "dex."+addonsDomain)
	a.install(t)
	require.Equal(t, "routes-by-path", a.owner(t, a.app("routes")))
	require.Contains(t, b.page(t, "https://"+addonsDomain+"/argocd/api/version"), `"Version"`)
}

// requireManaged: the load-balancer controller is there where the cluster has none.
func (a addons) requireManaged(t *testing.T) {
	t.Helper()
	require.NotContains(t, a.names(t, "applications"), a.app("load-balancer"))
	// What the node says of itself is an address inside of its container.
	node := a.jsonpath(t, "{.status.loadBalancer.ingress[0].ip}", "service", "-n", "traefik", "traefik")
	uid := a.jsonpath(t, "{.metadata.uid}", "service", "-n", "traefik", "traefik")
	a.with(t, settings{nodes: node}).install(t)
	a.requireSynced(t, a.app("load-balancer"))
	require.Equal(t, "addons.slipway.sh/node", a.jsonpath(t, "{.spec.loadBalancerClass}", "service", "-n", "traefik", "traefik"))
	require.Equal(t, node, a.jsonpath(t, "{.status.loadBalancer.ingress[0].ip}", "service", "-n", "traefik", "traefik"))
	require.NotEqual(t, uid, a.jsonpath(t, "{.metadata.uid}", "service", "-n", "traefik", "traefik"), "another Service, whose address is of the controller")
	require.Contains(t, a.kubectl(t, "logs", "-n", "load-balancer", "deployment/load-balancer"), "gave addresses to")
	a.install(t)
	require.NotContains(t, a.names(t, "applications"), a.app("load-balancer"))
}

// requireDomain: what somebody changes in the store reaches the addons.
func (a addons) requireDomain(t *testing.T) {
	t.Helper()
	const other = "changed.test"
	a.kubectl(t, "patch", "secret", "-n", "store", "config", "--patch", `{"stringData": {"domain": "`+other+`"}}`)
	a.becomes(t, 3*time.Minute, "the portal to know the domain", func() (bool, string) {
		seen := a.jsonpath(t, "{.spec.template.spec.containers[0].env[?(@.name=='PUBLIC_URL')].value}", "deployment", "-n", "portal", "portal")
		return seen == "https://"+other, seen
	})
	a.install(t) // which brings the store back, and waits until the addons have followed
	require.Equal(t, addonsDomain, a.jsonpath(t, "{.metadata.annotations.domain}", "secret", "-n", "argocd", "cluster"))
	require.Equal(t, "https://"+addonsDomain, a.jsonpath(t, "{.spec.template.spec.containers[0].env[?(@.name=='PUBLIC_URL')].value}", "deployment", "-n", "portal", "portal"))
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
		if !p.Approval && p.Status == "succeeded" { // what is reused may take no time
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
	objects := func() map[string]string {
		if a.kubeconfig == "" { // there is no cluster
			return nil
		}
		return a.everything(t)
	}
	before := objects()
	r := a.cli(t, "install", "--platform", a.release)
	require.Equal(t, 2, r.code, slipway.Tail(r.err))
	require.Contains(t, r.err, "PLT-031")
	require.Regexp(t, `provider    (local|existing)\n`, r.err)
	p := onTerminal(t, a.command(t.Context(), "install", "--platform", a.release))
	p.until(t, regexp.QuoteMeta("domain      "+addonsDomain))
	p.until(t, "components  argocd-definitions argocd ")
	p.until(t, regexp.QuoteMeta("Install it? [y/N] "))
	p.press(t, "no\r")
	code, text := p.wait(t, time.Minute)
	require.Zero(t, code, text)
	require.Contains(t, text, "Nothing was changed.")
	require.Equal(t, 2, a.cli(t, "status").code, "nothing was ever installed")
	require.Equal(t, before, objects(), "nor is anything in a cluster that is there")
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
		"argocd.argoproj.io/secret-type": "cluster", "cluster_name": a.Name, "environment": "control-plane",
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

// requireAutomatic has an ACME server issue the gateway's certificate, sees it renewed, and
// goes back to the given one.
func (a addons) requireAutomatic(t *testing.T) {
	t.Helper()
	given := a.browser(t)
	given.page(t, "https://"+addonsDomain+"/")
	require.Equal(t, "tls-imported", a.jsonpath(t, "{.spec.defaultCertificate.secretName}", "tlsstore", "-n", "traefik", "default"))
	imported := given.seen.SerialNumber
	gateway := a.jsonpath(t, "{.metadata.uid}", "service", "-n", "traefik", "traefik")

	// The component acme is Pebble, whose certificates are valid for two minutes.
	asked := settings{on: []string{"acme"}}
	a.with(t, asked).install(t)
	// The portal speaks to Dex through the gateway, and so does Slipway at the end: both must
	// trust what that shows.
	root := a.kubectl(t, "get", "--raw", "/api/v1/namespaces/acme/services/https:pebble:15000/proxy/roots/0")
	block, _ := pem.Decode([]byte(root))
	require.NotNil(t, block, root)
	asked.trust, asked.automatic, asked.acme = root, true, "https://pebble.acme.svc:14000/dir"
	asked.ca = base64.StdEncoding.EncodeToString([]byte(a.jsonpath(t, `{.data.ca\.crt}`, "configmap", "-n", "acme", "slipway-ca")))
	automatic := a.with(t, asked)
	automatic.install(t)
	require.Equal(t, "tls-autocert", a.jsonpath(t, "{.spec.defaultCertificate.secretName}", "tlsstore", "-n", "traefik", "default"))
	require.Equal(t, gateway, a.jsonpath(t, "{.metadata.uid}", "service", "-n", "traefik", "traefik"), "its address stays where only the certificate is another one")
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
