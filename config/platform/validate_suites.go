package platform

import "fmt"

// tests checks the tests and the workloads.
func (v *validator) tests() {
	for i, t := range v.r.Tests {
		field := fmt.Sprintf("tests[%d]", i)
		if t.Path == "" && len(t.Ready) == 0 {
			v.Add(field, "a test that does nothing", "path, ready, or both")
		} else if t.Path != "" || t.Namespace != "" {
			if t.Namespace == "" {
				v.namespace(field+".namespace", "")
			}
			v.content(field+".path", t.Files())
		}
		v.gates(field, t.Ready)
	}
	for i, w := range v.r.Workloads {
		field := fmt.Sprintf("workloads[%d]", i)
		v.content(field+".path", w.Files())
		v.content(field+".check", w.Checks())
	}
}
