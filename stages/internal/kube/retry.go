package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slipway-sh/slipway/fault"
)

const (
	retryFirst   = 250 * time.Millisecond
	retryLongest = 2 * time.Second
	perCall      = 30 * time.Second // one attempt
)

// Transient reports whether a retry may help: the API server is unreachable, starting,
// overloaded, or has lost its etcd.
func Transient(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	var s apierrors.APIStatus // an interface without Error, which AsType does not take
	if errors.As(err, &s) {
		code := s.Status().Code
		return code == http.StatusTooManyRequests || code >= 500 && code != http.StatusNotImplemented && !untyped(err)
	}
	for _, known := range []error{
		syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, syscall.EHOSTUNREACH, syscall.ENETUNREACH,
		syscall.ETIMEDOUT, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, context.DeadlineExceeded,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	if n, ok := errors.AsType[net.Error](err); ok && n.Timeout() {
		return true
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return true // a service's name is known only while it runs
	}
	// net/http and the HTTP/2 client have no types for these.
	return slices.ContainsFunc([]string{"http2: client connection lost", "http2: server sent GOAWAY", "server closed idle connection", "TLS handshake timeout"},
		func(part string) bool { return strings.Contains(err.Error(), part) })
}

// untyped tells whether the API server says "internal error" for an object whose
// fields have the wrong types, which does not go away.
func untyped(err error) bool {
	return err != nil && strings.Contains(err.Error(), "failed to create typed patch object")
}

// Retry calls f until it succeeds, ctx ends, it fails with an error that is not
// Transient, or it has failed for two minutes on end. what says in the error
// what was attempted: "apply Deployment argocd/repo-server". The error of a time
// that ran out is a fault of class Timeout with CodeUnreachable. Where ctx has ended before, f
// is not called, and the error is the cause of that.
func (c *Client) Retry(ctx context.Context, what string, f func(ctx context.Context) error) error {
	if ended(ctx) {
		return fmt.Errorf("%s: %w", what, context.Cause(ctx))
	}
	delay, begun := retryFirst, time.Now()
	var since time.Time
	var seen error // the last failure that is not ctx's own end
	for {
		attempt, cancel := context.WithTimeout(ctx, perCall)
		err := f(attempt)
		cancel()
		if err == nil {
			if !since.IsZero() {
				c.Report("%s answers again after %s", c.endpoint(), time.Since(since).Round(time.Second))
			}
			return nil
		}
		if ended(ctx) {
			return c.outOfTime(ctx, what, time.Since(begun), cmp.Or(seen, err))
		}
		seen = err
		if !Transient(err) {
			return fmt.Errorf("%s: %w", what, err)
		}
		if since.IsZero() {
			since = time.Now()
			c.Report("%s: %v; trying again", what, err)
		}
		if away := time.Since(since); away > c.outage {
			return unreachable(what, fmt.Errorf("%s did not answer for %s; last seen: %w", c.endpoint(), away.Round(time.Second), err))
		}
		if !sleep(ctx, delay) {
			return c.outOfTime(ctx, what, time.Since(begun), err)
		}
		delay = min(2*delay, retryLongest)
	}
}

// Retry is Client.Retry for a call that returns something.
func Retry[T any](ctx context.Context, c *Client, what string, f func(ctx context.Context) (T, error)) (out T, err error) {
	err = c.Retry(ctx, what, func(ctx context.Context) (err error) {
		out, err = f(ctx)
		return err
	})
	return out, err
}

// IgnoreNotFound is err unless it says that an object is not there.
func IgnoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (c *Client) endpoint() string {
	if c.Config == nil {
		return "the API server"
	}
	return c.Config.Host
}

func (c *Client) outOfTime(ctx context.Context, what string, long time.Duration, last error) error {
	err := fmt.Errorf("waited %s for %s: %w; last seen: %w", long.Round(100*time.Millisecond), c.endpoint(), context.Cause(ctx), last)
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", what, err)
	}
	return unreachable(what, err)
}

func unreachable(what string, err error) error {
	return &fault.Fault{
		Code: CodeUnreachable, Class: fault.Timeout, Op: what,
		Fix: "look at the cluster: slipway status --live; then run the same command again",
		Err: err,
	}
}

// sleep waits for d and tells whether ctx was still alive then.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// ended reports whether ctx has ended or its deadline has passed: the error of a call is
// then about its context.
func ended(ctx context.Context) bool {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		<-ctx.Done()
	}
	return ctx.Err() != nil
}
