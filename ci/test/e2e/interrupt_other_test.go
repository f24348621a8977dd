//go:build !linux

package e2e

import "testing"

// interrupts needs Linux's terminals.
func interrupts(*testing.T, deployment, *telemetry) {}
