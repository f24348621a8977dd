package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
)

// codeUnreached: a link, check or gate names a Service that the release does not have, or
// not so that it can be asked.
const codeUnreached fault.Code = "PLT-016"

// unreached fails with codeUnreached, and names each link, check and gate of what is not off
// whose Service will not answer.
func unreached(r *platform.Release, off []string, have *made) error {
	var problems []error
	look := func(what, component, field, ref string, outside bool) {
		if ref == "" || slices.Contains(off, component) {
			return
		}
		if err := have.reach(ref, outside); err != nil {
			problems = append(problems, fmt.Errorf("%s (%s): %w", what, contract.Place(r.Path(platform.File), r.Line(field)), err))
		}
	}
	for i, l := range r.Links {
		look("link "+l.Name, l.Component, fmt.Sprintf("links[%d].service", i), l.Service, true)
	}
	for i, c := range r.Checks {
		look("check "+c.Name, c.Component, fmt.Sprintf("checks[%d].service", i), c.Service, true)
	}
	gates(r, off, func(whose, in string, g platform.Await) {
		look(whose, "", in+".endpoint", g.Endpoint, false)
		if g.HTTP != nil {
			look(whose, "", in+".http.service", g.HTTP.Service, false)
		}
	})
	if len(problems) == 0 {
		return nil
	}
	return &fault.Fault{
		Code: codeUnreached, Class: fault.Usage, Op: fmt.Sprintf("find the Services that %s %s asks", r.Name, r.Version), Err: listed(problems),
		Fix: "name a Service that a component has; for links and checks one of type LoadBalancer: of most charts the value service.type. slipway platform render shows what there is",
	}
}

// reach says why the Service "namespace/name:port" will not be reached; outside asks for a
// load balancer.
func (m *made) reach(ref string, outside bool) error {
	namespace, name, port, err := platform.ParseService(ref)
	if err != nil {
		return err
	}
	id := namespace + "/" + name
	found, ok := m.services[id]
	switch {
	case !ok && m.allOf(namespace):
		return fmt.Errorf("no component has a Service %s", id)
	case !ok:
		m.unsure(namespace, "Service "+id)
		return nil
	case outside && found.kind != "LoadBalancer":
		return fmt.Errorf("the Service %s (%s) is of type %s, and is asked through a load balancer", id, found.from, found.kind)
	case len(found.ports) > 0 && !slices.Contains(found.ports, strconv.Itoa(port)):
		return fmt.Errorf("the Service %s (%s) has no port %d, only %s", id, found.from, port, strings.Join(found.ports, ", "))
	}
	return nil
}
