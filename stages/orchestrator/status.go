package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/diagnosis"
	"github.com/slipway-sh/slipway/stages/internal/gate"
	"github.com/slipway-sh/slipway/stages/internal/installed"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
	"github.com/slipway-sh/slipway/stages/step"
)

// runStatus reads the Applications in Argo CD's namespace, with the cause for each unhealthy one, and
// looks at the gates of the components that the steps have installed. It does not wait.
func runStatus(ctx context.Context, env *step.Env, in contract.LiveInput) (contract.Live, error) {
	c, err := env.Connect()
	if err != nil {
		return contract.Live{}, err
	}
	apps, err := statusOfApps(ctx, env, c)
	if err != nil {
		return contract.Live{}, err
	}
	gates, err := statusOfGates(ctx, env, c, in)
	return contract.Live{Apps: apps, Gates: gates}, err
}

// statusOfGates looks once at each gate of the components whose steps have begun, whether
// these have succeeded or not.
func statusOfGates(ctx context.Context, env *step.Env, c *kube.Client, in contract.LiveInput) ([]contract.Gate, error) {
	s, err := env.Store(ctx)
	if err != nil {
		return nil, err
	}
	ledger := journal.On(s, env.Deployment)
	out := []contract.Gate{}
	for _, component := range in.Components {
		id := component.Step
		stage, name, _ := strings.Cut(id, "/")
		_, err := ledger.Last(ctx, stage, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var ready []platform.Await
		if err == nil {
			err = json.Unmarshal(component.Ready, &ready)
		}
		if err != nil {
			return nil, fmt.Errorf("read the gates of %s: %w", id, err)
		}
		for _, a := range ready {
			open, seen, err := gate.Look(ctx, c, in.Engine, a)
			if err != nil {
				seen = err.Error()
			}
			out = append(out, contract.Gate{Step: id, Gate: a.Describe(), Open: open && err == nil, Seen: env.Clean(readiness.OneLine(seen))})
		}
	}
	return out, nil
}

func statusOfApps(ctx context.Context, env *step.Env, c *kube.Client) (contract.Apps, error) {
	out := contract.Apps{Apps: []contract.App{}}
	record, _, err := installed.ReadRemoval(ctx, c, env.Deployment)
	if err != nil || record.Argo == "" { // the platform has no Argo CD
		return out, err
	}
	all, err := argo.List(ctx, c, record.Argo)
	if err != nil {
		return contract.Apps{}, err
	}
	var facts *diagnosis.Facts // read when they are needed
	for _, a := range all {
		if isRoot(a) {
			continue
		}
		app := appOf(a)
		if a.Waiting("") != "" {
			if facts == nil {
				facts = gatherFacts(ctx, c, env, all, "")
			}
			app.Cause, _ = facts.App(a.Name)
		}
		out.Apps = append(out.Apps, app)
	}
	sortApps(out.Apps)
	return out, nil
}

func isRoot(a argo.Application) bool {
	return a.Name == RootApp && kube.DeploymentOf(a.Labels) != ""
}
