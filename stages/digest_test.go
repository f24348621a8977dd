package stages_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/conductor"
	"github.com/slipway-sh/slipway/stages/contract"
)

// TestAChangeInvalidatesTheStepsThatUseIt: a change of one field of the configuration
// changes the digests of the steps that use it, and of no other.
func TestAChangeInvalidatesTheStepsThatUseIt(t *testing.T) {
	const (
		preflight, storage, balancer = "infrastructure/preflight", "infrastructure/storage", "infrastructure/loadbalancer"
		addons                       = "infrastructure/local-addons"
		secrets, tls                 = "preorchestrator/secrets", "preorchestrator/tls"
		gitea, argocd, push          = "preorchestrator/gitea", "preorchestrator/argocd", "preorchestrator/gitea-push"
		publish, sync, access        = "orchestrator/publish", "orchestrator/sync", "postorchestrator/access"
	)
	off := false
	for what, c := range map[string]struct {
		change func(*config.Config, *contract.Plan)
		steps  []string
	}{
		"nothing":    {func(*config.Config, *contract.Plan) {}, nil},
		"admin mail": {func(c *config.Config, _ *contract.Plan) { c.Global.Admin.Email = "ops@example.org" }, []string{secrets}},
		"domain":     {func(c *config.Config, _ *contract.Plan) { c.Global.Domain = "example.org" }, []string{publish, access, gitea, push, secrets, tls}},
		"scale":      {func(c *config.Config, _ *contract.Plan) { c.Global.Scale = 1000 }, []string{preflight, publish, gitea}},
		"proxy":      {func(c *config.Config, _ *contract.Plan) { c.Proxy.HTTP = "http://proxy:3128" }, []string{argocd}},
		"a component that is off": {func(c *config.Config, _ *contract.Plan) {
			c.Platform.Components = map[string]config.Component{"web": {Enabled: &off}}
		}, []string{publish, sync, access, tls}},
		"values of the git server": {func(c *config.Config, _ *contract.Plan) {
			c.Platform.Components = map[string]config.Component{"gitea": {Values: []byte(`{"a":1}`)}}
		}, []string{gitea}},
		"certificate":   {func(c *config.Config, _ *contract.Plan) { c.TLS.Mode, c.TLS.Certificate = config.UserCertificate, "x" }, []string{preflight, tls}},
		"mail server":   {func(c *config.Config, _ *contract.Plan) { c.SMTP.Host = "mail" }, []string{publish}},
		"metrics":       {func(c *config.Config, _ *contract.Plan) { c.Observability.Endpoint = "https://metrics" }, []string{publish}},
		"app's time":    {func(c *config.Config, _ *contract.Plan) { c.Advanced.Timeouts.App *= 2 }, []string{sync}},
		"step's time":   {func(c *config.Config, _ *contract.Plan) { c.Advanced.Timeouts.Step *= 2 }, nil},
		"hooks":         {func(c *config.Config, _ *contract.Plan) { c.Hooks = []config.Hook{{Name: "x"}} }, nil},
		"given secrets": {func(_ *config.Config, p *contract.Plan) { p.UserSecrets = []string{"smtp"} }, []string{secrets}},
		"tools":         {func(_ *config.Config, p *contract.Plan) { p.Tools = map[string]string{"helm": "4"} }, []string{preflight}},
		"image references": {func(_ *config.Config, p *contract.Plan) { p.Refs = map[string]string{"busybox": "y"} },
			[]string{addons, balancer, storage, publish, argocd, gitea}},
	} {
		base, other := digests(t, nil), digests(t, c.change)
		require.Equal(t, slices.Sorted(maps.Keys(base)), slices.Sorted(maps.Keys(other)), what)
		var changed []string
		for id := range base {
			if base[id] != other[id] {
				changed = append(changed, id)
			}
		}
		require.ElementsMatch(t, c.steps, changed, what)
	}
}

// digests are those of the steps of an install, by step.
func digests(t *testing.T, change func(*config.Config, *contract.Plan)) map[string]journal.Digests {
	t.Helper()
	cfg, plan := config.Default(), contract.Plan{Run: "r2", Refs: map[string]string{"busybox": "x"}, Images: "sha256:1", Release: "sha256:2"}
	if change != nil {
		change(cfg, &plan)
	}
	release := &platform.Release{Version: "1.0.0", Components: []platform.Component{
		{Name: "gitea", Kind: platform.Bootstrap, Enabled: true}, {Name: "web", Kind: platform.App, Enabled: true},
	}}
	e := &earlier{}
	plan.Site = localSite(t, cfg)
	_, err := conductor.Verify(t.Context(), stages.Install(), plan, cfg, release, e.run, nil)
	require.NoError(t, err)
	out := map[string]journal.Digests{}
	for id, req := range e.asked {
		out[id] = req.Digests
	}
	return out
}
