package main

import (
	"context"

	"github.com/slipway-sh/slipway/ci/internal/dagger"
)

// Runs lists the runs of a deployment, or shows one of them.
//
// The oldest comes first. With show it is that run and its steps.
//
// +cache="never"
func (m *Slipway) Runs(
	ctx context.Context,
	// The deployment's configuration, YAML.
	// +optional
	config *dagger.File,
	// Name of the deployment; replaces the one in the configuration.
	// +optional
	name string,
	// Id of the run to show.
	// +optional
	show string,
	// "text" or "json".
	// +default="text"
	format string,
) (string, error) {
	return m.command(ctx, config, name, flags{"runs", "--output", format}.with("show", show)...)
}

// Logs prints the logs of a run's steps, in the order of the steps.
//
// +cache="never"
func (m *Slipway) Logs(
	ctx context.Context,
	// One step, "stage/step", or one stage; all steps if not given.
	// +optional
	step string,
	// Id of the run; the last one if not given.
	// +optional
	run string,
	// The deployment's configuration, YAML.
	// +optional
	config *dagger.File,
	// Name of the deployment; replaces the one in the configuration.
	// +optional
	name string,
) (string, error) {
	return m.command(ctx, config, name, flags{"logs"}.with("--run", run).on(step, step != "")...)
}

// Unlock takes the deployment's lock away from a run that is gone.
//
// Who did so is recorded.
//
// +cache="never"
func (m *Slipway) Unlock(
	ctx context.Context,
	// Take it away also from a run that gives signs of life.
	// +optional
	force bool,
	// The deployment's configuration, YAML.
	// +optional
	config *dagger.File,
	// Name of the deployment; replaces the one in the configuration.
	// +optional
	name string,
) (string, error) {
	return m.command(ctx, config, name, flags{"unlock"}.on("--force", force)...)
}
