package pipeline

import (
	"context"
	"errors"
	"fmt"
)

// EveryStep binds a hook to each step.
const EveryStep = "*"

// Hook runs around a step or around the whole run. Hooks that are bound to the
// same step run in the order of Options.Hooks, before and after it.
type Hook struct {
	// Step is "stage/name", "stage", EveryStep, or empty for the whole run.
	Step string
	// Before runs when the step is about to start, with the step's context. Its
	// error fails the step; ErrSkip skips it. An error before the whole run
	// prevents every step from starting. Of a stage it runs when the first of its
	// steps is about to start, with the stage in key, and its error fails each of
	// them. May be nil.
	Before func(ctx context.Context, key Key) error
	// After runs when a step that was started has ended, with a context that is
	// not cancelled with the run's. Its error fails a step that succeeded, and is
	// joined to the error of one that did not. After the whole run, r holds the
	// run's error and a zero key. After the last step of a stage, if one was
	// started, r holds their errors; nothing starts until it returns, and after its
	// error nothing but clean-up steps. May be nil.
	After func(ctx context.Context, r Result) error
}

// checkHooks finds hooks on steps that do not exist.
func (p *Pipeline) checkHooks(hooks []Hook) error {
	var errs []error
	for _, h := range hooks {
		known := h.Step == "" || h.Step == EveryStep
		for _, n := range p.nodes {
			known = known || n.key.String() == h.Step || n.key.Stage == h.Step
		}
		if !known {
			errs = append(errs, fmt.Errorf("a hook is bound to step %q, which does not exist", h.Step))
		}
	}
	return errors.Join(errs...)
}

// on reports whether the hook is bound to a step.
func (h Hook) on(key Key) bool { return h.Step == EveryStep || h.Step == key.String() }

// before runs the hooks before a step, up to the first error.
func before(ctx context.Context, hooks []Hook, key Key) error {
	for _, h := range hooks {
		if h.Before == nil || !h.on(key) {
			continue
		}
		if err := h.Before(ctx, key); errors.Is(err, ErrSkip) {
			return ErrSkip
		} else if err != nil {
			return fmt.Errorf("hook before the step: %w", err)
		}
	}
	return nil
}

// after runs all hooks after a step.
func after(ctx context.Context, hooks []Hook, r Result) error {
	var errs []error
	for _, h := range hooks {
		if h.After == nil || !h.on(r.Key) {
			continue
		}
		if err := h.After(ctx, r); err != nil {
			errs = append(errs, fmt.Errorf("hook after the step: %w", err))
		}
	}
	return errors.Join(errs...)
}

// beforeRun runs the hooks before the whole run, up to the first error.
func beforeRun(ctx context.Context, hooks []Hook) error {
	for _, h := range hooks {
		if h.Before == nil || h.Step != "" {
			continue
		}
		if err := h.Before(ctx, Key{}); err != nil {
			return fmt.Errorf("hook before the run: %w", err)
		}
	}
	return nil
}

// afterRun runs all hooks after the whole run.
func afterRun(ctx context.Context, hooks []Hook, r Result) error {
	var errs []error
	for _, h := range hooks {
		if h.After == nil || h.Step != "" {
			continue
		}
		if err := h.After(ctx, r); err != nil {
			errs = append(errs, fmt.Errorf("hook after the run: %w", err))
		}
	}
	return errors.Join(errs...)
}
