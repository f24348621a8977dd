package incontainer

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/conductor"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/state"
	"github.com/slipway-sh/slipway/stages/step"
)

// Verify checks the earlier results of all steps of a workflow, as many at a time as the
// graph allows.
type Verify struct {
	Steps *step.Registry
	Dirs  step.Dirs
}

// Run carries out the plan in a file and writes what holds to another. A fault is
// written to screen for the conductor, too.
func (v *Verify) Run(ctx context.Context, planFile, resultFile string, screen io.Writer) (err error) {
	place := state.At(cmp.Or(v.Dirs.State, contract.StateDir), os.Getenv, nil)
	defer func() { err = tell(screen, place, err) }()
	data, err := contract.ReadParts(planFile)
	if err != nil {
		return fmt.Errorf("read the plan: %w", err)
	}
	var plan contract.Plan
	if err := json.Unmarshal(data, &plan); err != nil {
		return fmt.Errorf("decode the plan: %w", err)
	}
	found, err := v.perform(ctx, plan, screen)
	return writeJSON(resultFile, found, err)
}

// perform carries out plan and writes to screen how far it is.
func (v *Verify) perform(ctx context.Context, plan contract.Plan, screen io.Writer) (contract.Verified, error) {
	var found contract.Verified
	cfg, err := config.Load(plan.Config, config.Options{File: "the plan"})
	if err != nil {
		return found, err
	}
	release, err := platform.Load(os.DirFS(v.Dirs.Platform))
	if err != nil {
		return found, err
	}
	shown := &verifyProgress{screen: screen, running: map[string]bool{}}
	run := func(ctx context.Context, req contract.Request) contract.Result {
		return step.Perform(ctx, v.Steps, req, v.Dirs, io.Discard) // each has its log
	}
	workflow, err := stages.Named(plan.Workflow)
	if err != nil {
		return found, err
	}
	found, err = conductor.Verify(ctx, workflow, plan, cfg, release, run, shown.observe)
	if err != nil {
		return found, err
	}
	say(screen, "verify", "%d of %d earlier results hold", len(found.Steps), found.Total)
	return found, nil
}

// verifyProgress shows which earlier results are being checked.
type verifyProgress struct {
	screen  io.Writer
	hold    int
	running map[string]bool
}

func (p *verifyProgress) observe(e pipeline.Event) {
	key := e.Result.String()
	if e.Status == pipeline.Running {
		p.running[key] = true
	} else {
		delete(p.running, key)
		if e.Status == pipeline.Reused {
			p.hold++
		}
	}
	if len(p.running) > 0 {
		say(p.screen, "verify", "%d earlier results hold; looking at %s", p.hold, strings.Join(slices.Sorted(maps.Keys(p.running)), ", "))
	}
}
