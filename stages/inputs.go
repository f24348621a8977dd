package stages

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/imageref"
	"github.com/slipway-sh/slipway/stages/contract"
)

// objects are what the platform is made of, without what changes no object's name. What is in
// a repository of the user's is not known.
func (w *platformWiring) objects() contract.OwnershipInput {
	in := contract.OwnershipInput{TakeOwnership: w.TakeOwnership, Upgrade: w.workflow == config.Upgrade, Change: w.Change, PullSecret: w.Environment.Account != ""}
	for _, name := range w.installed() {
		c, _ := w.Release.Component(name)
		all := w.input(c)
		in.Components = append(in.Components, contract.ComponentInput{Component: name, Fill: all.Fill, Values: all.Values})
	}
	if w.sync != nil && w.Config.Git.URL == "" {
		apps := w.treeValues()
		apps.Images, in.Apps = nil, &apps
	}
	return in
}

// input is what the step of a component works on.
func (w *platformWiring) input(c platform.Component) contract.ComponentInput {
	in := contract.ComponentInput{
		Component: c.Name, Fill: w.fill(c.Holes()), Images: map[string]string{}, Hosts: map[string]string{}, Values: w.Config.Overrides()[c.Name],
		Rewrite: w.Rewrite, PullSecret: w.Environment.Account != "",
	}
	for host, service := range c.Hosts {
		in.Hosts[platform.Fill(host, map[string]string{platform.FillDomain: w.Config.Global.Domain})] = service
	}
	for _, name := range c.ImageNames() {
		in.Images[name] = w.Images[name]
		for upstream, ref := range w.Images {
			if ref == w.Images[name] && !imageref.IsShort(upstream) {
				in.Images[upstream] = ref
			}
		}
	}
	return in
}

// private is what is never asked of a proxy: names of the cluster and private networks.
const private = "localhost,127.0.0.1,.svc,.cluster.local,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16"

// fill returns the known values of names in a release's texts.
func (w *platformWiring) fill(names []string) map[string]any {
	cfg := w.Config
	known := map[string]any{
		platform.FillDomain:     cfg.Global.Domain,
		platform.FillDeployment: cfg.Global.Name,
		platform.FillAdminEmail: cfg.Global.Admin.Email,
		platform.FillScale:      cfg.Profile().Name(),
		platform.FillProxyHTTP:  cfg.Proxy.HTTP,
		platform.FillProxyHTTPS: cfg.Proxy.HTTPS,
		platform.FillProxyNone:  w.withoutProxy(),
		platform.FillKnownHosts: cfg.Git.KnownHosts,
	}
	out := map[string]any{}
	for _, name := range names {
		if v, ok := known[name]; ok {
			out[name] = v
		} else if image, ok := platform.ImageHole(name); ok && w.Images[image] != "" {
			out[name] = w.Images[image]
		} else if path, ok := platform.SettingHole(name); ok {
			if v, ok := platform.Setting(cfg.Platform.Settings, path); ok {
				out[name] = v
			}
		} else if name == platform.FillStorageClass {
			out[name] = w.infrastructure.found().StorageClass
		} else if v, ok := w.place(name); ok {
			out[name] = v
		}
	}
	return out
}

// place is the value of a name of the tree's location; contract.NotKnown before a run has found it.
func (w *platformWiring) place(name string) (string, bool) {
	tree := contract.Tree{Repository: contract.NotKnown, Target: contract.Branch}
	if from := w.Config.Git; from.URL != "" {
		tree = contract.Tree{Repository: from.URL, Target: from.Revision, Path: from.Path}
	} else if w.ops != nil && w.ops.found() {
		tree = w.ops.tree()
	}
	text, ok := map[string]string{platform.FillGitURL: tree.Repository, platform.FillGitRevision: tree.Target, platform.FillGitPath: tree.Path}[name]
	return text, ok
}

func (w *platformWiring) fillConfigMaps() map[string]any {
	var names []string
	for _, m := range w.Release.ConfigMaps {
		names = append(names, m.Holes()...)
	}
	return w.fill(names)
}

// withoutProxy lists what is reached without the proxies; empty if there are none.
func (w *platformWiring) withoutProxy() string {
	p := w.Config.Proxy
	if p.HTTP == "" && p.HTTPS == "" {
		return ""
	}
	none := []string{private, w.Config.Global.Domain, "." + w.Config.Global.Domain}
	if p.NoProxy != "" {
		none = append(none, p.NoProxy)
	}
	return strings.Join(none, ",")
}

func (w *platformWiring) appImages() map[string]string {
	out := map[string]string{}
	for _, c := range w.Release.Components {
		if c.Kind != platform.App {
			continue
		}
		for _, name := range c.ImageNames() {
			if ref := w.Images[name]; ref != "" {
				out[name] = ref
			}
		}
	}
	return out
}

func (w *platformWiring) appValues() map[string]json.RawMessage {
	values := w.Config.Overrides()
	for _, c := range w.Release.Components {
		if c.Kind != platform.App {
			delete(values, c.Name)
		}
	}
	return values
}

// Rendering is what an install hands to the steps that render, as far as it is known before one, on
// an infrastructure that Terraform has found. Nil: contract.NotKnown stands for what only a run
// finds out. Nothing is started for it.
func Rendering(in contract.Inputs, found *contract.Infrastructure) (contract.RenderInput, error) {
	off, err := in.Release.Off(in.Config.Choices())
	if err != nil {
		return contract.RenderInput{}, err
	}
	if found == nil {
		found = &contract.Infrastructure{
			StorageClass: contract.NotKnown,
			Backing: contract.Backing{
				ClusterName: contract.NotKnown, LoadBalancer: contract.LoadBalancer{Kind: contract.NotKnown},
				ObjectStore: contract.ObjectStore{Kind: contract.NotKnown}, Database: contract.Database{Kind: contract.NotKnown},
			},
		}
	}
	w := &platformWiring{
		Graph: &Graph{Inputs: in}, disabled: off,
		infrastructure: infrastructure{found: func() contract.Infrastructure { return *found }},
	}
	out := contract.RenderInput{
		Deployment: in.Config.Global.Name, Elsewhere: in.Config.Git.URL != "", Guessed: !in.Environment.OwnsNodes(),
		Fill: w.fillConfigMaps(), UserSecrets: in.UserSecrets, UserTLS: in.Config.TLS.Mode == config.UserCertificate,
	}
	others := false // that Argo CD brings
	for _, c := range in.Release.Components {
		switch {
		case slices.Contains(off, c.Name) && c.Kind != platform.App:
			out.Off = append(out.Off, w.input(c))
		case slices.Contains(off, c.Name):
		case c.Kind == platform.App:
			if out.Apps == nil {
				values := w.treeValues()
				out.Apps = &values
			}
		default:
			out.Components = append(out.Components, w.input(c))
			others = others || c.Kind == platform.AppSet || c.Kind == platform.Adopted
		}
	}
	suites, unused := in.Release.Parts(off)
	for _, c := range suites {
		out.Suites = append(out.Suites, w.input(c))
	}
	for _, c := range unused {
		out.Off = append(out.Off, w.input(c))
	}
	if out.Apps != nil || others {
		out.Projects = w.projectsInput()
	}
	return out, nil
}

// Order names the components in the order of their steps in an install; it fails unless that can
// be wired.
func Order(in contract.Inputs) ([]string, error) {
	nodes, err := Nodes(Install(), in)
	if err != nil {
		return nil, err
	}
	off, err := in.Release.Off(in.Config.Choices())
	if err != nil {
		return nil, err
	}
	apps, err := in.Release.Apps(off)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(apps, func(a, b platform.Component) int { return cmp.Compare(a.Wave, b.Wave) })
	var out []string
	for _, n := range nodes {
		if n.Key == contract.SyncStep().Key {
			for _, a := range apps {
				out = append(out, a.Name)
			}
		}
		// The step that hands a component over has its name, too.
		if _, ok := in.Release.Component(n.Key.Name); ok && contract.OfComponents(n.Key.Stage) && !slices.Contains(out, n.Key.Name) {
			out = append(out, n.Key.Name)
		}
	}
	return out, nil
}

// projectsInput is what the projects of the apps are made from, as far as a plan knows.
func (w *platformWiring) projectsInput() *contract.ProjectsInput {
	var out contract.ProjectsInput
	if c := w.Release.GitOps.Cluster; c != nil {
		out.Fill = w.fill(c.Holes())
	}
	out.Namespace = w.Release.Engine().Namespace
	if from := w.Config.Git; from.URL != "" {
		out.Repository, out.Target, out.Path = from.URL, from.Revision, from.Path
		return &out
	}
	git := contract.Git{ClusterURL: "https://" + contract.NotKnown}
	if s := w.Release.GitServer(); s != nil {
		git.Repository = s.Repository
	}
	out.Repository, out.Target = git.CloneURL(git.Repository), contract.Branch
	return &out
}
