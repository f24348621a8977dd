package stages

import (
	"encoding/json"
	"strings"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/imageref"
	"github.com/slipway-sh/slipway/stages/contract"
)

// objects are what the platform is made of, without what changes no object's name. What is in
// a repository of the user's is not known.
func (w *platformWiring) objects() contract.OwnershipInput {
	in := contract.OwnershipInput{Adopt: w.Adopt, Upgrade: w.workflow == config.Upgrade, Change: w.Change, PullSecret: w.Site.Account != ""}
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
		Rewrite: w.Rewrite, PullSecret: w.Site.Account != "",
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
			out[name] = w.site.found().StorageClass
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
