package main

import (
	"context"

	"github.com/slipway-sh/slipway/ci/internal/dagger"
)

// List lists the deployments on this engine, or in a bucket.
//
// The bucket is that of --state, or of the configuration. A deployment is in the list from
// its first run until a destroy has removed it, in the state that its last run left.
//
// +cache="never"
func (m *Slipway) List(
	ctx context.Context,
	// A configuration, YAML, that names the bucket.
	// +optional
	config *dagger.File,
	// "text" or "json".
	// +default="text"
	format string,
) (string, error) {
	return m.command(ctx, config, "", "list", "--output", format)
}
