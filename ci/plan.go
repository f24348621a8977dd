package main

import (
	"context"

	"github.com/slipway-sh/slipway/ci/internal/dagger"
)

// Plan shows what an install, upgrade or destroy would do, and changes nothing.
//
// It is kept in the deployment's state under the digest that it ends with; these functions
// do with approve what it says, or nothing if anything has changed since.
//
// +cache="never"
func (m *Slipway) Plan(
	ctx context.Context,
	// Of what: "install", "upgrade" or "destroy".
	// +default="install"
	workflow string,
	// Of an upgrade: version of the release.
	//
	// The one that config or platform names if not given.
	// +optional
	to string,
	// Of an upgrade in this style: "graceful" or "in-place".
	// +optional
	style string,
	// The deployment's configuration, YAML. Every setting has a default.
	// +optional
	config *dagger.File,
	// The platform release; the reference platform if not given.
	// +optional
	platform *dagger.Directory,
	// Name of the deployment; replaces the one in the configuration.
	// +optional
	name string,
	// Of an install that takes over what is in the cluster and somebody else's.
	// +optional
	takeOwnership bool,
	// "text" or "json".
	// +default="text"
	format string,
	// Exit with 2 if there are changes; the plan is then in the call's log only.
	// +optional
	detailedExitcode bool,
	// Of a destroy that removes CustomResourceDefinitions that the release keeps, too.
	// +optional
	crds bool,
) (string, error) {
	c, err := m.conductor(ctx, config, platform, name)
	if err != nil {
		return "", err
	}
	args := flags{"plan", workflow, "--output", format}.with("--to", to).with("--style", style).
		on("--take-ownership", takeOwnership).on("--crds", crds).on("--detailed-exitcode", detailedExitcode)
	return c.stdout(ctx, args...)
}
