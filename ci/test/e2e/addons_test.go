//go:build linux

package e2e

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// addonsDomain is the parent domain of the addons platform: one that leads to the gateway inside
// of the cluster, where an ACME server has to find it.
const addonsDomain = "traefik.traefik.svc.cluster.local"

// addons is a deployment of the addons platform.
type addons struct {
	*kept
	release string
	git     string                    // the section of the configuration
	base    string                    // the provider's
	early   []string                  // what an install gets besides, that ends before the platform
	gateway func(t *testing.T) string // address at which this machine reaches it
}

// settings are those of a user; what is left out is as in the platform's own example.
type settings struct {
	host, automatic bool
	nodes           string // addresses of the nodes of a cluster that is not managed
	acme, ca, trust string
	on, off         []string // components
}

// with is the deployment with other settings.
func (a addons) with(t *testing.T, s settings) addons {
	t.Helper()
	text := configured + a.base + a.git + fmt.Sprintf("global: {domain: %s}\nplatform:\n  settings: {pathRouting: %v, managedCluster: %v, nodeAddresses: %q, automaticCertificates: %v, acme: {server: %q, ca: %q}}\n  components:\n    {",
		addonsDomain, !s.host, s.nodes == "", s.nodes, s.automatic, s.acme, s.ca)
	if s.trust != "" {
		text = fmt.Sprintf("%stls: {ca: %q}\n", configured, s.trust) + strings.TrimPrefix(text, configured)
	}
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

// app is the name of an addon's Application.
func (a addons) app(addon string) string { return addon + "-" + a.Name }

// is is the sync status and the health of an Application.
func (a addons) is(t *testing.T, name string) string {
	t.Helper()
	return a.jsonpath(t, "{.status.sync.status} {.status.health.status}", "application", "-n", "argocd", name)
}

// requireSynced waits for an Application that Argo CD may still compare, and fails with what of
// it differs.
func (a addons) requireSynced(t *testing.T, name string) {
	t.Helper()
	a.becomes(t, time.Minute, name+" to be synced", func() (bool, string) {
		is := a.is(t, name)
		return is == "Synced Healthy", is + a.jsonpath(t,
			`{range .status.resources[?(@.status!="Synced")]}{"\n"}{.kind} {.namespace}/{.name} {.status}{end}{"\n"}{.status.operationState.message}`, "application", "-n", "argocd", name)
	})
}

// serveTree serves the tree of a release in a private repository, over HTTPS. It returns the
// section of the configuration that reads it.
func serveTree(t *testing.T, release string) string {
	t.Helper()
	work, token, of := t.TempDir(), rand.Text(), issue(t, net.ParseIP(bridgeAddress(t)))
	require.NoError(t, os.CopyFS(filepath.Join(work, "gitops"), os.DirFS(filepath.Join(release, "gitops"))))
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"add", "-A"}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "the tree"},
	} {
		r := finish(t, exec.CommandContext(t.Context(), "git", append([]string{"-C", work}, args...)...))
		require.Zero(t, r.code, r.err)
	}
	return fmt.Sprintf("git: {url: %q, revision: main, path: gitops, username: argocd, password: %q, ca: %q}\n",
		gitServer(t, work, "0", &of, token), "file:"+write(t, token), read(t, filepath.Dir(of.authority), filepath.Base(of.authority)))
}

// TestAddonsPlatform follows the platform of addons on a local cluster: rows C1 to C8, E5, and what
// of C9 to C11 there is where the cluster goes with it. TestExistingCluster has it on one that
// stays.
func TestAddonsPlatform(t *testing.T) {
	takesLong(t)
	inTurn(t)
	d := open(t, "e2e-addons")
	a := openAddons(t, d, "local: {apiPort: 7543, ports: [80, 443]}\n")
	a.early = []string{"--keep-cluster"}
	a.gateway = func(*testing.T) string { return "127.0.0.1" }
	finish(t, d.CLI(t.Context(), "cluster", "--stop")) // whatever an earlier run of the tests left
	a.must(t, "destroy", "--yes", "--ignore-not-found")
	t.Cleanup(func() { _ = finish(t, d.CLI(context.Background(), "cluster", "--stop")) })

	stage := func(name string, do func(t *testing.T)) { require.True(t, t.Run(name, do)) }
	a.follow(t, stage, func(t *testing.T) {
		a.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
		a.must(t, "kubeconfig", "--out", a.kubeconfig)
	})
	stage("C9 to C11: destroy leaves nothing though something is stuck", func(t *testing.T) {
		a.hold(t, "dex")
		a.apply(t, "{apiVersion: cert-manager.io/v1, kind: Issuer, metadata: {name: stuck, namespace: default, finalizers: [example.com/nobody]}, spec: {selfSigned: {}}}")
		require.Contains(t, a.must(t, "destroy", "--yes", "--crds").err, "nothing is left")
		a.requirePhases(t, "--yes", "User Approval", "Remove Addons") // the cluster goes as a whole
	})
}

// openAddons is a deployment whose tree is served to it.
func openAddons(t *testing.T, d deployment, base string) addons {
	t.Helper()
	require.Contains(t, bundled(t, d.Bundle), "portal", "the bundle is for another platform: make bundle PLATFORM=examples/platform/addons/1.0.0")
	release := filepath.Join(root(t), "examples/platform/addons/1.0.0")
	return addons{kept: &kept{deployment: d}, release: release, git: serveTree(t, release), base: base}.with(t, settings{})
}

// hold gives an addon's Application a finalizer that nobody removes. Argo CD takes it for the
// ApplicationSet's, whose finalizers it gives its Applications again and again.
func (a addons) hold(t *testing.T, addon string) {
	t.Helper()
	a.kubectl(t, "patch", "applicationset", "-n", "argocd", addon, "--type=json", "--patch", `[{"op": "add", "path": "/spec/template/metadata/finalizers/-", "value": "example.com/nobody"}]`)
	a.becomes(t, time.Minute, addon+" to be held", func() (bool, string) {
		seen := a.jsonpath(t, "{.metadata.finalizers}", "application", "-n", "argocd", a.app(addon))
		return strings.Contains(seen, "example.com/nobody"), seen
	})
}
