package platform

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/document"
)

// gate checks a gate.
func (v *validator) gate(field string, a Await) {
	v.deadline(field+".deadline", a.Deadline)
	switch set := a.set(); len(set) {
	case 0:
		v.Add(field, "no gate", "one of "+document.OneOf(gates()...))
		return
	case 1:
	default:
		v.Add(field, strings.Join(set, " and "), "one gate in each entry")
		return
	}
	switch {
	case a.Rollout != "":
		if o, ok := v.object(field+".rollout", a.Rollout); ok && (!slices.Contains(rollouts(), o.Kind) || o.Namespace == "") {
			v.Add(field+".rollout", document.Quote(a.Rollout), "a Deployment, StatefulSet or DaemonSet such as apps/v1/Deployment namespace/name")
		}
	case a.Job != "":
		v.reference(field+".job", a.Job)
	case a.Endpoint != "":
		v.ourService(field+".endpoint", a.Endpoint)
	case a.HTTP != nil:
		v.ourService(field+".http.service", a.HTTP.Service)
		if !strings.HasPrefix(a.HTTP.Path, "/") {
			v.Add(field+".http.path", document.Quote(a.HTTP.Path), "a path that starts with /")
		}
		if a.HTTP.Status < minStatus || a.HTTP.Status > maxStatus {
			v.Add(field+".http.status", fmt.Sprint(a.HTTP.Status), "an HTTP status")
		}
	case a.Condition != nil:
		v.object(field+".condition.object", a.Condition.Object)
		if a.Condition.Type == "" {
			v.Add(field+".condition.type", "nothing", "the condition's type such as Ready")
		}
	case a.CEL != nil:
		v.object(field+".cel.object", a.CEL.Object)
		v.cel(field+".cel.expression", a.CEL.Expression)
	case a.Synced != "":
		if c := v.r.component(a.Synced); c == nil || c.Kind != App {
			v.Add(field+".synced", document.Quote(a.Synced), "the name of a component of kind app in this file")
		}
	}
}

// cel checks an expression.
func (v *validator) cel(field, expression string) {
	const want = "an expression of true or false such as object.status.ready == true"
	if expression == "" {
		v.Add(field, "nothing", want)
	} else if _, err := CompileCEL(expression); err != nil {
		v.Add(field, document.Quote(expression)+" ("+err.Error()+")", want)
	}
}

// object checks the object of a gate.
func (v *validator) object(field, value string) (Object, bool) {
	o, err := ParseObject(value)
	if err != nil {
		v.Add(field, document.Shown(value), "an object such as apps/v1/Deployment namespace/name")
		return o, false
	}
	if o.Namespace != "" {
		v.namespace(field, o.Namespace)
	}
	return o, true
}

// ourService checks a Service in one of the platform's namespaces.
func (v *validator) ourService(field, value string) {
	namespace, _, _, err := ParseService(value)
	if err != nil {
		v.Add(field, document.Shown(value), "namespace/name:port")
		return
	}
	v.namespace(field, namespace)
}

// gitops checks how apps are installed.
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
	v.Match("gitops.project.name", g.Project.Name, nameRE, nameWant)
	for i, name := range g.Project.Namespaces {
		at := fmt.Sprintf("gitops.project.namespaces[%d]", i)
		if want := NamespaceWant(name); want != "" {
			v.Add(at, document.Shown(name), want)
		} else if engine := v.r.Engine(); engine != nil && engine.Installed() && name == engine.Namespace {
			v.Add(at, document.Quote(name)+", which is Argo CD's", "another one: anyone who may write there may do anything")
		}
	}
	for i, kind := range g.Project.ClusterKinds {
		v.groupKind(fmt.Sprintf("gitops.project.clusterKinds[%d]", i), kind)
	}
	for i, kind := range g.Project.Kinds {
		v.groupKind(fmt.Sprintf("gitops.project.kinds[%d]", i), kind)
	}
	if g.Cluster != nil {
		v.cluster(*g.Cluster)
	}
	s := g.Server
	if s == nil {
		return
	}
	v.role("gitops.server.component", s.Component)
	if len(v.r.Certificates) == 0 {
		v.Add("gitops.server", "a server without a certificate", "one among certificates, for its hosts")
	}
	v.ourService("gitops.server.service", s.Service)
	if len(s.Hosts) == 0 {
		v.Add("gitops.server.hosts", "nothing", "at least one host")
	}
	for i, h := range s.Hosts {
		v.host(fmt.Sprintf("gitops.server.hosts[%d]", i), h)
	}
	v.Match("gitops.server.repository", s.Repository, repositoryRE, "owner/name")
	v.reference("gitops.server.accounts.administrator", s.Accounts.Administrator)
	v.reference("gitops.server.accounts.writer", s.Accounts.Writer)
	v.reference("gitops.server.accounts.reader", s.Accounts.Reader)
}

// cluster checks the Secret of the cluster.
func (v *validator) cluster(c Cluster) {
	v.Match("gitops.cluster.name", c.Name, nameRE, nameWant)
	for _, f := range []struct {
		name  string
		texts map[string]string
	}{{"labels", c.Labels}, {"annotations", c.Annotations}} {
		for _, key := range slices.Sorted(maps.Keys(f.texts)) {
			at := "gitops.cluster." + f.name + "." + key
			v.Match(at, key, labelRE, "a key such as example.com/name")
			v.filled(at, f.texts[key], TreeNames()...)
		}
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

// groupKind checks "group/Kind", or "Kind" for one without group.
func (v *validator) groupKind(field, value string) {
	v.Match(field, value, groupKindRE, "group/Kind such as apps/Deployment, or Kind")
}

// deadline checks how long something may take.
func (v *validator) deadline(field string, d config.Duration) {
	if d := time.Duration(d); d < time.Second || d > 24*time.Hour {
		v.Add(field, config.Duration(d).String(), "1s to 24h")
	}
}
