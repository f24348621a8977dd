package conductor

import (
	"context"
	"errors"
	"time"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/stages/contract"
)

// gitServer is the component that is the git server.
const gitServer = "gitea"

// checkImage is the image of the pods that use storage and load balancer.
const checkImage = "busybox"

// installation is the graph of an install: the steps whose outputs are wanted at
// its end.
type installation struct {
	infrastructure *pipeline.Step[contract.Infrastructure]
	publication    *pipeline.Step[contract.Publication]
	apps           *pipeline.Step[contract.Apps]
	access         *pipeline.Step[contract.Access]
}

// install wires the steps of an install, in the order in which a person would
// tell them. Whatever does not need each other runs in parallel.
func (c *Conductor) install(p *pipeline.Pipeline) (*installation, error) {
	cfg := c.opts.Config
	root, err := c.terraformInput()
	if err != nil {
		return nil, err
	}
	domain, scale, images := cfg.Global.Domain, cfg.Profile().Name(), c.opts.Images.Refs
	disabled, err := c.opts.Release.Off(cfg.Choices())
	if err != nil {
		return nil, err
	}
	values := cfg.Overrides()
	if err := errors.Join(c.opts.Release.Overrides(values), c.opts.Release.CheckSettings(cfg.Platform.Settings)); err != nil {
		return nil, err
	}
	gitValues := values[gitServer]
	delete(values, gitServer)
	expected, err := c.opts.Release.Apps(disabled)
	if err != nil {
		return nil, err
	}
	apps := make([]string, len(expected))
	for i, a := range expected {
		apps[i] = a.Name
	}

	// Infrastructure: a cluster that answers, with storage and load balancer.
	preflight := add(c, p, contract.PreflightStep(),
		func() contract.PreflightInput {
			in := contract.PreflightInput{Tools: c.opts.Tools}
			if r, ok := c.opts.Provider.(providers.Requirer); ok {
				in.Requirements = r.Requirements(c.place)
			}
			return in
		})
	// A cluster that Slipway runs itself comes up while Terraform works; one that
	// Terraform makes is there to be looked at when it was made before.
	up := []pipeline.Dep{preflight}
	if c.cluster != nil {
		up = append(up, c.addNode(p, preflight))
	}
	verified := c.addVerify(p, up...)
	terraform := add(c, p, contract.TerraformStep(),
		func() contract.TerraformInput { return root }, verified)
	cluster := add(c, p, contract.ClusterStep(),
		func() contract.ClusterInput { return contract.ClusterInput{APIEndpoint: terraform.Value().APIEndpoint} }, terraform)
	ready := []pipeline.Dep{cluster}
	if provider, ok := c.opts.Provider.(providers.AddonsProvider); ok {
		addons, err := provider.Addons()
		if err != nil {
			return nil, err
		}
		ready = append(ready, add(c, p, contract.AddonsStep(),
			func() contract.AddonsInput { return contract.AddonsInput{Addons: addons, Images: images} }, cluster))
	}
	storage := add(c, p, contract.StorageStep(), func() contract.StorageInput {
		return contract.StorageInput{StorageClass: terraform.Value().StorageClass, Image: images[checkImage]}
	}, ready...)
	balancer := add(c, p, contract.LoadBalancerStep(),
		func() contract.LoadBalancerInput { return contract.LoadBalancerInput{Image: images[checkImage]} }, ready...)

	// Pre-orchestrator: what must be there before Argo CD can take over.
	namespaces := add(c, p, contract.NamespacesStep(), func() contract.Nothing { return contract.Nothing{} }, cluster)
	secrets := add(c, p, contract.SecretsStep(),
		func() contract.SecretsInput {
			return contract.SecretsInput{Domain: domain, AdminEmail: cfg.Global.Admin.Email, Given: c.given}
		}, namespaces)
	tls := add(c, p, contract.TLSStep(),
		func() contract.TLSInput {
			return contract.TLSInput{Domain: domain, Disabled: disabled, Mode: cfg.TLS.Mode, Certificate: cfg.TLS.Certificate, CA: cfg.TLS.CA}
		}, namespaces)
	gitea := add(c, p, contract.GiteaStep(),
		func() contract.GiteaInput {
			return contract.GiteaInput{
				Domain: domain, Scale: scale, StorageClass: terraform.Value().StorageClass, Images: images,
				GitHost: tls.Value().GitHost, Certificate: tls.Value().SHA256, Values: gitValues,
			}
		},
		append(ready, secrets, tls)...)
	argocd := add(c, p, contract.ArgoCDStep(),
		func() contract.ArgoCDInput {
			proxy := contract.Proxy{HTTP: cfg.Proxy.HTTP, HTTPS: cfg.Proxy.HTTPS, NoProxy: cfg.Proxy.NoProxy}
			return contract.ArgoCDInput{Images: images, GitHost: tls.Value().GitHost, Proxy: proxy}
		},
		append(ready, secrets, tls)...)
	push := add(c, p, contract.GiteaPushStep(),
		func() contract.GiteaPushInput {
			return contract.GiteaPushInput{Domain: domain, Gitea: gitea.Value().GitServer}
		}, gitea)
	reconcile := add(c, p, contract.ReconcileStep(),
		func() contract.ReconcileInput {
			return contract.ReconcileInput{Repository: gitea.Value().CloneURL(push.Value().Repository), Revision: push.Value().Revision}
		}, push, argocd)

	// Orchestrator: the GitOps tree goes to Gitea, Argo CD brings the apps up.
	out := &installation{infrastructure: terraform}
	out.publication = add(c, p, contract.PublishStep(),
		func() contract.PublishInput {
			in := contract.PublishInput{
				Domain: domain, Scale: scale, Disabled: disabled, Images: images,
				StorageClass: terraform.Value().StorageClass, Backing: terraform.Value().Backing,
				Gitea: gitea.Value(), Values: values, Settings: cfg.Platform.Settings,
			}
			if s := cfg.SMTP; s.Host != "" {
				in.SMTP = &contract.SMTP{Host: s.Host, Port: s.Port, From: s.From, TLS: s.TLS, Username: s.Username}
			}
			if o := cfg.Observability; o.Endpoint != "" {
				in.Observability = &contract.Observability{Endpoint: o.Endpoint, Username: o.Username, CA: o.CA}
			}
			return in
		}, gitea)
	deadline := time.Duration(cfg.Advanced.Timeouts.App)
	sync := contract.SyncStep()
	sync.Timeout = c.syncTimeout(len(apps))
	out.apps = add(c, p, sync,
		func() contract.AppsInput {
			tree := gitea.Value()
			return contract.AppsInput{
				Repository: tree.CloneURL(tree.Repository), Revision: out.publication.Value().Revision,
				Apps: apps, Deadline: int(deadline / time.Second),
			}
		}, out.publication, reconcile, storage, balancer)

	// Post-orchestrator: how people get in.
	out.access = add(c, p, contract.AccessStep(),
		func() contract.AccessInput {
			return contract.AccessInput{Domain: domain, Disabled: disabled, LoadBalancer: terraform.Value().LoadBalancer}
		}, out.apps)
	return out, nil
}

// addNode starts the cluster's service; it runs until the end of the run.
func (c *Conductor) addNode(p *pipeline.Pipeline, needs ...pipeline.Dep) *pipeline.Step[struct{}] {
	key := contract.NodeKey()
	start := c.locked(c.cluster.Start)
	if c.inProcess != nil { // it runs in a container that is bound to the cluster
		start = func(context.Context) error { return nil }
	}
	return pipeline.Add(p, key, spanned(key, start), needs...)
}

// syncTimeout bounds the step that waits for n apps: each has its own deadline,
// and with waves they may come one after the other.
func (c *Conductor) syncTimeout(n int) time.Duration {
	return max(time.Duration(c.opts.Config.Advanced.Timeouts.Step), time.Duration(n+1)*time.Duration(c.opts.Config.Advanced.Timeouts.App))
}

// Install brings the platform up, or makes sure that it is. The record is there
// whatever the outcome, unless nothing was started.
func (c *Conductor) Install(ctx context.Context) (*report.Run, error) {
	c.run = report.NewID(time.Now())
	var p pipeline.Pipeline
	graph, err := c.install(&p)
	if err != nil {
		return nil, err
	}
	record, err := c.conduct(ctx, config.Install, &p)
	if record == nil {
		return nil, err
	}
	state := &contract.RuntimeState{
		Deployment: c.opts.Config.Global.Name, Provider: c.opts.Config.Provider, Run: c.run,
	}
	if r, ok := graph.infrastructure.Result(); ok && r.Status.OK() {
		v := graph.infrastructure.Value()
		state.Infrastructure = &v
	}
	if r, ok := graph.publication.Result(); ok && r.Status.OK() {
		state.Revision, state.Platform = graph.publication.Value().Revision, c.opts.Release.Version
	}
	if r, ok := graph.apps.Result(); ok && r.Status.OK() {
		record.Apps = appsOf(graph.apps.Value())
	}
	if r, ok := graph.access.Result(); ok && r.Status.OK() {
		v := graph.access.Value()
		state.Access = &v
		for _, l := range v.URLs {
			record.Links = append(record.Links, report.Link(l))
		}
		record.Commands = v.Commands
	}
	return record, c.keep(ctx, record, state, err)
}
