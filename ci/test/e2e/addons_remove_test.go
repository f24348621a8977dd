//go:build linux

package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAddonsPlatformThere installs the platform of addons on a cluster that is there already,
// and takes it out again: rows C9 to C11.
func TestAddonsPlatformThere(t *testing.T) {
	takesLong(t)
	inTurn(t)
	r := startRegistry(t)
	host, kubeconfig := another(t, r)
	d := open(t, "e2e-addons-there")
	require.Contains(t, bundled(t, d.Bundle), "portal", "the bundle is for another platform: make bundle PLATFORM=examples/platform/addons/1.0.0")
	lock := filepath.Join(t.TempDir(), "slipway.lock.json")
	out, err := exec.CommandContext(t.Context(), filepath.Join(d.Bundle, "bin/slipway"), "bundle", "push", d.Bundle, "--to", r.loopback+"/team/slipway", "--lock-out", lock).CombinedOutput()
	require.NoError(t, err, string(out))
	d.Lock = lock
	release := filepath.Join(root(t), "examples/platform/addons/1.0.0")
	own := strings.TrimSpace(host.kubectl(t, "config", "current-context"))
	a := addons{
		kept: &kept{deployment: d, kubeconfig: host.kubeconfig}, release: release, git: serveTree(t, release),
		base: fmt.Sprintf("provider: existing\nexisting: {kubeconfig: \"file:%s\", context: %q, registry: %q}\n", kubeconfig, own, r.bridge+"/team/slipway"),
	}.with(t, settings{})
	a.forget(t)
	a.must(t, "destroy", "--crds", "--ignore-not-found")
	before := host.everything(t)
	definitions := a.names(t, "customresourcedefinitions")

	stage := func(name string, do func(t *testing.T)) { require.True(t, t.Run(name, do)) }
	stage("C1: without consent nothing is made", func(t *testing.T) {
		a.requireConsent(t)
		require.Equal(t, before, host.everything(t))
	})
	stage("install", func(t *testing.T) { a.install(t) })
	brought := slices.DeleteFunc(a.names(t, "customresourcedefinitions"), func(name string) bool { return slices.Contains(definitions, name) })
	require.Greater(t, len(brought), 20)
	claims := a.kubectl(t, "get", "pvc", "-n", "dex", "-o", "name")
	require.NotEmpty(t, claims)

	// Custom resources of a user, in a namespace of others: one that somebody holds.
	a.apply(t, `
{apiVersion: external-secrets.io/v1, kind: ExternalSecret, metadata: {name: theirs, namespace: foreign}, spec: {secretStoreRef: {kind: ClusterSecretStore, name: none}, dataFrom: [{extract: {key: a}}]}}
---
{apiVersion: cert-manager.io/v1, kind: Issuer, metadata: {name: theirs, namespace: foreign, finalizers: [example.com/nobody]}, spec: {selfSigned: {}}}
`)
	stage("C9 and C10: the given order, with deadlines; what is stuck is reported, and stripped at its deadline", func(t *testing.T) {
		a.kubectl(t, "patch", "application", "-n", "argocd", "dex-e2e-addons-there", "--type=json", "--patch", `[{"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/nobody"}]`)
		watched := a.watchApplications(t)
		r := a.must(t, "destroy", "--yes")
		gone, at := watched()
		order := []string{"workflows", "portal", "dex", "cert-manager", "routes", "traefik", "external-secrets", "argocd"}
		for i := range order {
			name := order[i] + "-e2e-addons-there"
			if order[i] == "external-secrets" || order[i] == "argocd" {
				name = order[i]
			}
			require.Contains(t, gone, name, "%v", gone)
			order[i] = name
		}
		require.True(t, slices.IsSortedFunc(order, func(x, y string) int { return slices.Index(gone, x) - slices.Index(gone, y) }), "%v went so, and not %v", gone, order)
		require.Less(t, slices.Index(gone, "set workflows"), slices.Index(gone, "workflows-e2e-addons-there"), "the sets first: %v", gone)
		for _, set := range []string{"portal", "dex", "traefik"} {
			require.Less(t, slices.Index(gone, "set "+set), slices.Index(gone, "workflows-e2e-addons-there"), "%v", gone)
		}
		waited := at["dex-e2e-addons-there"].Sub(at["portal-e2e-addons-there"])
		require.Greater(t, waited, 110*time.Second, "not before its deadline")
		require.Contains(t, r.err, "removing the finalizers of Application argocd/dex-e2e-addons-there: ")
		require.Contains(t, r.err, "example.com/nobody")
		require.Regexp(t, `infrastructure/platform-inventory\s+succeeded`, r.out)
		a.requirePhases(t, "--yes", "User Approval", "Remove Addons", "CRD Cleanup")
		require.Empty(t, a.kubectl(t, "get", "namespace", "dex", "portal", "argocd", "external-secrets", "--ignore-not-found", "-o", "name"), "with their claims")
		require.Subset(t, a.names(t, "customresourcedefinitions"), brought, "definitions stay")
		require.Regexp(t, regexp.MustCompile(`kept CustomResourceDefinition applications\.argoproj\.io`), r.err)
		require.NotEmpty(t, a.jsonpath(t, "{.metadata.name}", "issuers.cert-manager.io", "-n", "foreign", "theirs"))
	})
	stage("C11: the definitions go on request, with what is left of their objects", func(t *testing.T) {
		plan := a.must(t, "plan", "--workflow", "destroy", "--crds")
		require.Contains(t, plan.out, "\nPhases: User Approval, Remove Addons, CRD Cleanup\n")
		require.Contains(t, plan.out, "Issuer foreign/theirs")
		require.Contains(t, plan.out, "CustomResourceDefinition issuers.cert-manager.io")
		require.Subset(t, a.names(t, "customresourcedefinitions"), brought, "a plan changes nothing")
		r := a.must(t, "destroy", "--crds")
		require.Contains(t, r.err, "removing the finalizers of Issuer foreign/theirs: example.com/nobody")
		require.Equal(t, definitions, a.names(t, "customresourcedefinitions"))
		host.requireAgain(t, before)
		a.must(t, "destroy", "--crds")
	})
}

// watchApplications notes in which order Applications and, as "set NAME", ApplicationSets go, and
// when. The function that it returns ends that.
func (a addons) watchApplications(t *testing.T) func() ([]string, map[string]time.Time) {
	t.Helper()
	at := map[string]time.Time{}
	var gone []string
	stop, stopped := make(chan struct{}), make(chan struct{})
	look := func() map[string]bool {
		out := map[string]bool{}
		text := finish(t, a.kubectlCommand(t.Context(), "get", "applications,applicationsets", "-n", "argocd", "--ignore-not-found", "-o", `jsonpath={range .items[*]}{.kind} {.metadata.name}{"\n"}{end}`)).out
		for line := range strings.Lines(text) {
			kind, name, _ := strings.Cut(strings.TrimSpace(line), " ")
			if kind == "ApplicationSet" {
				name = "set " + name
			}
			out[name] = true
		}
		return out
	}
	there := look()
	require.NotEmpty(t, there)
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(300 * time.Millisecond):
			}
			now := look()
			var left []string
			for name := range there {
				if !now[name] {
					left = append(left, name)
				}
			}
			slices.Sort(left)
			for _, name := range left {
				delete(there, name)
				gone, at[name] = append(gone, name), time.Now()
			}
		}
	}()
	return func() ([]string, map[string]time.Time) {
		close(stop)
		<-stopped
		return gone, at
	}
}
