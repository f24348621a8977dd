package conductor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/contract"
)

// codeUnhealthy: an application or a gate of the platform is not as it should be.
const codeUnhealthy fault.Code = "DEP-016"

// Status shows the last run and the applications as it saw them or, with live, as they
// are now, which starts the cluster. An absent deployment is a fault of class Usage, one that
// is not healthy now a fault of class Step, beside its status.
func (c *Conductor) Status(ctx context.Context, live bool) (*contract.DeploymentStatus, error) {
	s, err := c.stored(ctx)
	if err != nil {
		return nil, err
	}
	out, err := c.Records.status(s)
	if err != nil {
		return out, err
	}
	out.Elsewhere = s.Lost
	if !live || out.Elsewhere || !s.Cluster {
		return out, nil
	}
	in, err := c.live(s.Record)
	if err != nil {
		return out, err
	}
	err = c.while(ctx, func(ctx context.Context) error {
		if c.service != nil { // it may have been started for this
			if err := c.awaitPods(ctx, c.service.Service()); err != nil {
				return err
			}
		}
		var now contract.Live
		if _, err := c.runner(out.Run, nil).Run(ctx, contract.StatusStep().Spec, in, &now); err != nil {
			return err
		}
		out.Apps, out.Gates, out.Live = append(out.Apps[:0], now.Apps.Apps...), now.Gates, true
		return nil
	})
	if err == nil {
		err = unhealthy(out)
	}
	return out, err
}

// live is what to look at: gates only if the caller has the last run's release.
func (c *Conductor) live(record *report.Run) (contract.LiveInput, error) {
	in := contract.LiveInput{Components: []contract.LiveComponent{}}
	r, want := c.opts.Release, record.Platform
	if r == nil || want.Digest != c.opts.ReleaseDigest {
		if want.Digest != "" && c.opts.Warn != nil {
			c.opts.Warn(fmt.Sprintf("the gates of components are not checked: the last run was of platform release %s %s, %s, which is not the one at hand; name its directory: slipway status --live --platform DIR",
				redact.OneLine(want.Name), redact.OneLine(want.Version), redact.OneLine(want.Digest)))
		}
		return in, nil
	}
	if engine := r.Engine(); engine != nil {
		in.Engine = engine.Namespace
	}
	for _, s := range record.Steps {
		component, _ := r.Component(s.Step)
		if s.Stage != contract.StagePreOrchestrator && s.Stage != contract.StageOrchestrator || len(component.Ready) == 0 {
			continue
		}
		ready, err := json.Marshal(component.Ready)
		if err != nil {
			return in, fmt.Errorf("encode the gates of %s: %w", s.ID(), err)
		}
		in.Components = append(in.Components, contract.LiveComponent{Step: s.ID(), Ready: ready})
	}
	return in, nil
}

// unhealthy is the fault of Apps and Gates that are not as they should be; nil if all are.
func unhealthy(s *contract.DeploymentStatus) error {
	var wrong []string
	for _, a := range s.Apps {
		if !a.OK() {
			wrong = append(wrong, strings.TrimSuffix(fmt.Sprintf("app %s is %s and %s: %s", a.Name, a.Sync, a.Health, a.Cause), ": "))
		}
	}
	for _, g := range s.Gates {
		if !g.Open {
			wrong = append(wrong, fmt.Sprintf("gate %s of %s is shut: %s", g.Gate, g.Step, g.Seen))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return &fault.Fault{
		Code: codeUnhealthy, Class: fault.Step, Op: "check the platform as it is now", Err: errors.New(report.Clean(strings.Join(wrong, "\n"))),
		Fix: "wait a minute for what has just started, and check again; to revert manual changes and see why something is not healthy: slipway install, or dagger call install",
	}
}

// status is the status that the state knows, with a fault if the deployment is not there.
func (r *Records) status(s *contract.Stored) (*contract.DeploymentStatus, error) {
	const what = "show the status"
	out := contract.StatusOf(r.name, s, r.inBucket)
	switch {
	case out.State == contract.Lost:
		return out, r.lost(what, s)
	case s.Record == nil, !s.Cluster && (out.Run == "" || out.Outcome != report.Running):
		return out, r.notThere(what)
	}
	return out, nil
}
