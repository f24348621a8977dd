package main

import (
	"context"

	"github.com/slipway-sh/slipway/ci/internal/dagger"
)

// Doctor checks what an install needs: configuration, bundle, engine, machine.
//
// It changes nothing, and reports all problems at once. The exit code is 0, or 3 if there
// is a problem.
//
// +cache="never"
func (m *Slipway) Doctor(
	ctx context.Context,
	// The deployment's configuration, YAML. Every setting has a default.
	// +optional
	config *dagger.File,
	// Name of the deployment; replaces the one in the configuration.
	// +optional
	name string,
	// "text" or "json".
	// +default="text"
	format string,
) (string, error) {
	return m.command(ctx, config, name, "doctor", "--output", format)
}
