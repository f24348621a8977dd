package component

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/gate"
)

// gates waits for the component's gates, all at the same time. The error is about every
// one that stays shut.
func (i *installer) gates(ctx context.Context) ([]string, error) {
	all := i.component.Ready
	if len(all) == 0 {
		return nil, nil
	}
	names, errs := make([]string, len(all)), make([]error, len(all))
	for n, a := range all {
		names[n] = a.Describe()
	}
	waiting := "waiting for " + strings.Join(names, ", ")
	i.env.Progress("%s", waiting)
	i.tell(ctx, contract.Waiting, ": "+waiting)
	i.client.OnWait = func(what string, since, until time.Time, seen string, over bool) {
		i.env.Waits(what, since, until, seen, over)
		if !over {
			i.tell(ctx, contract.Waiting, fmt.Sprintf(": waiting for %s since %s, until %s: %s", what, clock(since), clock(until), seen))
		}
	}
	var wg sync.WaitGroup
	for n, a := range all {
		wg.Go(func() { errs[n] = gate.Wait(ctx, i.client, i.engine(), a) })
	}
	wg.Wait()
	err := errors.Join(errs...)
	if err == nil {
		i.tell(ctx, contract.InProgress, " is ready")
	}
	return names, err
}

// engine is the namespace of Argo CD; empty if the release has none.
func (i *installer) engine() string {
	if c := i.release.Engine(); c != nil {
		return c.Namespace
	}
	return ""
}

// tell shows in the cluster how far the component is.
func (i *installer) tell(ctx context.Context, s contract.Progress, message string) {
	i.client.WriteProgress(ctx, i.env.Logger, i.env.Deployment, i.env.Run, s, "component "+i.component.Name+message)
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05Z") }
