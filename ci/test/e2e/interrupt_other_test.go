//go:build !linux

package e2e

import "testing"

// interrupts needs Linux's terminals.
func interrupts(t *testing.T, _ deployment) *transcript {
	t.Helper()
	return &transcript{}
}
