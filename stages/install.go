package stages

import (
	"maps"
	"slices"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/stages/contract"
)

// checkImage is the image of the pods that use storage and load balancer.
const checkImage = "busybox"

// Install brings the platform up, or makes sure that it is.
func Install() Workflow { return bringing(config.Install) }

// Upgrade brings a platform that is installed to another release.
func Upgrade() Workflow { return bringing(config.Upgrade) }

// bringing is a workflow that brings a release about.
func bringing(name string) Workflow {
	return Workflow{
		Name: name, Named: []string{contract.StagePreOrchestrator, contract.StageOrchestrator},
		Wire: func(g *Graph) error { return wirePlatform(g, name) },
	}
}

func wirePlatform(g *Graph, workflow string) error {
	if g.Config.Git.URL != "" {
		g.Release = g.Release.ForRepository()
	}
	if err := g.Release.Fits(g.Config); err != nil {
		return err
	}
	disabled, err := g.Release.Off(g.Config.Choices())
	if err != nil {
		return err
	}
	w := &platformWiring{Graph: g, disabled: disabled, workflow: workflow, steps: map[string]pipeline.Dep{}, handed: map[string]pipeline.Dep{}}
	infrastructure := wireInfrastructure(g, disabled, w.objects)
	w.infrastructure = infrastructure
	if err := w.wire(); err != nil {
		return err
	}
	Collect(g, infrastructure.terraform, func(out contract.Infrastructure, f *Findings) {
		f.State.Infrastructure = &out
	})
	return nil
}

// infrastructure are the steps after which there is a cluster that can be used.
type infrastructure struct {
	terraform *pipeline.Step[contract.Infrastructure]
	found     func() contract.Infrastructure // once terraform has succeeded
	free      []pipeline.Dep                 // a cluster in which the platform can be made
	ready     []pipeline.Dep                 // a cluster in which pods run
	checked   []pipeline.Dep                 // storage and load balancer work
}

// wireInfrastructure wires a cluster that answers, with storage and load balancer. A cluster that Slipway
// runs starts before Terraform. objects says, after Terraform, what the platform is made of.
func wireInfrastructure(g *Graph, disabled []string, objects func() contract.OwnershipInput) infrastructure {
	cfg, images := g.Config, g.Images
	preflight := Add(g, contract.PreflightStep(), func() contract.PreflightInput {
		in := contract.PreflightInput{Requirements: g.Environment.Requirements}
		if t := cfg.TLS; t.Mode == config.UserCertificate {
			in.TLS = &contract.UserTLS{Certificate: t.Certificate, CA: t.CA, Hosts: g.Release.Hosts(cfg.Global.Domain, cfg.Global.Name, disabled)}
		}
		return in
	})
	up := []pipeline.Dep{preflight}
	if g.Environment.OwnsNodes() {
		up = append(up, g.Action(contract.NodeKey(), preflight))
	}
	// Checks in one container which earlier results still hold; the steps below reuse those.
	verified := g.Action(contract.CheckEarlierSpec().Key, up...)
	existing := g.Environment.Existed()
	terraform := wireTerraform(g, verified)
	cluster := Add(g, contract.ClusterStep(), func() contract.ClusterInput {
		return contract.ClusterInput{APIEndpoint: terraform.Value().APIEndpoint, Existing: existing}
	}, terraform)
	unowned := Add(g, contract.OwnershipStep(), objects, cluster)
	out := infrastructure{terraform: terraform, found: terraform.Value, free: []pipeline.Dep{unowned}, ready: []pipeline.Dep{unowned}}
	if g.Environment.Addons != nil {
		out.ready = append(out.ready, Add(g, contract.AddonsStep(), func() contract.AddonsInput {
			return contract.AddonsInput{Addons: *g.Environment.Addons, Images: images}
		}, cluster))
	}
	storage := Add(g, contract.StorageStep(), func() contract.StorageInput {
		return contract.StorageInput{StorageClass: terraform.Value().StorageClass, Image: images[checkImage], Existing: existing}
	}, out.ready...)
	balancer := Add(g, contract.LoadBalancerStep(), func() contract.LoadBalancerInput {
		return contract.LoadBalancerInput{Image: images[checkImage], Unused: existing && !balanced(g.Release, disabled)}
	}, out.ready...)
	out.checked = []pipeline.Dep{storage, balancer}
	if existing { // what it lacks, nobody here can add: it is told before anything is made
		out.free = out.checked
	}
	return out
}

// balanced reports whether a link, a check or the git server is reached through a load balancer.
func balanced(r *platform.Release, disabled []string) bool {
	on := func(component string) bool { return !slices.Contains(disabled, component) }
	server := r.GitServer()
	return server != nil && on(server.Component) ||
		slices.ContainsFunc(r.Links, func(l platform.Link) bool { return l.Service != "" && on(l.Component) }) ||
		slices.ContainsFunc(r.Checks, func(c platform.Check) bool { return on(c.Component) })
}

// wireTerraform: of an existing cluster, what is found in it goes through
// Terraform as what others make does.
func wireTerraform(g *Graph, ready pipeline.Dep) *pipeline.Step[contract.Infrastructure] {
	access := g.Environment.External
	if access == nil {
		return Add(g, contract.TerraformStep(), func() contract.TerraformInput { return g.Environment.Terraform }, ready)
	}
	found := Add(g, contract.ClusterPreflightStep(), func() contract.ClusterPreflightInput {
		in := contract.ClusterPreflightInput{
			Kubernetes: g.Tools["kubectl"], StorageClass: access.StorageClass, Admin: g.Release.Engine() != nil, TakeOwnership: g.TakeOwnership,
			Exec: len(g.Release.Data) > 0,
		}
		for _, c := range g.Release.Components {
			in.Label = in.Label || c.Node != nil
			in.Proxy = in.Proxy || slices.ContainsFunc(c.Ready, func(a platform.Await) bool { return a.HTTP != nil })
		}
		return in
	}, ready)
	return Add(g, contract.TerraformStep(), func() contract.TerraformInput {
		in := g.Environment.Terraform
		in.Vars = maps.Clone(in.Vars)
		in.Vars["api_endpoint"], in.Vars["storage_class"] = found.Value().APIEndpoint, found.Value().StorageClass
		return in
	}, found)
}
