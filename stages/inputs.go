package stages

import (
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
	in := contract.ComponentInput{Component: c.Name, Fill: w.fill(c.Holes()), Values: w.Config.Overrides()[c.Name], Rewrite: w.Rewrite, PullSecret: w.Site.Account != ""}
	for host, service := range c.Hosts {
		if in.Hosts == nil {
			in.Hosts = map[string]string{}
		}
		in.Hosts[platform.Fill(host, map[string]string{platform.FillDomain: w.Config.Global.Domain})] = service
	}
	for _, name := range c.ImageNames() {
		if in.Images == nil {
			in.Images = map[string]string{}
		}
		in.Images[name] = w.Images[name]
		for upstream, ref := range w.Images {
			if ref == w.Images[name] && !imageref.IsShort(upstream) {
				in.Images[upstream] = ref
			}
		}
	}
	return in
}
