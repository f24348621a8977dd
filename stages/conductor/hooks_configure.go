package conductor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
)

// configFileVariable names the file with the configuration to a hook around configuring.
const configFileVariable = "SLIPWAY_CONFIG_FILE"

// Configuring describes one `slipway configure`, which has no record, to the hooks around it.
type Configuring struct {
	Run     string    // its id, see report.NewID; the same before and after
	Started time.Time // when it began
	// File is the text of the configuration: the written or, before that, the existing one.
	File []byte
}

// BeforeConfigure checks that the hooks around configuring have what they need, then runs the hooks
// before it in the order of the file. It needs no provider, cluster, state or lock.
//
// After an error the caller writes nothing and does not call AfterConfigure: the hooks that always run
// afterwards have run already. Closing Options.Stop lets the current hook finish.
func (c *Conductor) BeforeConfigure(ctx context.Context, on Configuring) error {
	hooks := c.aroundConfigure(on)
	if err := MissingSecrets(hooks.hooks, c.hooks.secret); err != nil {
		return err
	}
	return hooks.before(ctx)
}

// AfterConfigure runs the hooks after configuring, in the order of the file: all if outcome is nil, which
// means that on.File was written, else those that run always. A fault of class fault.Cancelled says that
// the user gave up. It returns outcome, joined by the errors of the hooks.
func (c *Conductor) AfterConfigure(ctx context.Context, on Configuring, outcome error) error {
	return c.aroundConfigure(on).after(ctx, outcome)
}

type configureHooks struct {
	Configuring
	hooks  []config.Hook
	stop   <-chan struct{}
	runner *hookRunner
}

// aroundConfigure runs hooks that read a configuration and reach no deployment.
func (c *Conductor) aroundConfigure(on Configuring) configureHooks {
	r := &hookRunner{
		run: on.Run, deployment: c.name, workflow: config.Configure, observe: oneAtATime(c.opts.Observe),
		exec: func(ctx context.Context, h config.Hook, _ pipeline.Key, env map[string]string) (out containers.HookOutcome, err error) {
			env[configFileVariable] = containers.HookConfig
			e, err := c.hooks.execution(h, env)
			if err != nil {
				return out, err
			}
			err = inTemporary(func(dir string) (err error) {
				// As a secret it would be blanked out where the hook prints it.
				if err := os.WriteFile(filepath.Join(dir, "slipway.yaml"), on.File, 0o600); err != nil {
					return fmt.Errorf("copy the configuration: %w", err)
				}
				e.Files = map[string]*dagger.File{containers.HookConfig: c.opts.Client.Host().Directory(dir).File("slipway.yaml")}
				out, err = c.hooks.deployment.Hook(ctx, e)
				return err
			})
			return out, err
		},
	}
	return configureHooks{Configuring: on, hooks: c.opts.Config.HooksOf(config.Configure), stop: c.opts.Stop, runner: r}
}

// before runs the hooks before configuring, up to the first error.
func (c configureHooks) before(ctx context.Context) error {
	err := c.stopped(ctx)
	for _, hook := range c.runner.bind(c.hooks) {
		if hook.Before == nil || err != nil {
			continue
		}
		err = hook.Before(ctx, pipeline.Key{})
		if err == nil || ctx.Err() != nil {
			err = c.stopped(ctx)
		}
	}
	if err != nil {
		return c.after(ctx, err)
	}
	return nil
}

// stopped is the fault of configuring that was interrupted before it began; nil otherwise.
func (c configureHooks) stopped(ctx context.Context) error {
	cause := context.Cause(ctx)
	select {
	case <-c.stop:
		cause = cmp.Or(cause, pipeline.ErrStopped)
	default:
	}
	if _, coded := errors.AsType[*fault.Fault](cause); cause == nil || coded {
		return cause
	}
	return &fault.Fault{
		Code: pipeline.CodeCancelled, Class: fault.Cancelled, Op: "configure", Err: cause,
		Fix: "run the same command again: nothing was asked or written",
	}
}

func (c configureHooks) after(ctx context.Context, outcome error) error {
	whole := pipeline.Result{Status: pipeline.Succeeded, Err: outcome, Started: c.Started, Finished: time.Now()}
	if outcome != nil {
		whole.Status = pipeline.Failed
	}
	last, release := context.WithTimeout(context.WithoutCancel(ctx), hooksTimeout(c.hooks))
	defer release()
	errs := []error{outcome}
	for _, hook := range c.runner.bind(c.hooks) {
		if hook.After == nil {
			continue
		}
		if err := hook.After(last, whole); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 1 {
		return outcome
	}
	return errors.Join(errs...)
}

// recorded reports whether there is a run's record, which has the output of hooks.
func (r *hookRunner) recorded() bool { return r.workflow != config.Configure }

// configured is what a hook around configuring that failed leaves.
func configured(h config.Hook, on pipeline.Result) string {
	_, before := h.Target()
	switch {
	case before:
		return "nothing was asked or written"
	case on.Err != nil:
		return "nothing was written"
	}
	return "the configuration that was written stays"
}

// outputLines is how many lines of a hook's output its error has if no record keeps them.
const outputLines = 20

// withOutput adds the last lines of output to err, which has only the last one.
func withOutput(err error, output string) error {
	lines := lastLines(output, outputLines)
	if len(lines) < 2 {
		return err
	}
	return fmt.Errorf("%w\n  its output ends with:\n    %s", err, strings.Join(lines, "\n    "))
}
