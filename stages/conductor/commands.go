package conductor

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/slipway-sh/slipway/containers"
)

// commands runs commands of Slipway's own in a container with the deployment's state.
// Their errors are the faults that the commands printed.
type commands struct{ deployment *containers.Deployment }

// run runs a command without a result.
func (c commands) run(ctx context.Context, args ...string) error {
	_, err := c.exec(ctx, containers.Exec{Args: args})
	return err
}

// query runs a command that writes JSON to a file, and decodes that.
func (c commands) query(ctx context.Context, args []string, file string, into any) error {
	return c.result(ctx, containers.Exec{Args: args, Result: file}, into)
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

// file runs a command that writes a file, whose content may be secret.
func (c commands) file(ctx context.Context, at string, args ...string) ([]byte, error) {
	done, err := c.exec(ctx, containers.Exec{Args: append(args, at), Result: at})
	return done.Result, err
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
