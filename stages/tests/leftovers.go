package tests

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/installed"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
	"github.com/slipway-sh/slipway/stages/step"
)

// leftovers checks that the cluster has the release whose tests are to run, waits until pods of a stopped
// cluster run again, and removes what killed tests have left.
func leftovers(ctx context.Context, env *step.Env, in contract.LeftoversInput) (contract.Leftovers, error) {
	var out contract.Leftovers
	client, err := env.Connect()
	if err != nil {
		return out, err
	}
	if in.Version != "" {
		if err := sameRelease(ctx, env, client, in); err != nil {
			return out, err
		}
	}
	readiness.AwaitPods(ctx, client, in.Pods)
	lists, err := client.List(ctx, core("secrets"), kube.SystemNamespace, kube.DeploymentLabel+"="+env.Deployment)
	if err != nil {
		return out, err
	}
	for _, l := range lists {
		for _, of := range []func(string) mark{testMark, checkMark} {
			name, is := strings.CutSuffix(l.GetName(), of("").list())
			if !is || name == "" || !kube.WroteTo(&l) {
				continue
			}
			removed, err := remover{client, env, of(name)}.remove(ctx)
			if out.Removed = append(out.Removed, removed...); err != nil {
				return out, err
			}
		}
	}
	if len(out.Removed) > 0 {
		env.Progress("removed what tests had left: %s", strings.Join(out.Removed, ", "))
	}
	return out, nil
}

// sameRelease returns a fault unless the cluster has the deployment, with the release.
func sameRelease(ctx context.Context, env *step.Env, client *kube.Client, in contract.LeftoversInput) error {
	has, err := installed.Read(ctx, client)
	if err != nil {
		return err
	}
	system, err := client.Namespace(ctx, kube.SystemNamespace)
	if err != nil {
		return err
	}
	f := &fault.Fault{
		Code: CodeOther, Class: fault.Preflight, Op: fmt.Sprintf("test release %s of %s", in.Version, in.Platform),
		Fix: "complete the installation: slipway install, or slipway upgrade; or name the installed release: --platform DIR",
	}
	switch {
	case system == nil || kube.DeploymentOf(system.Labels) != env.Deployment:
		f.Err = fmt.Errorf("the cluster does not have deployment %s", env.Deployment)
	case has.Rollback != "":
		f.Err = fmt.Errorf("the rollback from %s has begun and is not finished", cmp.Or(has.Toward, has.Version))
		f.Fix = "bring it to its end: slipway rollback --backup " + fault.Quote(has.Rollback)
	case has.Toward != "" && has.Version != "":
		f.Err = fmt.Errorf("the upgrade from %s to %s has begun and is not finished", has.Version, has.Toward)
	case has.Platform != in.Platform || has.Version != in.Version:
		f.Err = fmt.Errorf("the cluster has release %s of %s", cmp.Or(has.Version, "none"), cmp.Or(has.Platform, "no platform"))
	default:
		return nil
	}
	return f
}
