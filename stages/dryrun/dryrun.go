// Package dryrun lets the code of a step look whether it would change anything:
// with a context made here, what would write fails with ErrWouldChange instead.
package dryrun

import (
	"context"
	"errors"
	"fmt"
)

// ErrWouldChange says that something is not as it should be, and that only a run
// that may write can correct it.
var ErrWouldChange = errors.New("it would be changed")

type key struct{}

// Context is ctx in which nothing may be written.
func Context(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

// Allow is ctx for a request that changes nothing that anybody relies on, such
// as asking a controller to look again.
func Allow(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, false) }

// On tells whether ctx forbids writing.
func On(ctx context.Context) bool {
	on, _ := ctx.Value(key{}).(bool)
	return on
}

// Check is to be called before something is written: in a dry run it returns an
// ErrWouldChange that says what.
func Check(ctx context.Context, format string, args ...any) error {
	if !On(ctx) {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrWouldChange)
}
