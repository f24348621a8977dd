package tests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
	"github.com/slipway-sh/slipway/stages/internal/render"
	"github.com/slipway-sh/slipway/stages/step"
)

func openWorkload(ctx context.Context, env *step.Env, in contract.TestInput) (*trial, platform.Workload, error) {
	t, err := open(ctx, env, in)
	if err != nil {
		return nil, platform.Workload{}, err
	}
	i := slices.IndexFunc(t.release.Workloads, func(w platform.Workload) bool { return w.Name == in.Name })
	if i < 0 {
		return nil, platform.Workload{}, fmt.Errorf("platform %s %s has no workload %s", t.release.Name, t.release.Version, in.Name)
	}
	of := t.release.Workloads[i]
	t.files, t.mark, t.within = of.Files(), workloadMark(in.Name), time.Duration(of.Deadline)
	return t, of, nil
}

// deploy applies a workload, and waits until its pods are ready and its Jobs have
// completed. A Job that is there is not made again, unless it has failed.
func deploy(ctx context.Context, env *step.Env, in contract.TestInput) (out contract.Workload, err error) {
	t, _, err := openWorkload(ctx, env, in)
	if err != nil {
		return out, err
	}
	err = t.inTime(ctx, func(ctx context.Context) (err error) {
		out, err = t.deploy(ctx)
		return err
	})
	return out, err
}

func (t *trial) deploy(ctx context.Context) (contract.Workload, error) {
	var out contract.Workload
	objs, err := t.read(ctx)
	if err != nil {
		return out, err
	}
	if len(objs) == 0 {
		return out, t.unusable(fmt.Errorf("%s holds no object", t.files.Path))
	}
	members, err := t.client.Members(ctx, t.mark.list())
	if err != nil {
		return out, err
	}
	var fresh []*unstructured.Unstructured
	for _, o := range objs {
		m := kube.MemberOf(o)
		live, err := t.client.Live(ctx, m)
		switch {
		case err != nil:
			return out, err
		case live == nil && o.GetKind() == "Job":
			fresh = append(fresh, o)
		case live != nil && !t.mark.on(live, t.env.Deployment):
			return out, t.theirs(o)
		case live != nil && o.GetKind() == "Job" && failed(live):
			gone := remover{t.client, t.env, t.mark}
			if _, err := gone.delete(ctx, m); err != nil {
				return out, err
			}
			if err := gone.gone(ctx, m); err != nil {
				return out, err
			}
			fresh = append(fresh, o)
		}
		if !slices.ContainsFunc(members, m.Same) {
			members = append(members, m)
		}
		out.Objects = append(out.Objects, m.String())
	}
	if err := t.client.KeepMembers(ctx, t.env.Deployment, t.mark.list(), members); err != nil {
		return out, err
	}
	jobs, rest := split(objs, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Job" })
	applied, err := t.client.Apply(ctx, rest, kube.ApplyOptions{})
	if err != nil {
		return out, t.refused(ctx, err)
	}
	t.env.Progress("%s", kube.Count(applied))
	if out.Workloads, err = readiness.WaitRollouts(ctx, t.client, rest); err != nil {
		return out, err
	}
	if len(jobs) == 0 {
		return out, nil
	}
	if err := t.make(ctx, fresh); err != nil {
		return out, err
	}
	if err := render.HideSecrets(ctx, t.client, jobs, t.env.Redact); err != nil {
		return out, err
	}
	_, err = t.await(ctx, jobs, false)
	return out, err
}

func failed(o *unstructured.Unstructured) bool {
	var j batchv1.Job
	if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &j) != nil {
		return false
	}
	_, why := readiness.JobEnd(&j)
	return why != ""
}

// check carries out the Jobs that look at a workload.
func check(ctx context.Context, env *step.Env, in contract.TestInput) (contract.Tested, error) {
	t, of, err := openWorkload(ctx, env, in)
	if err != nil {
		return contract.Tested{}, err
	}
	there, err := t.client.Members(ctx, t.mark.list())
	if err != nil {
		return contract.Tested{}, err
	}
	if len(there) == 0 {
		return contract.Tested{}, &fault.Fault{
			Code: CodeAbsent, Class: fault.Step, Op: "check the " + t.files.Name, Err: errors.New("it is not deployed"),
			Fix: "deploy it: slipway test " + platform.DeployApps,
		}
	}
	t.files, t.mark = of.Checks(), checkMark(in.Name)
	return t.run(ctx, nil)
}

func destroy(ctx context.Context, env *step.Env, in contract.TestInput) (out contract.Workload, err error) {
	t, _, err := openWorkload(ctx, env, in)
	if err != nil {
		return out, err
	}
	err = t.inTime(ctx, func(ctx context.Context) (err error) {
		out.Objects, err = remover{t.client, t.env, t.mark}.remove(ctx)
		return err
	})
	return out, err
}
