package all

import (
	"fmt"
	"slices"

	"github.com/slipway-sh/slipway/config/document"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
)

// phases are the steps of a release's phases that Slipway does not have.
func phases(r *platform.Release) (unknown []contract.Unread) {
	known := append(All(nil).Names(), contract.NodeKey().String(), contract.NodeRemoveKey().String(), contract.CheckEarlierSpec().String())
	for _, d := range r.Data {
		known = append(known, contract.BackupDataKey(d.Name).String())
	}
	for i, p := range r.Phases {
		for j, name := range p.Steps {
			if slices.Contains(known, name) {
				continue
			}
			err := fmt.Errorf("%s is no step of Slipway's own", name)
			if meant := document.Nearest(name, known); meant != "" {
				err = fmt.Errorf("%w; did you mean %s?", err, meant)
			}
			unknown = append(unknown, contract.Unread{Component: "the phases", File: platform.File, Line: r.Line(fmt.Sprintf("phases[%d].steps[%d]", i, j)), Err: err})
		}
	}
	return unknown
}
