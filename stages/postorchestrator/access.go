// Package postorchestrator contains the steps that follow the apps: they determine how
// users reach the platform, and verify it by reaching it.
package postorchestrator

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/backup"
	"github.com/slipway-sh/slipway/stages/internal/gitserver"
	"github.com/slipway-sh/slipway/stages/internal/installed"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
	"github.com/slipway-sh/slipway/stages/step"
)

// CodeUnanswered: the platform does not answer through its load balancer.
const CodeUnanswered fault.Code = "POST-001"

const (
	reachLimit = 2 * time.Minute // how long each link and check may take
	perRequest = 10 * time.Second
	maxBody    = 1 << 20 // bytes of a response that are read
	// nodeBalancer is the kind of load balancer that is the node's own address.
	nodeBalancer = "node"
)

// Register adds the code of the stage's steps to r.
func Register(r *step.Registry) {
	step.Register(r, contract.AccessStep(), step.Repeatable(runAccess).Planned(nil)) // it only tries out what is installed
}

func runAccess(ctx context.Context, env *step.Env, in contract.AccessInput) (contract.Access, error) {
	r, c, err := env.Open()
	if err != nil {
		return contract.Access{}, err
	}
	roots, err := kube.Roots(ctx, c)
	if err != nil {
		return contract.Access{}, err
	}
	targets, err := targetsOf(r, env.Deployment, in)
	if err != nil {
		return contract.Access{}, unanswered(err)
	}
	if err := reach(ctx, c, targets, roots); err != nil {
		return contract.Access{}, err
	}
	env.Progress("%d addresses of the platform answer", len(targets))
	out := describe(targets, env.Deployment, r, in)
	if out.Guidance, err = guidance(r, env.Deployment, in, out.URLs); err != nil {
		return out, err
	}
	state, err := c.ReadProgress(ctx)
	if err == nil && state != contract.Success { // an earlier step of this run has said that it goes on
		env.Plan.Change("say that the platform is installed")
	}
	if err == nil {
		err = keep(ctx, env, r, in.Config)
	}
	if err == nil {
		err = installed.End(ctx, c, env.Deployment, r)
	}
	if err != nil {
		return out, err
	}
	c.WriteProgress(ctx, env.Logger, env.Deployment, env.Run, contract.Success, r.Name+" "+r.Version+" is installed")
	return out, nil
}

func unanswered(err error) error {
	const op = "reach the platform through its load balancer"
	fix := "look at the apps: slipway status --live"
	if f, ok := errors.AsType[*fault.Fault](err); ok && f.Code == kube.CodeNoBalancer {
		fix = f.Fix
	}
	return &fault.Fault{Code: CodeUnanswered, Class: step.ClassOf(err), Op: op, Fix: fix, Err: err}
}

type target struct {
	name      string
	url       string // as users see it; the certificate must be for its host
	link      bool   // it is shown to users
	namespace string
	service   string
	port      int
	status    int    // expected; 0: anything below 400
	contains  string // text that the body must contain
	address   string // host:port of the load balancer
}

// targetsOf returns the links and checks of the enabled components.
func targetsOf(r *platform.Release, deployment string, in contract.AccessInput) ([]target, error) {
	var out []target
	var errs []error
	hosts := map[string]string{} // service → host in the URL of its link
	for _, l := range r.Links {
		if slices.Contains(in.Disabled, l.Component) || l.Service == "" {
			continue
		}
		t := target{name: l.Name, url: l.URL(in.Domain, deployment), link: true}
		u, err := url.Parse(t.url)
		if err == nil {
			hosts[l.Service] = u.Hostname()
			t.namespace, t.service, t.port, err = platform.ParseService(l.Service)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("link %s: %w", l.Name, err))
			continue
		}
		out = append(out, t)
	}
	for _, c := range r.Checks {
		if slices.Contains(in.Disabled, c.Component) {
			continue
		}
		t := target{name: c.Name, status: c.Status, contains: c.Contains}
		var err error
		if t.namespace, t.service, t.port, err = platform.ParseService(c.Service); err != nil {
			errs = append(errs, fmt.Errorf("check %s: %w", c.Name, err))
			continue
		}
		host := hosts[c.Service]
		if host == "" {
			host = t.service + "." + t.namespace + ".svc"
		}
		scheme := "http"
		if c.TLS {
			scheme = "https"
		}
		t.url = scheme + "://" + host + "/" + strings.TrimPrefix(c.Path, "/")
		out = append(out, t)
	}
	return out, errors.Join(errs...)
}

// reach fills in the addresses of targets and requests them, all at the same time, until each responds
// as expected. The error lists every target that does not.
func reach(ctx context.Context, c *kube.Client, targets []target, roots *x509.CertPool) error {
	for i := range targets {
		t := &targets[i]
		var err error
		if t.address, err = readiness.WaitAddress(ctx, c, t.namespace, t.service, t.port); err != nil {
			return unanswered(fmt.Errorf("%s: %w", t.name, err))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, reachLimit)
	defer cancel()
	errs := make([]error, len(targets))
	var wg sync.WaitGroup
	for i, t := range targets {
		wg.Go(func() {
			what := fmt.Sprintf("%s (%s on %s)", t.name, t.url, t.address)
			errs[i] = c.WaitSuccess(ctx, what, func(ctx context.Context) error { return t.request(ctx, roots) })
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return unanswered(err)
	}
	return nil
}

func (t target) request(ctx context.Context, roots *x509.CertPool) error {
	ctx, cancel := context.WithTimeout(ctx, perRequest)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url, nil)
	if err != nil {
		return err
	}
	resp, err := gitserver.Client(t.address, roots).Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return fmt.Errorf("read the response: %w", err)
	}
	switch {
	case t.status != 0 && resp.StatusCode != t.status:
		return fmt.Errorf("answered %d, not %d", resp.StatusCode, t.status)
	case t.status == 0 && resp.StatusCode >= http.StatusBadRequest:
		return fmt.Errorf("answered %d", resp.StatusCode)
	case t.contains != "" && !strings.Contains(string(body), t.contains):
		return fmt.Errorf("the response does not contain %q", t.contains)
	}
	return nil
}

// guidance is what the release tells people about what was installed.
func guidance(r *platform.Release, deployment string, in contract.AccessInput, links []contract.Link) (string, error) {
	data := platform.GuidanceData{
		Platform: r.Name, Version: r.Version, Deployment: deployment, Domain: in.Domain, Scale: in.Scale, AdminEmail: in.AdminEmail,
		Settings: in.Settings,
	}
	for _, l := range links {
		data.Links = append(data.Links, platform.GuidanceLink(l))
	}
	for _, c := range r.Components {
		if !slices.Contains(in.Disabled, c.Name) {
			data.Components = append(data.Components, c.Name)
		}
	}
	return r.Guide(data)
}

// describe returns the links and the commands to show to users. Passwords are not part
// of it: the commands read them from the cluster.
func describe(targets []target, deployment string, r *platform.Release, in contract.AccessInput) contract.Access {
	// A node that Slipway runs exists while something uses it, and is reached
	// through the ports that it publishes on this machine.
	node := in.LoadBalancer.Kind == nodeBalancer
	var out contract.Access
	hosts := map[string][]string{} // address of the load balancer → names that lead to it
	for _, t := range targets {
		if !t.link {
			continue
		}
		out.URLs = append(out.URLs, contract.Link{Name: t.name, URL: t.url})
		if u, err := url.Parse(t.url); err == nil {
			host, _, _ := net.SplitHostPort(t.address)
			if node {
				host = in.Host
			}
			if host != "" {
				hosts[host] = append(hosts[host], u.Hostname())
			}
		}
	}
	if node {
		out.Commands = append(out.Commands, "slipway cluster --name "+fault.Quote(deployment)+" --keep-cluster   # publishes the cluster's ports")
	}
	out.Commands = append(out.Commands, "slipway kubeconfig --name "+fault.Quote(deployment)+" --out kubeconfig && export KUBECONFIG=$PWD/kubeconfig")
	out.Commands = append(out.Commands, inCluster(r, in)...)
	if len(hosts) > 0 {
		why := "when " + in.Domain + " is not in your DNS"
		if node {
			why = "for a browser; the configuration names the ports that are published"
		}
		for _, host := range slices.Sorted(maps.Keys(hosts)) {
			names := slices.Compact(slices.Sorted(slices.Values(hosts[host])))
			if net.ParseIP(host) != nil {
				out.Commands = append(out.Commands, "echo '"+host+" "+strings.Join(names, " ")+"' >> /etc/hosts   # "+why)
			} else { // the addresses behind a name change
				out.Commands = append(out.Commands, "# "+why+", make "+strings.Join(names, ", ")+" an alias (CNAME) of "+host+" there")
			}
		}
	}
	return out
}

// inCluster are the commands that look into the cluster.
func inCluster(r *platform.Release, in contract.AccessInput) []string {
	var out []string
	if engine := r.Engine(); engine != nil {
		out = append(out, "kubectl get applications -n "+fault.Quote(engine.Namespace))
	}
	if server := r.GitServer(); server != nil && !slices.Contains(in.Disabled, server.Component) {
		namespace, name, _ := strings.Cut(server.Accounts.Administrator, "/")
		password := "kubectl get secret -n " + fault.Quote(namespace) + " " + fault.Quote(name)
		out = append(out,
			password+" -o jsonpath='{.data.username}' | base64 -d   # the user name for the git server",
			password+" -o jsonpath='{.data.password}' | base64 -d   # the password")
	}
	if len(r.Certificates) > 0 {
		out = append(out, "kubectl get configmap -n "+kube.SystemNamespace+" "+kube.CA+
			` -o jsonpath='{.data.ca\.crt}' > ca.crt   # the CA that browsers must trust`)
	}
	return out
}

// keep keeps the release that is installed, and its configuration, in the deployment's state,
// for the backup before the next upgrade.
func keep(ctx context.Context, env *step.Env, r *platform.Release, config json.RawMessage) error {
	s, err := env.Store(ctx)
	if err != nil {
		return err
	}
	repo, err := backup.Open(ctx, env.Backend, s)
	if err != nil {
		return err
	}
	files := os.DirFS(env.PlatformDir)
	want := contract.Installed{Platform: r.Name, Version: r.Version, Config: config}
	if want.Digest, err = platform.Digest(files); err != nil {
		return err
	}
	kept, err := repo.Installed(ctx)
	if err != nil || backup.Holds(kept, want) {
		return err
	}
	if env.Plan != nil {
		env.Plan.Change("keep release %s for a backup", r.Version)
		return nil
	}
	return repo.KeepInstalled(ctx, env.Generation(), kept, want, files)
}
