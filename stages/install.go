package stages

import (
	"errors"
	"time"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/conductor"
	"github.com/slipway-sh/slipway/stages/contract"
)

const (
	gitServer  = "gitea"   // the component that is the git server
	checkImage = "busybox" // image of the pods that use storage and load balancer
)

// Install brings the platform up, or makes sure that it is.
func Install() conductor.Workflow {
	return conductor.Workflow{Name: config.Install, Wire: wireInstall}
}

func wireInstall(g *conductor.Graph) error {
	cfg, images := g.Config, g.Images
	domain, scale := cfg.Global.Domain, cfg.Profile().Name()
	disabled, err := g.Release.Off(cfg.Choices())
	if err != nil {
		return err
	}
	values := cfg.Overrides()
	if err := errors.Join(g.Release.Overrides(values), g.Release.CheckSettings(cfg.Platform.Settings)); err != nil {
		return err
	}
	gitValues := values[gitServer]
	delete(values, gitServer)
	expected, err := g.Release.Apps(disabled)
	if err != nil {
		return err
	}
	apps := make([]string, len(expected))
	for i, a := range expected {
		apps[i] = a.Name
	}

	// Infrastructure: a cluster that answers, with storage and load balancer. One that
	// Slipway runs itself starts before Terraform runs. On a second run a cluster that
	// Terraform created earlier already exists and can be verified.
	preflight := conductor.Add(g, contract.PreflightStep(), func() contract.PreflightInput {
		in := contract.PreflightInput{Requirements: g.Site.Requirements, Tools: g.Tools}
		if t := cfg.TLS; t.Mode == config.UserCertificate {
			in.TLS = &contract.UserTLS{Certificate: t.Certificate, CA: t.CA, Hosts: g.Release.Hosts(domain, cfg.Global.Name, disabled)}
		}
		return in
	})
	up := []pipeline.Dep{preflight}
	if g.Site.Node != nil {
		up = append(up, g.Action(contract.NodeKey(), preflight))
	}
	// Checks in one container which earlier results still hold; the steps below reuse those.
	verified := g.Action(contract.CheckEarlierSpec().Key, up...)
	terraform := conductor.Add(g, contract.TerraformStep(), func() contract.TerraformInput { return g.Site.Terraform }, verified)
	cluster := conductor.Add(g, contract.ClusterStep(), func() contract.ClusterInput {
		return contract.ClusterInput{APIEndpoint: terraform.Value().APIEndpoint}
	}, terraform)
	ready := []pipeline.Dep{cluster}
	if g.Site.Addons != nil {
		ready = append(ready, conductor.Add(g, contract.AddonsStep(), func() contract.AddonsInput {
			return contract.AddonsInput{Addons: *g.Site.Addons, Images: images}
		}, cluster))
	}
	storage := conductor.Add(g, contract.StorageStep(), func() contract.StorageInput {
		return contract.StorageInput{StorageClass: terraform.Value().StorageClass, Image: images[checkImage]}
	}, ready...)
	balancer := conductor.Add(g, contract.LoadBalancerStep(), func() contract.LoadBalancerInput {
		return contract.LoadBalancerInput{Image: images[checkImage]}
	}, ready...)

	// Pre-orchestrator: what must be there before Argo CD can take over.
	namespaces := conductor.Add(g, contract.NamespacesStep(), func() contract.Nothing { return contract.Nothing{} }, cluster)
	secrets := conductor.Add(g, contract.SecretsStep(), func() contract.SecretsInput {
		return contract.SecretsInput{Domain: domain, AdminEmail: cfg.Global.Admin.Email, UserSecrets: g.UserSecrets}
	}, namespaces)
	tls := conductor.Add(g, contract.TLSStep(), func() contract.TLSInput {
		return contract.TLSInput{Domain: domain, Disabled: disabled, Mode: cfg.TLS.Mode, Certificate: cfg.TLS.Certificate, CA: cfg.TLS.CA}
	}, namespaces)
	gitea := conductor.Add(g, contract.GiteaStep(), func() contract.GiteaInput {
		return contract.GiteaInput{
			Domain: domain, Scale: scale, StorageClass: terraform.Value().StorageClass, Images: images,
			GitHost: tls.Value().GitHost, Certificate: tls.Value().SHA256, Values: gitValues,
		}
	}, append(ready, secrets, tls)...)
	argocd := conductor.Add(g, contract.ArgoCDStep(), func() contract.ArgoCDInput {
		proxy := contract.Proxy{HTTP: cfg.Proxy.HTTP, HTTPS: cfg.Proxy.HTTPS, NoProxy: cfg.Proxy.NoProxy}
		return contract.ArgoCDInput{Images: images, GitHost: tls.Value().GitHost, Proxy: proxy}
	}, append(ready, secrets, tls)...)
	push := conductor.Add(g, contract.GiteaPushStep(), func() contract.GiteaPushInput {
		return contract.GiteaPushInput{Domain: domain, Gitea: gitea.Value().GitServer}
	}, gitea)
	conductor.Add(g, contract.ReconcileStep(), func() contract.ReconcileInput {
		return contract.ReconcileInput{Repository: gitea.Value().CloneURL(push.Value().Repository), Revision: push.Value().Revision}
	}, push, argocd)

	// Orchestrator: the GitOps tree goes to Gitea, Argo CD brings the apps up.
	publish := conductor.Add(g, contract.PublishStep(), func() contract.PublishInput {
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
	syncStep := contract.SyncStep()
	syncStep.Timeout = syncTimeout(cfg.Advanced.Timeouts, len(apps))
	sync := conductor.Add(g, syncStep, func() contract.AppsInput {
		tree := gitea.Value()
		return contract.AppsInput{
			Repository: tree.CloneURL(tree.Repository), Revision: publish.Value().Revision,
			Apps: apps, Deadline: int(time.Duration(cfg.Advanced.Timeouts.App) / time.Second),
		}
	}, publish, argocd, storage, balancer)

	// Post-orchestrator: how people get in.
	access := conductor.Add(g, contract.AccessStep(), func() contract.AccessInput {
		return contract.AccessInput{Domain: domain, Disabled: disabled, LoadBalancer: terraform.Value().LoadBalancer}
	}, sync)

	conductor.Collect(g, terraform, func(out contract.Infrastructure, f *conductor.Findings) { f.State.Infrastructure = &out })
	conductor.Collect(g, publish, func(out contract.Publication, f *conductor.Findings) {
		f.State.Revision, f.State.Platform = out.Revision, g.Release.Version
	})
	conductor.Collect(g, sync, func(out contract.Apps, f *conductor.Findings) { f.Record.Apps = out.Record() })
	conductor.Collect(g, access, func(out contract.Access, f *conductor.Findings) {
		f.State.Access = &out
		for _, l := range out.URLs {
			f.Record.Links = append(f.Record.Links, report.Link(l))
		}
		f.Record.Commands = out.Commands
	})
	return nil
}

// syncTimeout bounds the step that waits for n apps: each has its own deadline,
// and with waves they may come one after the other.
func syncTimeout(t config.Timeouts, n int) time.Duration {
	return max(time.Duration(t.Step), time.Duration(n+1)*time.Duration(t.App))
}
