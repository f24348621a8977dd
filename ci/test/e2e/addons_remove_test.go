//go:build linux

package e2e

import (
	"bufio"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// addonsThere has the platform of addons on an existing cluster, and takes it out
// again: rows C1 to C11, and E5; where there is no time for all of them, those that change the
// most.
func (k *kept) addonsThere(t *testing.T, base string) {
	d := k.deployment
	d.Name = "e2e-addons-host"
	a := openAddons(t, d, base)
	a.kubeconfig = k.kubeconfig
	a.gateway = func(t *testing.T) string {
		return a.jsonpath(t, "{.status.loadBalancer.ingress[0].ip}", "service", "-n", "traefik", "traefik")
	}
	a.forget(t)
	before := k.everything(t)
	definitions := a.names(t, "customresourcedefinitions")

	stage := func(name string, do func(t *testing.T)) { require.True(t, t.Run(name, do)) }
	a.follow(t, stage, func(*testing.T) {})
	brought := slices.DeleteFunc(a.names(t, "customresourcedefinitions"), func(name string) bool { return slices.Contains(definitions, name) })
	require.Greater(t, len(brought), 20)
	require.NotEmpty(t, a.kubectl(t, "get", "pvc", "-n", "dex", "-o", "name"))

	// Custom resources of a user, in a namespace of others. Where there is time for its deadline,
	// there are some that are held: by somebody, and by the operator, which is gone by then.
	const issuer = "{apiVersion: cert-manager.io/v1, kind: Issuer, metadata: {name: theirs, namespace: foreign, finalizers: [%s]}, spec: {selfSigned: {}}}"
	if all() {
		a.apply(t, fmt.Sprintf(issuer, "example.com/nobody"))
		a.apply(t, "{apiVersion: external-secrets.io/v1, kind: ExternalSecret, metadata: {name: theirs, namespace: foreign}, spec: {secretStoreRef: {kind: ClusterSecretStore, name: none}, dataFrom: [{extract: {key: a}}]}}")
	} else {
		a.apply(t, fmt.Sprintf(issuer, ""))
	}
	stage("C9 and C10: the given order, with deadlines; what is stuck is reported, and stripped at its deadline", func(t *testing.T) {
		if all() {
			a.hold(t, "dex")
		}
		watched := a.watchApplications(t)
		r := a.must(t, "destroy", "--yes")
		gone, at := watched()
		a.requireOrderly(t, gone)
		if all() {
			require.Greater(t, at[a.app("dex")].Sub(at[a.app("portal")]), 110*time.Second, "not before its deadline")
			require.Contains(t, r.err, "removing the finalizers of Application argocd/"+a.app("dex")+": ")
			require.Contains(t, r.err, "example.com/nobody")
		}
		require.Regexp(t, `infrastructure/platform-inventory\s+succeeded`, r.out)
		a.requirePhases(t, "--yes", "User Approval", "Remove Addons", "CRD Cleanup")
		require.Empty(t, a.kubectl(t, "get", "namespace", "dex", "portal", "argocd", "external-secrets", "--ignore-not-found", "-o", "name"), "with their claims")
		require.Subset(t, a.names(t, "customresourcedefinitions"), brought, "definitions stay")
		require.Regexp(t, regexp.MustCompile(`kept CustomResourceDefinition applications\.argoproj\.io`), r.err)
		require.NotEmpty(t, a.jsonpath(t, "{.metadata.name}", "issuers.cert-manager.io", "-n", "foreign", "theirs"))
	})
	stage("C11: the definitions go on request, with what is left of their objects", func(t *testing.T) {
		plan := a.must(t, "plan", "destroy", "--crds")
		require.Contains(t, plan.out, "\nPhases: User Approval, Remove Addons, CRD Cleanup\n")
		require.Contains(t, plan.out, "Issuer foreign/theirs")
		require.Contains(t, plan.out, "CustomResourceDefinition issuers.cert-manager.io")
		require.Subset(t, a.names(t, "customresourcedefinitions"), brought, "a plan changes nothing")
		r := a.must(t, "destroy", "--yes", "--crds")
		if all() {
			require.Contains(t, r.err, "removing the finalizers of Issuer foreign/theirs: example.com/nobody")
		}
		require.Equal(t, definitions, a.names(t, "customresourcedefinitions"))
		k.requireAgain(t, before)
		a.must(t, "destroy", "--yes", "--crds")
	})
}

// requireOrderly: the sets went first, and then the addons in the order of the release.
func (a addons) requireOrderly(t *testing.T, gone []string) {
	t.Helper()
	order := []string{a.app("workflows"), a.app("portal"), a.app("dex"), a.app("cert-manager"), a.app("routes"), a.app("traefik"), "external-secrets", "argocd"}
	for _, name := range order {
		require.Contains(t, gone, name, "%v", gone)
	}
	require.True(t, slices.IsSortedFunc(order, func(x, y string) int { return slices.Index(gone, x) - slices.Index(gone, y) }), "%v went so, and not %v", gone, order)
	for _, set := range []string{"workflows", "portal", "dex", "traefik"} {
		require.Contains(t, gone, "set "+set)
		require.Less(t, slices.Index(gone, "set "+set), slices.Index(gone, order[0]), "the sets first: %v", gone)
	}
}

// watchApplications notes in which order Applications and, as "set NAME", ApplicationSets go, and
// when. The function that it returns ends that.
func (a addons) watchApplications(t *testing.T) func() ([]string, map[string]time.Time) {
	t.Helper()
	var mu sync.Mutex
	var there, gone []string
	at := map[string]time.Time{}
	var stop []func()
	for kind, prefix := range map[string]string{"applications": "", "applicationsets": "set "} {
		cmd := a.kubectlCommand(t.Context(), "get", kind, "-n", "argocd", "--watch", "--output-watch-events", "-o", `jsonpath={.type} {.object.metadata.name}{"\n"}`)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		read := make(chan struct{})
		go func() {
			defer close(read)
			for lines := bufio.NewScanner(out); lines.Scan(); {
				event, name, _ := strings.Cut(lines.Text(), " ")
				mu.Lock()
				switch name = prefix + name; event {
				case "ADDED":
					there = append(there, name)
				case "DELETED":
					gone, at[name] = append(gone, name), time.Now()
				}
				mu.Unlock()
			}
		}()
		stop = append(stop, func() {
			_ = cmd.Process.Kill()
			<-read
			_ = cmd.Wait()
		})
	}
	seen := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.Contains(there, "argocd") && slices.Contains(there, "set workflows")
	}
	require.Eventually(t, seen, time.Minute, 100*time.Millisecond)
	return func() ([]string, map[string]time.Time) {
		time.Sleep(time.Second) // for what is on its way
		for _, end := range stop {
			end()
		}
		return gone, at
	}
}
