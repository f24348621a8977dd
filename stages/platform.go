package stages

import (
	"slices"
	"time"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/stages/contract"
)

// platformWiring wires a step for each component of a release that Slipway installs and, if there are
// apps, the steps that push their tree and wait for them.
type platformWiring struct {
	*Graph
	infrastructure infrastructure
	disabled       []string // components that are switched off
	workflow       string   // config.Install, config.Upgrade or config.Rollback

	prerequisites []pipeline.Dep          // what every component needs
	steps         map[string]pipeline.Dep // of the components so far, by name
	handed        map[string]pipeline.Dep // that hand adopted components over, by name
	tls           *pipeline.Step[contract.TLS]
	ops           *gitOps      // nil while the engine is not wired
	sync          pipeline.Dep // nil while the apps are not wired
}

func (w *platformWiring) wire() error {
	w.prepare()
	for _, c := range w.Release.Components {
		if err := w.component(c.Name); err != nil {
			return err
		}
	}
	for _, c := range w.Release.Components {
		if c.Kind == platform.Adopted && w.steps[c.Name] != nil {
			if err := w.handOver(c); err != nil {
				return err
			}
		}
	}
	cfg := w.Config
	var installed []pipeline.Dep
	last := slices.Clone(w.infrastructure.checked)
	for _, c := range w.Release.Components {
		if step := w.last(c.Name); step != nil && !slices.Contains(installed, step) {
			installed, last = append(installed, step), append(last, pipeline.Spare(step))
		}
	}
	if checked := w.dataLast(last); checked != nil {
		last = append(last, checked)
	}
	access := Add(w.Graph, contract.AccessStep(), func() contract.AccessInput {
		in := contract.AccessInput{
			Domain: cfg.Global.Domain, AdminEmail: cfg.Global.Admin.Email, Scale: cfg.Profile().Name(),
			Disabled: append(slices.Clone(w.disabled), w.leftOut()...), LoadBalancer: w.infrastructure.terraform.Value().LoadBalancer,
			Settings: cfg.Platform.Settings, Config: cfg.Canonical(),
		}
		if node := w.Environment.Local; node != nil {
			in.Host = node.Host()
		}
		return in
	}, last...)
	Add(w.Graph, contract.PruneStep(), func() contract.PruneInput {
		return contract.PruneInput{Components: w.installed(), Apps: w.sync != nil}
	}, last...)
	Collect(w.Graph, access, func(out contract.Access, f *Findings) {
		f.State.Access, f.State.Platform = &out, w.Release.Version
		f.Record.Links, f.Record.Commands, f.Record.Guidance = out.URLs, out.Commands, out.Guidance
	})
	return nil
}

// last is the last step of a component; nil if it has none.
func (w *platformWiring) last(name string) pipeline.Dep {
	if step := w.handed[name]; step != nil {
		return step
	}
	return w.steps[name]
}

// leftOut are the optional components that failed in this run, and what comes after them.
func (w *platformWiring) leftOut() []string {
	var out []string
	for _, c := range w.Release.Components {
		step, ok := w.last(c.Name).(interface {
			Result() (pipeline.Result, bool)
		})
		if !ok {
			continue
		}
		if r, ended := step.Result(); ended && (r.Status == pipeline.Warned || r.Status == pipeline.Skipped) {
			out = append(out, c.Name)
		}
	}
	return out
}

// prepare: what must be there before anything is installed.
func (w *platformWiring) prepare() {
	g, cfg := w.Graph, w.Config
	namespaces := Add(g, contract.NamespacesStep(), func() contract.NamespacesInput { return contract.NamespacesInput{Account: w.Environment.Account} }, w.dataFirst(w.infrastructure.free)...)
	secrets := Add(g, contract.SecretsStep(), func() contract.SecretsInput {
		return contract.SecretsInput{Domain: cfg.Global.Domain, AdminEmail: cfg.Global.Admin.Email, UserSecrets: g.UserSecrets}
	}, namespaces)
	w.prerequisites = append(slices.Clone(w.infrastructure.ready), secrets)
	if len(g.Release.Certificates) > 0 {
		w.tls = Add(g, contract.TLSStep(), func() contract.TLSInput {
			return contract.TLSInput{Domain: cfg.Global.Domain, Disabled: w.disabled, Mode: cfg.TLS.Mode, Certificate: cfg.TLS.Certificate, CA: cfg.TLS.CA}
		}, namespaces)
		w.prerequisites = append(w.prerequisites, w.tls)
	}
	if len(g.Release.ConfigMaps) > 0 {
		w.prerequisites = append(w.prerequisites, Add(g, contract.ConfigMapsStep(), func() contract.ConfigMapsInput {
			return contract.ConfigMapsInput{Fill: w.fillConfigMaps()}
		}, namespaces))
	}
	if len(g.Release.Requires) > 0 {
		w.prerequisites = append(w.prerequisites, Add(g, contract.RequiresStep(), func() contract.Nothing { return contract.Nothing{} }, namespaces))
	}
}

// component wires a component, and before it whatever it comes after.
func (w *platformWiring) component(name string) error {
	c, _ := w.Release.Component(name)
	if w.steps[name] != nil || slices.Contains(w.disabled, name) {
		return nil
	}
	if !c.Installed() {
		if w.sync == nil {
			if err := w.apps(); err != nil {
				return err
			}
		}
		w.steps[name] = w.sync
		return nil
	}
	needs, err := w.following(c, slices.Clone(w.prerequisites))
	if err != nil {
		return err
	}
	if c.Kind == platform.AppSet || c.NamesTree() {
		ops, err := w.gitOps()
		if err != nil {
			return err
		}
		needs = append(needs, ops.ready...)
	}
	stage := contract.StageOrchestrator
	if c.Kind == platform.Adopted || slices.Contains(w.Release.Foundation(), name) {
		stage = contract.StagePreOrchestrator
	}
	step := Add(w.Graph, contract.ComponentStep().Named(stage, name), func() contract.ComponentInput { return w.input(c) }, needs...)
	if c.Optional {
		pipeline.Optional(step)
	}
	w.steps[name] = step
	return nil
}

// installed are the components that Slipway installs itself.
func (w *platformWiring) installed() []string {
	var out []string
	for _, c := range w.Release.Components {
		if c.Installed() && !slices.Contains(w.disabled, c.Name) {
			out = append(out, c.Name)
		}
	}
	return out
}

// handOver wires the step after which Argo CD owns a component that Slipway has installed.
func (w *platformWiring) handOver(c platform.Component) error {
	if w.handed[c.Name] != nil {
		return nil
	}
	ops, err := w.gitOps()
	if err != nil {
		return err
	}
	step := Add(w.Graph, contract.HandoverStep().Named(contract.StageOrchestrator, c.Name), func() contract.HandoverInput {
		return contract.HandoverInput{ComponentInput: w.input(c), Tree: ops.tree(), Deadline: seconds(w.Config.Advanced.Timeouts.App)}
	}, append([]pipeline.Dep{w.steps[c.Name]}, ops.ready...)...)
	if c.Optional {
		pipeline.Optional(step)
	}
	w.handed[c.Name] = step
	return nil
}

func seconds(d config.Duration) int { return int(time.Duration(d) / time.Second) }

// gitOps are the steps after which Argo CD can read the tree of the apps.
type gitOps struct {
	ready []pipeline.Dep
	tree  func() contract.Tree // once they have succeeded
	found func() bool          // whether they have
}

// gitOps wires the GitOps engine, where its tree is, and what the tree may bring about.
func (w *platformWiring) gitOps() (*gitOps, error) {
	if w.ops != nil {
		return w.ops, nil
	}
	if err := w.component(w.Release.GitOps.Engine); err != nil {
		return nil, err
	}
	engine := w.steps[w.Release.GitOps.Engine]
	from := w.external
	if w.Config.Git.URL == "" {
		from = w.published
	}
	ops, err := from()
	if err != nil {
		return nil, err
	}
	var holes []string
	if c := w.Release.GitOps.Cluster; c != nil {
		holes = c.Holes()
	}
	projects := Add(w.Graph, contract.ProjectsStep(), func() contract.ProjectsInput {
		return contract.ProjectsInput{Tree: ops.tree(), Fill: w.fill(holes)}
	}, append(ops.ready, engine)...)
	w.ops = &gitOps{ready: []pipeline.Dep{projects}, tree: ops.tree, found: func() bool {
		r, ended := projects.Result()
		return ended && r.Status.OK()
	}}
	return w.ops, nil
}

// apps wires the Application that brings the others, and waits for them.
func (w *platformWiring) apps() error {
	cfg := w.Config
	expected, err := w.Release.Apps(w.disabled)
	if err != nil {
		return err
	}
	var names []string
	needs := slices.Clone(w.infrastructure.checked)
	for _, a := range expected {
		names = append(names, a.Name)
		if needs, err = w.following(a, needs); err != nil {
			return err
		}
	}
	ops, err := w.gitOps()
	if err != nil {
		return err
	}
	syncStep := contract.SyncStep()
	syncStep.Timeout = syncTimeout(cfg.Advanced.Timeouts, len(names))
	sync := Add(w.Graph, syncStep, func() contract.AppsInput {
		in := contract.AppsInput{Tree: ops.tree(), Apps: names, Deadline: seconds(cfg.Advanced.Timeouts.App)}
		if cfg.Git.URL != "" {
			values := w.treeValues()
			in.Values = &values
		}
		return in
	}, append(needs, ops.ready...)...)
	w.sync = sync
	Collect(w.Graph, sync, func(out contract.Apps, f *Findings) {
		f.Record.Apps, f.State.Revision = out.Apps, out.Revision
	})
	return nil
}

// following adds the steps that a component comes after to needs: where one of these is
// off, what that one would have come after.
func (w *platformWiring) following(c platform.Component, needs []pipeline.Dep) ([]pipeline.Dep, error) {
	for _, before := range c.After {
		if slices.Contains(w.disabled, before) {
			off, _ := w.Release.Component(before)
			var err error
			if needs, err = w.following(off, needs); err != nil {
				return nil, err
			}
			continue
		}
		if err := w.component(before); err != nil {
			return nil, err
		}
		step := w.steps[before]
		// What Argo CD itself rests on cannot wait until it owns something.
		if b, _ := w.Release.Component(before); b.Kind == platform.Adopted && !slices.Contains(w.Release.Foundation(), c.Name) {
			if err := w.handOver(b); err != nil {
				return nil, err
			}
			step = w.handed[before]
		}
		if step != nil && !slices.Contains(needs, step) {
			needs = append(needs, step)
		}
	}
	return needs, nil
}

// published wires the git server of the platform's own, to which the tree is pushed.
func (w *platformWiring) published() (*gitOps, error) {
	g, server := w.Graph, w.Release.GitServer()
	if server == nil {
		return nil, w.Release.NoGitServer()
	}
	if err := w.component(server.Component); err != nil {
		return nil, err
	}
	namespace := w.Release.Engine().Namespace
	git := Add(g, contract.GitStep(), func() contract.GitInput {
		return contract.GitInput{Domain: w.Config.Global.Domain, GitHost: w.tls.Value().GitHost}
	}, w.steps[server.Component])
	publish := Add(g, contract.PublishStep(), func() contract.PublishInput {
		return contract.PublishInput{Git: git.Value(), Values: w.treeValues()}
	}, git)
	return &gitOps{ready: []pipeline.Dep{publish}, tree: func() contract.Tree {
		return contract.Tree{
			Namespace: namespace, Repository: git.Value().CloneURL(git.Value().Repository),
			Target: contract.Branch, Revision: publish.Value().Revision,
		}
	}}, nil
}

// external wires a repository of the user's, which Argo CD reads.
func (w *platformWiring) external() (*gitOps, error) {
	from, namespace := w.Config.Git, w.Release.Engine().Namespace
	repository := Add(w.Graph, contract.RepositoryStep(), func() contract.RepositoryInput {
		return contract.RepositoryInput{
			Namespace: namespace, URL: from.URL, Host: from.Host(), Username: from.Username, CA: from.CA,
			Password: from.Password != "", Key: from.SSHKey != "",
		}
	}, w.prerequisites...)
	return &gitOps{ready: []pipeline.Dep{repository}, tree: func() contract.Tree {
		return contract.Tree{Namespace: namespace, Repository: from.URL, Target: from.Revision, Path: from.Path}
	}}, nil
}

func (w *platformWiring) treeValues() contract.TreeValues {
	cfg, found := w.Config, w.infrastructure.found()
	out := contract.TreeValues{
		Domain: cfg.Global.Domain, Scale: cfg.Profile().Name(), Disabled: w.disabled, Images: w.appImages(),
		StorageClass: found.StorageClass, Backing: found.Backing, Values: w.appValues(), Settings: cfg.Platform.Settings,
	}
	if s := cfg.SMTP; s.Host != "" {
		out.SMTP = &contract.SMTP{Host: s.Host, Port: s.Port, From: s.From, TLS: s.TLS, Username: s.Username}
	}
	if o := cfg.Observability; o.Endpoint != "" {
		out.Observability = &contract.Observability{Endpoint: o.Endpoint, Username: o.Username, CA: o.CA}
	}
	return out
}

// syncTimeout bounds the step that waits for n apps: each has its own deadline,
// and with waves they may come one after the other.
func syncTimeout(t config.Timeouts, n int) time.Duration {
	return max(time.Duration(t.Step), time.Duration(n+1)*time.Duration(t.App))
}
