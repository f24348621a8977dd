package main

import (
	"context"

	"github.com/slipway-sh/slipway/ci/internal/dagger"
)

// Test runs tests of the platform release that is installed.
//
// Or it deploys, checks or removes the workloads of its users: suites apps-deploy,
// apps-check and apps-destroy. Returns a table of the tests; what each printed is in
// `report`. When tests fail, the exit code is 4.
//
// +cache="never"
func (m *Slipway) Test(
	ctx context.Context,
	// Which tests: smoke, full or another suite of the release.
	//
	// Or apps-deploy, apps-check, apps-destroy; full if not given.
	// +optional
	suite string,
	// The tests of this component, in place of a suite.
	// +optional
	component string,
	// The deployment's configuration, YAML. Every setting has a default.
	// +optional
	config *dagger.File,
	// The platform release that is installed, where it is one of your own.
	// +optional
	platform *dagger.Directory,
	// Name of the deployment; replaces the one in the configuration.
	// +optional
	name string,
	// How many tests may run at the same time; 0 is no limit.
	// +optional
	parallel int,
	// How long to wait for another run, such as 1m; then the exit code is 6.
	// +default="15s"
	lockTimeout string,
) (string, error) {
	c, err := m.conductor(ctx, config, platform, name)
	if err != nil {
		return "", err
	}
	args := flags{"test"}.on(suite, suite != "").with("--component", component)
	return c.run(ctx, args, parallel, lockTimeout)
}
