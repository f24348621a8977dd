package conductor

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/stages/contract"
)

// commands runs commands of Slipway's own in a container with the deployment's state.
// Their errors are the faults that the commands printed.
type commands struct{ deployment *containers.Deployment }

// ask runs an action of `slipway state` and decodes its answer into out, unless that is nil.
func (c commands) ask(ctx context.Context, action string, req contract.StateRequest, out any) error {
	return c.askIn(ctx, containers.Exec{}, action, req, out)
}

// askIn is ask in a container with what e says.
func (c commands) askIn(ctx context.Context, e containers.Exec, action string, req contract.StateRequest, out any) error {
	var err error
	if e.Args, err = stateCommand(action, req); err != nil {
		return err
	}
	if out != nil {
		e.Result = contract.ResultFile
		return c.result(ctx, e, out)
	}
	_, err = c.exec(ctx, e)
	return err
}

func stateCommand(action string, req contract.StateRequest) ([]string, error) {
	text, err := json.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	return []string{"slipway", "state", action, string(text)}, nil
}

// result runs e, of which the result is JSON, and decodes that.
func (c commands) result(ctx context.Context, e containers.Exec, into any) error {
	done, err := c.exec(ctx, e)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(done.Result, into); err != nil {
		return fmt.Errorf("decode the result of %v: %w", e.Args, err)
	}
	return nil
}

func (c commands) exec(ctx context.Context, e containers.Exec) (containers.Outcome, error) {
	done, err := c.deployment.Exec(ctx, e)
	if err != nil {
		return done, err
	}
	if err := ended(e.Args, done); err != nil || e.Result == "" || done.Result != nil {
		return done, err
	}
	return done, fmt.Errorf("run %v: no result: %w: %s", e.Args, done.NoResult, containers.Complaint(done.Stderr))
}

// ended is the error of a command of Slipway's that did not end well.
func ended(args []string, done containers.Outcome) error {
	if done.ExitCode == 0 {
		return nil
	}
	if f := containers.ParseFault(done.Stderr); f != nil {
		return f
	}
	return fmt.Errorf("run %v: exit status %d: %s", args, done.ExitCode, containers.Complaint(done.Stderr))
}
