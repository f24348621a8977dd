// Package dryrun lets the code of a step find out whether it would change anything: with
// a context from this package, writes fail with ErrWouldChange instead.
package dryrun

import (
	"context"
	"errors"
	"fmt"
)

// ErrWouldChange means that something is not in its desired state and that correcting
// it requires a run that may write.
var ErrWouldChange = errors.New("it would be changed")

type key struct{}

// Context returns a context derived from ctx that forbids writing.
func Context(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

// Allow returns a context derived from ctx that permits writing, for requests without a
// lasting effect, such as asking a controller to refresh.
func Allow(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, false) }

// On reports whether ctx forbids writing.
func On(ctx context.Context) bool {
	on, _ := ctx.Value(key{}).(bool)
	return on
}

// Check must be called before something is written. In a dry run it returns an
// ErrWouldChange that describes the write.
func Check(ctx context.Context, format string, args ...any) error {
	if !On(ctx) {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrWouldChange)
}
