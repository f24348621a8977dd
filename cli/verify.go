package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/stages/conductor"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/step"
)

// verifyCommand is `slipway verify`, the container of infrastructure/verify: it
// looks at the earlier results of all steps of an install, with as many at a time
// as the graph allows.
func verifyCommand(set *pflag.FlagSet) func(context.Context, streams, []string) error {
	var dirs step.Dirs
	set.StringVar(&dirs.State, "root", contract.StateDir, "the state volume")
	set.StringVar(&dirs.Platform, "platform", contract.PlatformDir, "the platform release")
	return func(ctx context.Context, io streams, args []string) (err error) {
		defer func() { tellFault(io.err, err) }()
		if len(args) != 2 {
			return errUsage{errors.New("give: PLAN RESULT, two files")}
		}
		data, err := os.ReadFile(args[0])
		if err != nil {
			return fmt.Errorf("read the plan: %w", err)
		}
		var plan contract.Plan
		if err := json.Unmarshal(data, &plan); err != nil {
			return fmt.Errorf("decode the plan: %w", err)
		}
		found, err := verify(ctx, plan, dirs, io.err)
		if err != nil {
			return err
		}
		text, err := json.Marshal(found)
		if err != nil {
			return fmt.Errorf("encode the result: %w", err)
		}
		return os.WriteFile(args[1], text, 0o644)
	}
}

// verify carries out plan and tells screen how far it is.
func verify(ctx context.Context, plan contract.Plan, dirs step.Dirs, screen io.Writer) (contract.Verified, error) {
	var found contract.Verified
	providers := providerRegistry()
	cfg, err := config.Load(plan.Config, config.Options{File: "the plan", Providers: providers.Names(), Section: providers.Validate})
	if err != nil {
		return found, err
	}
	provider, err := providers.Get(cfg.Provider)
	if err != nil {
		return found, err
	}
	release, err := platform.Load(os.DirFS(dirs.Platform))
	if err != nil {
		return found, err
	}
	registry := stepRegistry()
	tell := &looker{screen: screen, running: map[string]bool{}}
	run := func(ctx context.Context, req contract.Request) contract.Result {
		return step.Perform(ctx, registry, req, dirs, io.Discard) // each has its log
	}
	found, err = conductor.Verify(ctx, plan, cfg, provider, release, run, tell.observe)
	if err != nil {
		return found, err
	}
	tell.say("%d of %d earlier results hold", len(found.Steps), found.Total)
	return found, nil
}

// looker tells which earlier results are being looked at.
type looker struct {
	screen  io.Writer
	hold    int
	running map[string]bool
}

func (l *looker) observe(e pipeline.Event) {
	key := e.Result.String()
	if e.Status == pipeline.Running {
		l.running[key] = true
	} else {
		delete(l.running, key)
		if e.Status == pipeline.Reused {
			l.hold++
		}
	}
	if len(l.running) > 0 {
		l.say("%d earlier results hold; looking at %s", l.hold, strings.Join(slices.Sorted(maps.Keys(l.running)), ", "))
	}
}

func (l *looker) say(format string, args ...any) {
	fmt.Fprintf(l.screen, "slipway: infrastructure/verify: "+format+"\n", args...)
}
