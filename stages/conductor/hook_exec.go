package conductor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/redact"
)

type hookExecutor struct {
	client     *dagger.Client
	deployment *containers.Deployment
	cluster    *containers.Cluster // nil unless the provider's cluster is a service
	records    *Records
	find       func(config.SecretRef) (*dagger.Secret, error) // see Options.Secret
	online     func(pipeline.Key) bool                        // reports whether a step works on the cluster
}

// MissingSecrets reports the secrets that hooks need and find does not find: every one, but
// for those of optional hooks.
func MissingSecrets(hooks []config.Hook, find func(config.SecretRef) (*dagger.Secret, error)) error {
	var errs []error
	for _, h := range hooks {
		if h.Optional {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(h.Secrets)) {
			if _, err := find(h.Secrets[name]); err != nil {
				errs = append(errs, &fault.Fault{
					Code: config.CodeNoSecret, Class: fault.Usage, Op: fmt.Sprintf("find the secret %s of the hook %s", name, h.Name), Err: err,
					Fix: "put it where the configuration says (hooks: secrets), then run the same command again",
				})
			}
		}
	}
	return errors.Join(errs...)
}

// secret is what the configuration refers to.
func (c hookExecutor) secret(ref config.SecretRef) (*dagger.Secret, error) {
	if c.find == nil {
		return nil, fmt.Errorf("%s is not readable here", ref)
	}
	return c.find(ref)
}

// leastSecret is the length in bytes of the shortest value of a hook's variables that is
// masked: without a shorter one, the hook's output could not be read.
const leastSecret = 4

// execution describes how h runs, with env from Slipway and without a cluster. Of its own
// variables, those that look like secrets reach the engine as such.
func (c hookExecutor) execution(h config.Hook, env map[string]string) (containers.Hook, error) {
	e := containers.Hook{
		Image: h.Image, Args: h.Command(), Timeout: time.Duration(h.Timeout),
		Env: map[string]string{}, Secrets: map[string]*dagger.Secret{},
	}
	maps.Copy(e.Env, env)
	for name, value := range h.Env {
		if len(value) < leastSecret || !redact.LooksSecret(name, value) {
			e.Env[name] = value
			continue
		}
		e.Secrets[name] = c.client.SetSecret("slipway-"+rand.Text(), value)
	}
	var err error
	for name, ref := range h.Secrets {
		if e.Secrets[name], err = c.secret(ref); err != nil {
			return e, fmt.Errorf("find the secret %s: %w", name, err)
		}
	}
	return e, nil
}

func (c hookExecutor) exec(ctx context.Context, h config.Hook, on pipeline.Key, env map[string]string) (containers.HookOutcome, error) {
	e, err := c.execution(h, env)
	if err != nil {
		return containers.HookOutcome{}, err
	}
	if h.Kubeconfig && c.reachable(on) {
		if c.cluster != nil {
			e.Cluster = c.cluster.Service()
		}
		if e.Kubeconfig, err = c.kubeconfig(ctx); err != nil {
			return containers.HookOutcome{}, err
		}
		_, plain := h.Env["KUBECONFIG"]
		_, secret := h.Secrets["KUBECONFIG"]
		if e.Kubeconfig != nil && !plain && !secret {
			e.Env["KUBECONFIG"] = containers.HookKubeconfig
		}
	}
	return c.deployment.Hook(ctx, e)
}

// reachable reports whether a hook that asks for the cluster gets access to it: on a step as
// that does, and without its name, on a stage or the workflow, while the cluster is there.
func (c hookExecutor) reachable(on pipeline.Key) bool {
	if on.Name == "" {
		return c.cluster == nil || c.cluster.Running()
	}
	return c.online != nil && c.online(on)
}

// kubeconfig is the administrator's access to the cluster; nil while there is none.
func (c hookExecutor) kubeconfig(ctx context.Context) (*dagger.Secret, error) {
	text, err := c.records.kubeconfig(ctx)
	if err != nil || len(text) == 0 {
		return nil, err
	}
	return c.client.SetSecret("slipway-kubeconfig-"+c.records.name, string(text)), nil
}
