package platform

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/config/document"
)

// gates checks that each entry of a list sets exactly one gate, and the object of that gate.
func (v *validator) gates(field string, all []Await) {
	for i, a := range all {
		at := fmt.Sprintf("%s.ready[%d]", field, i)
		switch known, set := a.gates(); len(set) {
		case 0:
			v.Add(at, "no gate", "one of "+document.OneOf(known...))
		case 1:
		default:
			v.Add(at, strings.Join(set, " and "), "one gate in each entry")
		}
		if o, err := ParseObject(a.Rollout); err == nil && (!slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet"}, o.Kind) || o.Namespace == "") {
			v.Add(at+".rollout", document.Quote(a.Rollout), "a Deployment, StatefulSet or DaemonSet such as apps/v1/Deployment namespace/name")
		}
		if c := v.r.component(a.Synced); a.Synced != "" && (c == nil || c.Kind != App) {
			v.Add(at+".synced", document.Quote(a.Synced), "the name of a component of kind app in this file")
		}
	}
}

func (v *validator) gitops() {
	g := v.r.GitOps
	if g == nil {
		return
	}
	if !slices.ContainsFunc(v.r.Components, func(c Component) bool { return slices.Contains(byGitOps(), c.Kind) }) {
		v.Add("gitops", "gitops without an app", "a component of kind app, appset or adopted, or no gitops")
	}
	if info := v.stat("gitops.tree", g.Tree, "a directory of the release, as a relative path"); info != nil && !info.IsDir() {
		v.Add("gitops.tree", document.Quote(g.Tree)+", which is no directory", "a directory of the release, as a relative path")
	}
	v.role("gitops.engine", g.Engine)
	s := g.Server
	if s == nil {
		return
	}
	v.role("gitops.server.component", s.Component)
	if len(v.r.Certificates) == 0 {
		v.Add("gitops.server", "a server without a certificate", "one among certificates, for its hosts")
	}
}

// role checks the component that has a role.
func (v *validator) role(field, name string) {
	c := v.r.component(name)
	if c == nil || !c.Installed() || c.Kind == Gate {
		v.Add(field, document.Shown(name), "the name of a component that Slipway installs")
		return
	}
	if c.Kind == Job || c.Kind == AppSet {
		v.Add(field, document.Quote(name)+", which is of kind "+string(c.Kind), "a component that runs for as long as the platform does")
	}
	if !c.Required {
		v.Add(field, document.Quote(name)+", which can be switched off", "a component with required: true")
	}
}
