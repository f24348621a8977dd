package deployment

import (
	"github.com/slipway-sh/slipway/pipeline/progress"
	"github.com/slipway-sh/slipway/stages/conductor"
	"github.com/slipway-sh/slipway/stages/contract"
)

// watch shows a run's steps on screen.
func watch(screen *progress.Screen, opts *conductor.Options) {
	opts.Begin, opts.Observe = screen.Begin, screen.Observe
	screen.Sparsely(contract.CheckEarlierSpec().Key)
}
