// Package dagger has no code: its module pins Dagger's engine and CLI, so that
// ci/dev/engine can build both from the Go module proxy.
package dagger
