package stages_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
)

// TestAChangeInvalidatesTheStepsThatUseIt: a change of one field of the configuration
// changes the digests of the steps that use it, and of no other.
func TestAChangeInvalidatesTheStepsThatUseIt(t *testing.T) {
	const (
		preflight, storage, balancer = "infrastructure/preflight", "infrastructure/storage", "infrastructure/loadbalancer"
		addons, terraform            = "infrastructure/local-addons", "infrastructure/terraform"
		secrets, tls, configs        = "preorchestrator/secrets", "preorchestrator/tls", "preorchestrator/configmaps"
		gitea, argocd, git           = "preorchestrator/gitea", "preorchestrator/argocd", "preorchestrator/git"
		publish, sync, access        = "orchestrator/publish", "orchestrator/sync", "postorchestrator/access"
		ownership, prune             = "infrastructure/ownership", "orchestrator/prune"
	)
	off := false
	for what, c := range map[string]struct {
		change func(*config.Config, *contract.PlanRequest)
		steps  []string
	}{
		"nothing":    {func(*config.Config, *contract.PlanRequest) {}, nil},
		"admin mail": {func(c *config.Config, _ *contract.PlanRequest) { c.Global.Admin.Email = "ops@example.org" }, []string{secrets, access}},
		"domain":     {func(c *config.Config, _ *contract.PlanRequest) { c.Global.Domain = "example.org" }, []string{ownership, publish, access, gitea, argocd, git, secrets, tls}},
		"scale":      {func(c *config.Config, _ *contract.PlanRequest) { c.Global.Scale = 1000 }, []string{ownership, preflight, publish, gitea, access}},
		"proxy":      {func(c *config.Config, _ *contract.PlanRequest) { c.Proxy.HTTP = "http://proxy:3128" }, []string{configs}},
		"a component that is off": {func(c *config.Config, _ *contract.PlanRequest) {
			c.Platform.Components = map[string]config.Component{"guestbook": {Enabled: &off}}
		}, []string{ownership, publish, sync, access, tls}},
		"values of the git server": {func(c *config.Config, _ *contract.PlanRequest) {
			c.Platform.Components = map[string]config.Component{"gitea": {Values: []byte(`{"a":1}`)}}
		}, []string{ownership, gitea}},
		"values of an app": {func(c *config.Config, _ *contract.PlanRequest) {
			c.Platform.Components = map[string]config.Component{"guestbook": {Values: []byte(`{"a":1}`)}}
		}, []string{ownership, publish}},
		"certificate": {func(c *config.Config, _ *contract.PlanRequest) {
			c.TLS.Mode, c.TLS.Certificate = config.UserCertificate, "x"
		}, []string{preflight, tls}},
		"mail server":             {func(c *config.Config, _ *contract.PlanRequest) { c.SMTP.Host = "mail" }, []string{ownership, publish}},
		"metrics":                 {func(c *config.Config, _ *contract.PlanRequest) { c.Observability.Endpoint = "https://metrics" }, []string{ownership, publish}},
		"app's time":              {func(c *config.Config, _ *contract.PlanRequest) { c.Advanced.Timeouts.App *= 2 }, []string{sync}},
		"step's time":             {func(c *config.Config, _ *contract.PlanRequest) { c.Advanced.Timeouts.Step *= 2 }, nil},
		"hooks":                   {func(c *config.Config, _ *contract.PlanRequest) { c.Hooks = []config.Hook{{Name: "x"}} }, nil},
		"given secrets":           {func(_ *config.Config, p *contract.PlanRequest) { p.UserSecrets = []string{"smtp"} }, []string{secrets}},
		"the provider's root":     {func(_ *config.Config, p *contract.PlanRequest) { p.Environment.Terraform.Root = "y" }, []string{terraform}},
		"image of checks":         {func(_ *config.Config, p *contract.PlanRequest) { p.Images["busybox"] = "y" }, []string{addons, balancer, storage, publish}},
		"image of the git server": {func(_ *config.Config, p *contract.PlanRequest) { p.Images["gitea"] = "y" }, []string{addons, ownership, gitea}},
		"image of Argo CD":        {func(_ *config.Config, p *contract.PlanRequest) { p.Images["redis"] = "y" }, []string{addons, argocd}},
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
func digests(t *testing.T, change func(*config.Config, *contract.PlanRequest)) map[string]journal.Digests {
	t.Helper()
	cfg, plan := config.Default(), contract.PlanRequest{Run: "r2", Inputs: contract.Inputs{
		Release: reference(t), ReleaseDigest: "sha256:2",
		Images: map[string]string{"busybox": "x", "gitea": "x", "argocd": "x", "redis": "x"}, ImagesDigest: "sha256:1",
	}}
	plan.Config, plan.Environment = cfg, localEnvironment(t, cfg)
	if change != nil {
		change(cfg, &plan)
		environment := localEnvironment(t, cfg)
		environment.Terraform.Root = plan.Environment.Terraform.Root
		plan.Environment = environment
	}
	e := &earlier{}
	_, err := stages.Verify(t.Context(), stages.Install(), plan, e.run)
	require.NoError(t, err)
	out := map[string]journal.Digests{}
	for id, req := range e.asked {
		out[id] = req.Digests
	}
	return out
}
