package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
)

func TestValidateLooksForTheServicesThatAreAsked(t *testing.T) {
	withoutImages(t)
	dir := filepath.Join(t.TempDir(), "shop")
	code, _, errs := slipway("platform", "init", dir)
	require.Zero(t, code, errs)
	code, _, errs = slipway("validate", "--platform", dir)
	require.Zero(t, code, errs)

	file := filepath.Join(dir, "platform.yaml")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "shop/web:80", "shop/weg:80")), 0o600))
	code, _, errs = slipway("validate", "--platform", dir)
	require.Equal(t, 2, code, errs)
	require.Contains(t, errs, "error PLT-016: find what the gates, links and checks of shop 0.1.0 ask: ")
	require.Contains(t, errs, "no component has the Service shop/weg")

	for gate, says := range map[string]string{
		"rollout: apps/v1/Deployment shop/weg": "error PLT-016",
		`endpoint: "shop/weg:80"`:              "error PLT-016",
	} {
		require.NoError(t, os.WriteFile(file, []byte(string(text)+"tests:\n  - name: is-up\n    ready:\n      - "+gate+"\n"), 0o600))
		code, _, errs = slipway("validate", "--platform", dir)
		require.Equal(t, 2, code, errs)
		require.Contains(t, errs, says)
		require.Regexp(t, `test is-up, gate .* \(\S+/platform.yaml, line \d+\): no component has the \w+ shop/weg`, errs)
	}
}

func TestUnmade(t *testing.T) {
	object := func(version, kind, namespace, name string) contract.Rendered {
		return contract.Rendered{Component: name, Objects: []map[string]any{{"apiVersion": version, "kind": kind, "metadata": map[string]any{"namespace": namespace, "name": name}}}}
	}
	of := func(kind string, r contract.Rendered) contract.Rendered {
		r.Kind = kind
		return r
	}
	there := []contract.Rendered{object("apps/v1", "Deployment", "shop", "web"), object("batch/v1", "Job", "shop", "seed")}
	const missing = "no component has the "
	for what, c := range map[string]struct {
		gate platform.Await
		more contract.Rendered
		off  []string
		says string
	}{
		"a workload":              {gate: platform.Await{Rollout: "apps/v1/Deployment shop/web"}},
		"of another kind":         {gate: platform.Await{Rollout: "apps/v1/StatefulSet shop/web"}, says: "gate rollout of apps/v1/StatefulSet shop/web (platform.yaml): " + missing + "StatefulSet shop/web"},
		"another workload":        {gate: platform.Await{Rollout: "apps/v1/Deployment shop/weg"}, says: missing + "Deployment shop/weg"},
		"of another namespace":    {gate: platform.Await{Rollout: "apps/v1/Deployment shop2/web"}, says: missing + "Deployment shop2/web"},
		"of a cluster's own":      {gate: platform.Await{Rollout: "apps/v1/Deployment kube-system/coredns"}},
		"of what is off":          {gate: platform.Await{Rollout: "apps/v1/Deployment shop/weg"}, off: []string{"seen"}},
		"a job":                   {gate: platform.Await{Job: "shop/seed"}},
		"another job":             {gate: platform.Await{Job: "shop/sed"}, says: "gate job shop/sed (platform.yaml): " + missing + "Job shop/sed"},
		"a condition":             {gate: platform.Await{Condition: &platform.ConditionGate{Object: "apps/v1/Deployment shop/weg"}}, says: missing + "Deployment shop/weg"},
		"of the same kind":        {gate: platform.Await{Condition: &platform.ConditionGate{Object: "apps/v1beta1/Deployment shop/web"}}},
		"of a custom object":      {gate: platform.Await{Condition: &platform.ConditionGate{Object: "gateway.networking.k8s.io/v1/Gateway shop/public"}}},
		"an expression":           {gate: platform.Await{CEL: &platform.CELGate{Object: "v1/Service shop/weg"}}, says: missing + "Service shop/weg"},
		"of what Kubernetes made": {gate: platform.Await{CEL: &platform.CELGate{Object: "v1/PersistentVolumeClaim shop/data-web-0"}}},
		"without a namespace":     {gate: platform.Await{CEL: &platform.CELGate{Object: "v1/Node one"}}},
		"an app":                  {gate: platform.Await{Synced: "web"}},
		"what cannot be rendered": {gate: platform.Await{Job: "shop/sed"}, more: contract.Rendered{Err: errors.New("not known")}},
		"what an operator makes":  {gate: platform.Await{Job: "shop/sed"}, more: object("example.com/v1", "Task", "shop", "sed")},
		"an Ingress":              {gate: platform.Await{CEL: &platform.CELGate{Object: "networking.k8s.io/v1/Ingress shop/weg"}}, says: "no component has the Ingress shop/weg"},
		"what a Job may make":     {gate: platform.Await{CEL: &platform.CELGate{Object: "v1/Secret shop/webhook"}}},
		"beside a project":        {gate: platform.Await{Job: "shop/sed"}, more: of("manifests", object("argoproj.io/v1alpha1", "AppProject", "argocd", "web")), says: missing + "Job shop/sed"},
		"beside an app":           {gate: platform.Await{Job: "shop/sed"}, more: of("gitops", object("argoproj.io/v1alpha1", "Application", "argocd", "web")), says: missing + "Job shop/sed"},
		"what an app brings":      {gate: platform.Await{Job: "shop/sed"}, more: of("manifests", object("argoproj.io/v1alpha1", "Application", "argocd", "web"))},
		"what apps may bring":     {gate: platform.Await{Job: "shop/sed"}, more: of("appset", object("argoproj.io/v1alpha1", "ApplicationSet", "argocd", "web"))},
		"what a definition is of": {gate: platform.Await{Job: "shop/sed"}, more: object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "tasks.example.com"), says: missing + "Job shop/sed"},
	} {
		t.Run(what, func(t *testing.T) {
			r := &platform.Release{
				Name: "shop", Version: "1", Namespaces: []platform.Namespace{{Name: "shop"}, {Name: "shop2"}},
				Components: []platform.Component{{Name: "seen", Ready: []platform.Await{c.gate}}},
			}
			err := checkTargets(r, c.off, objectsOf(r, append(there, c.more)))
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, &fault.Fault{Code: codeNoTarget})
			require.ErrorContains(t, err, "component seen, ")
			require.ErrorContains(t, err, c.says)
		})
	}
}

func TestUnreached(t *testing.T) {
	of := func(version, kind, name string, spec map[string]any) contract.Rendered {
		return contract.Rendered{Component: name, File: "charts/" + name, Objects: []map[string]any{{
			"apiVersion": version, "kind": kind, "metadata": map[string]any{"namespace": "shop", "name": name}, "spec": spec,
		}}}
	}
	ports := []any{map[string]any{"port": int64(80)}, map[string]any{"port": int64(443)}}
	inside := of("v1", "Service", "inside", map[string]any{"ports": ports})
	outside := of("v1", "Service", "outside", map[string]any{"type": "LoadBalancer", "ports": ports})
	release := func(service string) *platform.Release {
		return &platform.Release{Name: "shop", Version: "1", Links: []platform.Link{{Name: "Shop", Service: service, Component: "web"}, {Name: "Elsewhere"}}}
	}
	for what, c := range map[string]struct {
		release *platform.Release
		more    contract.Rendered
		off     []string
		says    string
	}{
		"a load balancer":         {release: release("shop/outside:443")},
		"no load balancer":        {release: release("shop/inside:80"), says: "link Shop (platform.yaml): the Service shop/inside (component inside, charts/inside) is of type ClusterIP, and is asked through a load balancer"},
		"another port":            {release: release("shop/outside:8080"), says: "has no port 8080, only 80, 443"},
		"none":                    {release: release("shop/none:80"), says: "no component has the Service shop/none"},
		"of what is off":          {release: release("shop/none:80"), off: []string{"web"}},
		"what cannot be rendered": {release: release("shop/none:80"), more: contract.Rendered{Err: errors.New("not known")}},
		"what an operator makes":  {release: release("shop/none:80"), more: of("postgresql.cnpg.io/v1", "Cluster", "db", nil)},
		"what a gateway makes":    {release: release("shop/none:80"), more: of("gateway.networking.k8s.io/v1", "Gateway", "public", nil)},
		"elsewhere":               {release: release("kube-system/none:80")},
		"for Kubernetes itself":   {release: release("shop/none:80"), more: of("networking.k8s.io/v1", "Ingress", "web", nil), says: "no component has"},
		"a check":                 {release: &platform.Release{Checks: []platform.Check{{Name: "open", Service: "shop/inside:80"}}}, says: "check open (platform.yaml): the Service shop/inside"},
		"a gate": {release: &platform.Release{Components: []platform.Component{{Name: "web", Ready: []platform.Await{
			{Endpoint: "shop/inside:81"}, {HTTP: &platform.HTTPGate{Service: "shop/inside:80"}},
		}}}}, says: "component web, gate endpoint of shop/inside:81 (platform.yaml): the Service shop/inside (component inside, charts/inside) has no port 81"},
	} {
		t.Run(what, func(t *testing.T) {
			c.release.Namespaces = []platform.Namespace{{Name: "shop"}}
			err := checkTargets(c.release, c.off, objectsOf(c.release, []contract.Rendered{inside, outside, c.more}))
			if c.says == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.says)
				require.NotContains(t, err.Error(), "\n")
			}
		})
	}
}
