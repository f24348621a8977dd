package stages_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
)

// asked are the requests that an install makes to its steps, whose outputs are empty but
// for Terraform's.
func asked(t *testing.T, r *platform.Release, cfg *config.Config, refs map[string]string) map[string]contract.Request {
	t.Helper()
	e := &earlier{}
	run := func(ctx context.Context, req contract.Request) contract.Result {
		out := e.run(ctx, req)
		if req.ID() == contract.TerraformStep().String() {
			out.Output = json.RawMessage(`{"storageClass": "fast"}`)
		}
		return out
	}
	plan := contract.PlanRequest{Run: "r1", Inputs: contract.Inputs{Config: cfg, Release: r, Environment: localEnvironment(t, cfg), Images: refs}}
	_, err := stages.Verify(t.Context(), stages.Install(), plan, run)
	require.NoError(t, err)
	return e.asked
}

func input[T any](t *testing.T, req contract.Request) T {
	t.Helper()
	var in T
	require.NoError(t, json.Unmarshal(req.Input, &in))
	return in
}

// TestWhatTextsOfAReleaseStandFor: a component gets what its own texts name, and no more:
// a change elsewhere is none of its own.
func TestWhatTextsOfAReleaseStandFor(t *testing.T) {
	r := load(t, `
configMaps: [{name: proxy, namespace: shop, data: {http: "{proxy.http}", none: "{proxy.none}"}}]
components:
  - name: web
    kind: chart
    path: chart
    namespace: shop
    images: [nginx]
    hosts: {"db.{domain}": shop/db}
    values: {image: "{images.nginx}", host: "web.{domain}", mail: "{adminEmail}", name: "{deployment}", scale: "{scale}", class: "{storageClass}", size: "{settings.size.max}", lacks: "{settings.none}", other: "{images.gone}"}
  - {name: plain, kind: manifests, path: a.yaml, namespace: shop}
`)
	cfg := config.Default()
	cfg.Global.Name, cfg.Global.Domain, cfg.Global.Admin.Email, cfg.Global.Scale = "blue", "example.org", "ada@example.org", 500
	refs := map[string]string{"nginx": "slipway.local/nginx@sha256:00", "redis": "slipway.local/redis@sha256:00", "docker.io/library/nginx:1": "slipway.local/nginx@sha256:00", "docker.io/library/redis:8": "slipway.local/redis@sha256:00"}
	cfg.Platform.Components = map[string]config.Component{"web": {Values: []byte(`{"more":1}`)}}
	inputs := asked(t, r, cfg, refs)
	require.Equal(t, contract.ComponentInput{
		Component: "web",
		Fill: map[string]any{
			"images.nginx": "slipway.local/nginx@sha256:00", "domain": "example.org", "adminEmail": "ada@example.org", "deployment": "blue",
			"scale": "500", "storageClass": "fast",
		},
		Images: map[string]string{"nginx": "slipway.local/nginx@sha256:00", "docker.io/library/nginx:1": "slipway.local/nginx@sha256:00"}, Hosts: map[string]string{"db.example.org": "shop/db"},
		Values: json.RawMessage(`{"more":1}`),
	}, input[contract.ComponentInput](t, inputs["orchestrator/web"]), "what nothing is known for is left out, and told by the step")
	require.Equal(t, contract.ComponentInput{Component: "plain"}, input[contract.ComponentInput](t, inputs["orchestrator/plain"]))
	require.Equal(t, "orchestrator/component", inputs["orchestrator/plain"].Code)
	require.Equal(t, map[string]any{"proxy.http": "", "proxy.none": ""}, input[contract.ConfigMapsInput](t, inputs["preorchestrator/configmaps"]).Fill, "without proxies nothing is left out of them")

	cfg.Proxy.HTTP, cfg.Proxy.NoProxy = "http://proxy:3128", ".example.net"
	fill := input[contract.ConfigMapsInput](t, asked(t, r, cfg, refs)["preorchestrator/configmaps"]).Fill
	require.Equal(t, map[string]any{
		"proxy.http": "http://proxy:3128",
		"proxy.none": "localhost,127.0.0.1,.svc,.cluster.local,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,example.org,.example.org,.example.net",
	}, fill)
}

// TestSettingsOfAReleaseKeepTheirTypes: a number stays one.
func TestSettingsOfAReleaseKeepTheirTypes(t *testing.T) {
	r := load(t, `
settings: settings.json
components:
  - {name: web, kind: chart, path: chart, namespace: shop, values: {size: "{settings.size.max}", "on": "{settings.on}", list: "{settings.list}", lacks: "{settings.size.min}", deep: "{settings.on.more}"}}
`)
	cfg := config.Default()
	cfg.Platform.Settings = json.RawMessage(`{"size": {"max": 7}, "on": true, "list": ["a"]}`)
	fill := input[contract.ComponentInput](t, asked(t, r, cfg, nil)["orchestrator/web"]).Fill
	require.Equal(t, map[string]any{"settings.size.max": 7.0, "settings.on": true, "settings.list": []any{"a"}}, fill)
}
