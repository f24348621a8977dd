// Package tests has the steps that try a platform: those of its tests, and those that
// deploy, check and remove the workloads of its users.
package tests

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/gate"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/render"
	"github.com/slipway-sh/slipway/stages/step"
)

// The codes of this package's faults.
const (
	// CodeFailed: a Job of a test or a workload failed, or its log could not be read.
	CodeFailed fault.Code = "TST-002"
	// CodeLate: a test did not end within its deadline.
	CodeLate fault.Code = "TST-003"
	// CodeAbsent: a workload that is to be checked is not deployed.
	CodeAbsent fault.Code = "TST-006"
	// CodeOther: the cluster does not have the release whose tests are to be run.
	CodeOther fault.Code = "TST-007"
)

// Register adds the code of the steps to r.
func Register(r *step.Registry) {
	step.Register(r, contract.TestStep(), step.Once(test))
	step.Register(r, contract.AppsDeployStep(), step.Once(deploy))
	step.Register(r, contract.AppsCheckStep(), step.Once(check))
	step.Register(r, contract.AppsDestroyStep(), step.Once(destroy))
	step.Register(r, contract.LeftoversStep(), step.Once(leftovers))
}

// trial is a test or workload that a step works on.
type trial struct {
	env     *step.Env
	client  *kube.Client
	release *platform.Release
	in      contract.TestInput
	files   platform.Component // what it is made of
	mark    mark
	within  time.Duration
}

func open(ctx context.Context, env *step.Env, in contract.TestInput) (*trial, error) {
	r, client, err := env.Open()
	if err != nil {
		return nil, err
	}
	if err := client.HideSecrets(ctx, env.Deployment, env.Redact); err != nil {
		return nil, err
	}
	return &trial{env: env, client: client, release: r, in: in}, nil
}

func test(ctx context.Context, env *step.Env, in contract.TestInput) (contract.Tested, error) {
	t, err := open(ctx, env, in)
	if err != nil {
		return contract.Tested{}, err
	}
	i := slices.IndexFunc(t.release.Tests, func(t platform.Test) bool { return t.Name == in.Name })
	if i < 0 {
		return contract.Tested{}, fmt.Errorf("platform %s %s has no test %s", t.release.Name, t.release.Version, in.Name)
	}
	of := t.release.Tests[i]
	t.files, t.mark, t.within = of.Files(), testMark(in.Name), time.Duration(of.Deadline)
	return t.run(ctx, of.Ready)
}

// run waits for gates, carries the Jobs out, and removes what was made for them. What it
// returns is about the first that went wrong.
func (t *trial) run(ctx context.Context, gates []platform.Await) (out contract.Tested, err error) {
	err = t.inTime(ctx, func(ctx context.Context) (err error) {
		if out.Gates, err = t.gates(ctx, gates); err == nil && t.files.Path != "" {
			out.Jobs, err = t.jobs(ctx)
		}
		return err
	})
	return out, err
}

// inTime does something within the deadline of the test or workload.
func (t *trial) inTime(ctx context.Context, do func(context.Context) error) error {
	limited, cancel := context.WithTimeoutCause(ctx, t.within, errDeadline)
	defer cancel()
	err := do(limited)
	if err == nil || ctx.Err() != nil || !errors.Is(context.Cause(limited), errDeadline) {
		return err
	}
	return t.late(err)
}

// errDeadline is the cause of a context that the deadline of a test has ended.
var errDeadline = errors.New("the deadline has passed")

// late is the fault of a test that did not end in time, of which err is what it was waiting
// for; err itself where that is about something else, and took long.
func (t *trial) late(err error) error {
	for _, code := range []fault.Code{CodeFailed, kube.CodeForeign, contract.CodeUnusable} {
		if errors.Is(err, &fault.Fault{Code: code}) {
			return err
		}
	}
	return &fault.Fault{
		Code: CodeLate, Class: fault.Timeout, Op: "carry out the " + t.files.Name, Err: fmt.Errorf("it has not ended within %s: %w", t.within, err),
		Fix: "correct what was seen last, or give it more time (deadline in platform.yaml), then run it again: slipway test",
	}
}

// gates waits for gates, all at the same time.
func (t *trial) gates(ctx context.Context, all []platform.Await) ([]string, error) {
	if len(all) == 0 {
		return nil, nil
	}
	engine := ""
	if c := t.release.Engine(); c != nil {
		engine = c.Namespace
	}
	names, errs := make([]string, len(all)), make([]error, len(all))
	var wg sync.WaitGroup
	for n, a := range all {
		names[n] = a.Describe()
		wg.Go(func() { errs[n] = gate.Wait(ctx, t.client, engine, a) })
	}
	t.env.Progress("waiting for %s", strings.Join(names, ", "))
	wg.Wait()
	return names, errors.Join(errs...)
}

// read are the objects of the trial's files, with namespaces, the labels by which they are
// known again, and references of images that the cluster's nodes can pull.
func (t *trial) read(ctx context.Context) ([]*unstructured.Unstructured, error) {
	objs, err := render.Manifests(ctx, t.release.Files(), nil, t.files)
	if err != nil {
		return nil, t.unusable(err)
	}
	if err := t.client.SetNamespace(ctx, objs, t.files.Namespace); err != nil {
		return nil, err
	}
	refs := map[string]string{}
	maps.Copy(refs, t.in.Rewrite)
	maps.Copy(refs, t.in.Images)
	render.SetImages(objs, refs)
	if t.in.PullSecret {
		render.AddPullSecret(objs, refs, kube.PullSecret)
	}
	for _, o := range objs {
		t.mark.put(o, t.env.Deployment)
	}
	return objs, nil
}

func (t *trial) unusable(err error) error {
	return &fault.Fault{
		Code: contract.CodeUnusable, Class: fault.Step, Op: "use what the " + t.files.Name + " is made of", Err: err,
		Fix: "correct the files of the platform release, then run it again: slipway test",
	}
}
