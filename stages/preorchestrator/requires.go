package preorchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

// requiresPoll is how often the cluster is asked for what somebody else puts into it.
const requiresPoll = time.Second

// runRequires waits, until the step's time is up, for what others put into the cluster.
func runRequires(ctx context.Context, env *step.Env, _ contract.Nothing) (contract.Requirements, error) {
	r, c, err := env.Open()
	if err != nil {
		return contract.Requirements{}, err
	}
	var out contract.Requirements
	for _, q := range r.Requires {
		out.Names = append(out.Names, nameOf(q))
	}
	said := ""
	look := func(ctx context.Context) (bool, string, error) {
		missing, err := missingOf(ctx, c, r.Requires)
		seen := "waiting for " + strings.Join(missing, ", ")
		if err == nil && len(missing) > 0 && seen != said && env.Plan == nil {
			env.Progress("%s", seen)
			c.WriteProgress(ctx, env.Logger, env.Deployment, env.Run, contract.Waiting, seen)
			said = seen
		}
		return len(missing) == 0, seen, err
	}
	if env.Plan != nil {
		done, seen, err := look(ctx)
		if err == nil && !done {
			err = errors.New(seen)
		}
		return out, err
	}
	err = c.WaitFor(ctx, "what the platform requires of others", requiresPoll, look)
	if fault.ClassOf(err) == fault.Timeout {
		err = &fault.Fault{
			Code: CodeRequires, Class: fault.Timeout, Op: "wait for what the platform requires of others", Err: err,
			Fix: "put it into the cluster, then run the same command again",
		}
	}
	if err == nil && said != "" {
		c.WriteProgress(ctx, env.Logger, env.Deployment, env.Run, contract.InProgress, "installing "+r.Name+" "+r.Version)
	}
	return out, err
}

func nameOf(q platform.Requirement) string {
	if q.Secret != "" {
		return "secret " + q.Secret
	}
	return "configmap " + q.ConfigMap
}

// missingOf names what is not there, with the keys that it lacks.
func missingOf(ctx context.Context, c *kube.Client, all []platform.Requirement) ([]string, error) {
	var out []string
	for _, q := range all {
		keys, err := keysOf(ctx, c, q)
		if apierrors.IsNotFound(err) {
			out = append(out, nameOf(q))
			continue
		}
		if err != nil {
			return nil, err
		}
		lacks := slices.DeleteFunc(slices.Clone(q.Keys), func(k string) bool { return slices.Contains(keys, k) })
		if len(lacks) > 0 {
			out = append(out, fmt.Sprintf("%s (key %s)", nameOf(q), strings.Join(lacks, ", ")))
		}
	}
	return out, nil
}

// keysOf are the keys of a ConfigMap, or those of a Secret that have a value.
func keysOf(ctx context.Context, c *kube.Client, q platform.Requirement) ([]string, error) {
	namespace, name, _ := strings.Cut(cmp.Or(q.Secret, q.ConfigMap), "/")
	var out []string
	if q.Secret != "" {
		o, err := c.Kubernetes.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		for k, v := range o.Data {
			if len(v) > 0 {
				out = append(out, k)
			}
		}
		return out, nil
	}
	o, err := c.Kubernetes.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	for k := range o.Data {
		out = append(out, k)
	}
	for k := range o.BinaryData {
		out = append(out, k)
	}
	return out, nil
}
