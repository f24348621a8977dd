//go:build !linux

package lock

import "time"

// started is when this process started.
var started = time.Now() //nolint:gochecknoglobals // the zero of a clock

// sinceBoot returns how long this process has been running. What works under the lock runs
// in containers, and so on Linux, where suspends count.
func sinceBoot() time.Duration { return time.Since(started) }
