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
	common := c.common()
	root, err := c.terraformInput(common)
	if err != nil {
		return nil, err
	}
	if common.Disabled, err = c.opts.Release.Off(cfg.Choices()); err != nil {
		return nil, err
	}
	values := cfg.Overrides()
	if err := errors.Join(c.opts.Release.Overrides(values), c.opts.Release.CheckSettings(cfg.Platform.Settings)); err != nil {
		return nil, err
	}
	expected, err := c.opts.Release.Apps(common.Disabled)
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
			in := contract.PreflightInput{Common: common, Tools: c.opts.Tools}
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
	clusterInput := func() contract.ClusterInput {
		return contract.ClusterInput{Common: common, Infrastructure: terraform.Value()}
	}
	cluster := add(c, p, contract.ClusterStep(), clusterInput, terraform)
	ready := []pipeline.Dep{cluster}
	if _, ok := c.opts.Provider.(providers.AddonsStep); ok {
		ready = append(ready, add(c, p, contract.AddonsStep(), clusterInput, cluster))
	}
	storage := add(c, p, contract.StorageStep(), clusterInput, ready...)
	balancer := add(c, p, contract.LoadBalancerStep(), clusterInput, ready...)

	// Pre-orchestrator: what must be there before Argo CD can take over.
	platformInput := func() contract.PlatformInput { return contract.PlatformInput{Common: common} }
	namespaces := add(c, p, contract.NamespacesStep(), platformInput, cluster)
	secrets := add(c, p, contract.SecretsStep(),
		func() contract.SecretsInput { return contract.SecretsInput{Common: common, Given: c.givenFiles()} }, namespaces)
	tls := add(c, p, contract.TLSStep(),
		func() contract.TLSInput {
			in := contract.TLSInput{Common: common, Mode: cfg.TLS.Mode, Certificate: cfg.TLS.Certificate, CA: cfg.TLS.CA}
			if c.keyGiven {
				in.KeyFile = contract.TLSKeyFile
			}
			return in
		}, namespaces)
	gitea := add(c, p, contract.GiteaStep(),
		func() contract.GiteaInput {
			return contract.GiteaInput{Common: common, Infrastructure: terraform.Value(), TLS: tls.Value(), Values: values[gitServer]}
		},
		append(ready, secrets, tls)...)
	argocd := add(c, p, contract.ArgoCDStep(),
		func() contract.ArgoCDInput { return contract.ArgoCDInput{Common: common, TLS: tls.Value()} },
		append(ready, secrets, tls)...)
	push := add(c, p, contract.GiteaPushStep(),
		func() contract.GiteaPushInput { return contract.GiteaPushInput{Common: common, Gitea: gitea.Value()} }, gitea)
	reconcile := add(c, p, contract.ReconcileStep(),
		func() contract.ReconcileInput {
			return contract.ReconcileInput{Common: common, Gitea: gitea.Value(), Push: push.Value()}
		}, push, argocd)

	// Orchestrator: the GitOps tree goes to Gitea, Argo CD brings the apps up.
	out := &installation{infrastructure: terraform}
	out.publication = add(c, p, contract.PublishStep(),
		func() contract.PublishInput {
			in := contract.PublishInput{Common: common, Infrastructure: terraform.Value(), Gitea: gitea.Value(), Values: values, Settings: cfg.Platform.Settings}
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
			return contract.AppsInput{Common: common, Gitea: gitea.Value(), Revision: out.publication.Value().Revision,
				Apps: apps, Deadline: int(deadline / time.Second)}
		}, out.publication, reconcile, storage, balancer)

	// Post-orchestrator: how people get in.
	out.access = add(c, p, contract.AccessStep(),
		func() contract.AccessInput {
			return contract.AccessInput{Common: common, Infrastructure: terraform.Value(), Gitea: gitea.Value()}
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
		Version: 1, Deployment: c.opts.Config.Global.Name, Provider: c.opts.Config.Provider,
		Platform: c.opts.Release.Version, Run: c.run,
	}
	if r, ok := graph.infrastructure.Result(); ok && r.Status.OK() {
		v := graph.infrastructure.Value()
		state.Infrastructure = &v
	}
	if r, ok := graph.publication.Result(); ok && r.Status.OK() {
		state.Revision = graph.publication.Value().Revision
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
	if state.Access == nil && !c.opts.Select.Empty() {
		state = nil // a part of a run knows a part of it
	}
	return record, c.keep(ctx, record, state, err)
}
