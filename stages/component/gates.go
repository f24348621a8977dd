package component

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/slipway-sh/slipway/stages/internal/gate"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// gates waits for the component's gates, all at the same time. The error is about every
// one that stays shut.
func (i *installer) gates(ctx context.Context) ([]string, error) {
	all := i.component.Ready
	if len(all) == 0 {
		return nil, nil
	}
	names, errs := make([]string, len(all)), make([]error, len(all))
	var wg sync.WaitGroup
	for n, a := range all {
		names[n] = a.Describe()
		wg.Go(func() { errs[n] = gate.Wait(ctx, i.client, a) })
	}
	waiting := "waiting for " + strings.Join(names, ", ")
	i.env.Progress("%s", waiting)
	i.client.Tell(ctx, i.env.Logger, i.env.Deployment, i.env.Run, kube.Waiting, "component "+i.component.Name+": "+waiting)
	wg.Wait()
	err := errors.Join(errs...)
	if err == nil {
		i.client.Tell(ctx, i.env.Logger, i.env.Deployment, i.env.Run, kube.InProgress, "component "+i.component.Name+" is ready")
	}
	return names, err
}
