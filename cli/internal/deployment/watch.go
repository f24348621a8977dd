package deployment

import (
	"fmt"
	"path/filepath"

	"github.com/slipway-sh/slipway/config/folder"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/progress"
	"github.com/slipway-sh/slipway/stages/conductor"
	"github.com/slipway-sh/slipway/stages/contract"
)

// watch shows a run's steps on screen. What it returns is called when the run has
// ended: it writes down how long the steps took.
//
// The durations are a file in the user's cache, one for each deployment: it is
// there before the first step, while the record of the last run, on the state
// volume, is a container's start away. Only a live display shows an estimate, and
// only where there is one is there a user with a cache.
func watch(screen *progress.Screen, opts *conductor.Options) (end func()) {
	opts.Begin = func(graph []pipeline.Node) { screen.Begin(graph, opts.Parallel) }
	opts.Observe = screen.Observe
	screen.Sparsely(contract.CheckEarlierSpec().Key)
	if !screen.Live() {
		return func() {}
	}
	dir, err := folder.Cache()
	if err != nil {
		fmt.Fprintf(screen, "slipway: no estimate of the time that is left: %v\n", err)
		return func() {}
	}
	history, err := progress.ReadHistory(filepath.Join(dir, "durations", opts.Config.Global.Name+".json"))
	if err != nil {
		fmt.Fprintf(screen, "slipway: no estimate of the time that is left: %v\n", err)
	}
	opts.Begin = func(graph []pipeline.Node) {
		screen.Begin(graph, opts.Parallel)
		screen.Estimate(history.Durations())
	}
	ran := false
	opts.Observe = func(e pipeline.Event) {
		ran = true
		if history.Observe(e) {
			screen.Estimate(history.Durations())
		}
		screen.Observe(e)
	}
	return func() {
		if !ran {
			return
		}
		if err := history.Write(); err != nil {
			fmt.Fprintf(screen, "slipway: %v\n", err)
		}
	}
}
