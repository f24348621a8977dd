package lint

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
)

// targets is what is wrong with what a release asks, whose components but off are on.
func targets(r *platform.Release, off []string, parts []contract.Rendered) (out []string) {
	v := &linter{release: r}
	for _, name := range []string{"seen", "web"} {
		if !slices.Contains(off, name) {
			v.Components = append(v.Components, contract.ComponentInput{Component: name})
		}
	}
	v.targets(parts)
	for _, u := range v.unread {
		out = append(out, u.Component+" ("+u.Position()+"): "+u.Err.Error())
	}
	return out
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
		"of another kind":         {gate: platform.Await{Rollout: "apps/v1/StatefulSet shop/web"}, says: "gate rollout of apps/v1/StatefulSet shop/web: " + missing + "StatefulSet shop/web"},
		"another workload":        {gate: platform.Await{Rollout: "apps/v1/Deployment shop/weg"}, says: missing + "Deployment shop/weg"},
		"of another namespace":    {gate: platform.Await{Rollout: "apps/v1/Deployment shop2/web"}, says: missing + "Deployment shop2/web"},
		"of a cluster's own":      {gate: platform.Await{Rollout: "apps/v1/Deployment kube-system/coredns"}},
		"of what is off":          {gate: platform.Await{Rollout: "apps/v1/Deployment shop/weg"}, off: []string{"seen"}},
		"a job":                   {gate: platform.Await{Job: "shop/seed"}},
		"another job":             {gate: platform.Await{Job: "shop/sed"}, says: "gate job shop/sed: " + missing + "Job shop/sed"},
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
			got := targets(r, c.off, append(there, c.more))
			if c.says == "" {
				require.Empty(t, got)
				return
			}
			require.Len(t, got, 1)
			require.Contains(t, got[0], "seen (platform.yaml): gate ")
			require.Contains(t, got[0], c.says)
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
		}}}}, says: "web (platform.yaml): gate endpoint of shop/inside:81: the Service shop/inside (component inside, charts/inside) has no port 81"},
	} {
		t.Run(what, func(t *testing.T) {
			c.release.Namespaces = []platform.Namespace{{Name: "shop"}}
			got := targets(c.release, c.off, []contract.Rendered{inside, outside, c.more})
			if c.says == "" {
				require.Empty(t, got)
				return
			}
			require.Len(t, got, 1)
			require.Contains(t, got[0], c.says)
		})
	}
}
