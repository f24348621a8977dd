package all

import (
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/orchestrator"
	"github.com/slipway-sh/slipway/stages/survey"
)

// Images are the images that a platform release runs: see survey.Images.
func Images(r *platform.Release, s contract.Survey) ([]contract.ImageUse, []contract.Unread, error) {
	return survey.Images(r, s, func(r *platform.Release, deployment string, in contract.TreeValues) (survey.Tree, error) {
		files, err := orchestrator.Tree(r, deployment, in)
		return survey.Tree{Files: files, Chart: orchestrator.RootChart, Values: orchestrator.RootValues}, err
	})
}
