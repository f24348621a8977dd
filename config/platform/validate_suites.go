package platform

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/config/document"
)

func (v *validator) tests() {
	all := v.r.Tests
	v.unique("tests", "name", len(all), func(i int) string { return all[i].Name })
	for i, t := range all {
		field := fmt.Sprintf("tests[%d]", i)
		v.Match(field+".name", t.Name, nameRE, nameWant)
		v.componentName(field+".component", t.Component)
		if len(t.Suites) == 0 {
			v.Add(field+".suites", "nothing", "at least one suite such as smoke")
		}
		for j, s := range t.Suites {
			at := fmt.Sprintf("%s.suites[%d]", field, j)
			if slices.Contains(ReservedSuites(), s) {
				v.Add(at, document.Quote(s)+", which is about workloads", "another name than "+strings.Join(ReservedSuites(), ", "))
				continue
			}
			v.Match(at, s, nameRE, nameWant)
		}
		switch {
		case t.Path == "" && len(t.Ready) == 0:
			v.Add(field, "a test that does nothing", "path, ready, or both")
		case t.Path == "" && t.Namespace == "":
		default:
			v.namespace(field+".namespace", t.Namespace)
			v.content(field+".path", t.Files())
		}
		for j, image := range t.Images {
			v.image(fmt.Sprintf("%s.images[%d]", field, j), image)
		}
		for j, a := range t.Ready {
			v.gate(fmt.Sprintf("%s.ready[%d]", field, j), a)
		}
		v.deadline(field+".deadline", t.Deadline)
	}
}

func (v *validator) workloads() {
	all := v.r.Workloads
	v.unique("workloads", "name", len(all), func(i int) string { return all[i].Name })
	for i, w := range all {
		field := fmt.Sprintf("workloads[%d]", i)
		v.Match(field+".name", w.Name, nameRE, nameWant)
		v.componentName(field+".component", w.Component)
		v.namespace(field+".namespace", w.Namespace)
		v.content(field+".path", w.Files())
		v.content(field+".check", w.Checks())
		for j, image := range w.Images {
			v.image(fmt.Sprintf("%s.images[%d]", field, j), image)
		}
		v.deadline(field+".deadline", w.Deadline)
	}
}
