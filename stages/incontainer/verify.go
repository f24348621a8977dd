package incontainer

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/stages/conductor"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/step"
)

// verify checks the earlier results of all steps, as many at a time as the graph allows, and writes
// to screen how far it is.
func (p *Planner) verify(ctx context.Context, req contract.PlanRequest, screen io.Writer) (contract.Verified, error) {
	in, err := p.load(req)
	if err != nil {
		return contract.Verified{}, err
	}
	shown := &verifyProgress{screen: screen, running: map[string]bool{}}
	found, err := conductor.Verify(ctx, in.workflow, req, in.cfg, in.release, func(ctx context.Context, req contract.Request) contract.Result {
		shown.note(req.ID(), pipeline.Running)
		result := step.Perform(ctx, p.Steps, req, p.Dirs, "", io.Discard) // each has its log
		shown.note(req.ID(), result.Status)
		return result
	})
	if err == nil {
		say(screen, "verify", "%d earlier results hold", len(found.Steps))
	}
	return found, err
}

// sayEvery is the least time between two lines of progress: checks are many and short.
const sayEvery = 5 * time.Second

// verifyProgress shows which earlier results are being checked.
type verifyProgress struct {
	screen io.Writer

	mu      sync.Mutex
	said    time.Time // when note said something last
	hold    int
	running map[string]bool
}

func (p *verifyProgress) note(step string, status pipeline.Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch status {
	case pipeline.Running:
		p.running[step] = true
	case pipeline.Reused:
		p.hold++
		fallthrough
	default:
		delete(p.running, step)
	}
	if len(p.running) > 0 && time.Since(p.said) >= sayEvery {
		p.said = time.Now()
		say(p.screen, "verify", "%d earlier results hold; looking at %s", p.hold, strings.Join(slices.Sorted(maps.Keys(p.running)), ", "))
	}
}
