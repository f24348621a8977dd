package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/plan"
)

// nothing is what a wait has seen that has not looked once.
const nothing = "nothing yet"

// Poll is the usual interval of waits.
const Poll = 250 * time.Millisecond

const (
	reportEvery = 10 * time.Second
	noteEvery   = time.Second // OnWait is called
	// noDeadline bounds a wait whose context has no deadline.
	noDeadline = 10 * time.Minute
	// causeLimit is how long finding the cause may take.
	causeLimit = 10 * time.Second
)

// WaitFor calls cond every interval until it is done or ctx ends; without a deadline in ctx
// it gives up after ten minutes. seen says what cond saw, for people. Errors of cond that
// are Transient or "not found" count as seen; any other ends the wait. what completes
// "waited 30s for …": "deployment gitea/gitea to be rolled out". The error is a fault of
// class Timeout with CodeWait when time ran out, and tells how long it waited and what was
// seen last. It does not contact the cluster itself, so it works on the zero Client.
func (c *Client) WaitFor(ctx context.Context, what string, interval time.Duration, cond func(ctx context.Context) (done bool, seen string, err error)) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, noDeadline)
		defer cancel()
	}
	start := time.Now()
	last, told, toldAt := nothing, "", start
	noted, notedAt, until := "", start, time.Time{}
	if c.OnWait != nil {
		until, _ = ctx.Deadline()
		defer func() {
			if noted != "" {
				c.OnWait(what, start, until, last, true)
			}
		}()
	}
	for {
		attempt, cancel := context.WithTimeout(ctx, perCall)
		done, seen, err := cond(attempt)
		cancel()
		switch {
		case done && err == nil:
			return nil
		case ended(ctx):
			// What cond says now is about its context.
		case err == nil, Transient(err), apierrors.IsNotFound(err):
			if err != nil {
				seen = err.Error()
			}
			if seen != "" {
				last = seen
			}
		default:
			return fmt.Errorf("wait for %s: %w", what, err)
		}
		if !c.Plan.Waits() {
			return plan.Later("%s; seen: %s", what, last)
		}
		if last != told && ctx.Err() == nil && time.Since(toldAt) >= reportEvery {
			c.Report("waiting for %s: %s (%s so far)", what, last, time.Since(start).Round(time.Second))
			told, toldAt = last, time.Now()
		}
		if c.OnWait != nil && last != noted && ctx.Err() == nil && time.Since(notedAt) >= noteEvery {
			noted, notedAt = last, time.Now()
			c.OnWait(what, start, until, last, false)
		}
		if !sleep(ctx, interval) {
			return waited(ctx, what, time.Since(start), last)
		}
	}
}

// WaitSuccess is WaitFor until f succeeds; any error of f counts as seen.
func (c *Client) WaitSuccess(ctx context.Context, what string, f func(context.Context) error) error {
	return c.WaitFor(ctx, what, Poll, func(ctx context.Context) (bool, string, error) {
		if err := f(ctx); err != nil {
			return false, err.Error(), nil
		}
		return true, "", nil
	})
}

// waited is the error of a wait whose context ended.
func waited(ctx context.Context, what string, long time.Duration, last string) error {
	err := fmt.Errorf("waited %s for %s; last seen: %s", long.Round(100*time.Millisecond), what, last)
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return &fault.Fault{
		Code: CodeWait, Class: fault.Timeout,
		Fix: "correct what was seen last, then run the same command again",
		Err: err,
	}
}

// WithCause completes the error of a wait by the cause that find sees in the cluster,
// and keeps its code. Looking takes ten seconds at most, also after ctx has ended.
func WithCause(ctx context.Context, err error, find func(context.Context) string) error {
	if err == nil {
		return nil
	}
	look, cancel := context.WithTimeout(context.WithoutCancel(ctx), causeLimit)
	defer cancel()
	cause := find(look)
	if cause == "" {
		return err
	}
	f, ok := errors.AsType[*fault.Fault](err)
	if !ok {
		return fmt.Errorf("%w: %s", err, cause)
	}
	with := *f
	with.Op, with.Err = "", fmt.Errorf("%w: %s", err, cause)
	return &with
}
