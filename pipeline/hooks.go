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
	// joined to the error of a step that failed. After the whole run, r holds the
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

// on reports whether the hook runs around a step, a stage (a key without a name) or the
// whole run (the zero key).
func (h Hook) on(key Key) bool {
	switch {
	case key == Key{}:
		return h.Step == ""
	case key.Name == "":
		return h.Step == key.Stage
	}
	return h.Step == EveryStep || h.Step == key.String()
}

// place describes in errors what hooks run around.
func place(key Key) string {
	switch {
	case key == Key{}:
		return "the run"
	case key.Name == "":
		return "the stage " + key.Stage
	}
	return "the step"
}

// before runs the hooks before a step, a stage or the whole run, up to the first error.
func before(ctx context.Context, hooks []Hook, key Key) error {
	for _, h := range hooks {
		if h.Before == nil || !h.on(key) {
			continue
		}
		err := h.Before(ctx, key)
		if errors.Is(err, ErrSkip) && key != (Key{}) {
			return ErrSkip
		}
		if err != nil {
			return fmt.Errorf("hook before %s: %w", place(key), err)
		}
	}
	return nil
}

// after runs all hooks after a step, a stage or the whole run.
func after(ctx context.Context, hooks []Hook, r Result) error {
	var errs []error
	for _, h := range hooks {
		if h.After == nil || !h.on(r.Key) {
			continue
		}
		if err := h.After(ctx, r); err != nil {
			errs = append(errs, fmt.Errorf("hook after %s: %w", place(r.Key), err))
		}
	}
	return errors.Join(errs...)
}
