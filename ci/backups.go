package main

import (
	"context"

	"github.com/slipway-sh/slipway/ci/internal/dagger"
)

// Backups lists the backups that upgrades and rollbacks have made.
//
// The oldest comes first, each with the data in it and what the data's check said of it.
//
// +cache="never"
func (m *Slipway) Backups(
	ctx context.Context,
	// The deployment's configuration, YAML.
	// +optional
	config *dagger.File,
	// Name of the deployment; replaces the one in the configuration.
	// +optional
	name string,
	// "text" or "json".
	// +default="text"
	format string,
) (string, error) {
	return m.command(ctx, config, name, "backups", "--output", format)
}

// Rollback brings the platform back to the release and the data of a backup.
//
// The release and the configuration are those in the backup. Migrations are taken back,
// which loses nothing, where each of them can be.
//
// +cache="never"
func (m *Slipway) Rollback(
	ctx context.Context,
	// Id of the backup; that of the last upgrade if not given.
	// +optional
	backup string,
	// Put the backup in the place of data that has no other way back.
	//
	// The present data is backed up before, and who uses it is stopped meanwhile. Without
	// it such a rollback is refused. A check of the data that fails in the end is a warning.
	// +optional
	yes bool,
	// The deployment's configuration, YAML. It says where state and cluster are.
	// +optional
	config *dagger.File,
	// Name of the deployment; replaces the one in the configuration.
	// +optional
	name string,
	// How many steps may run at the same time; 0 is no limit.
	// +optional
	parallel int,
	// How long to wait for another run, such as 1m; then the exit code is 6.
	// +default="15s"
	lockTimeout string,
	// Take over what is in the cluster and somebody else's, as with install.
	// +optional
	takeOwnership bool,
) (string, error) {
	c, err := m.conductor(ctx, config, nil, name)
	if err != nil {
		return "", err
	}
	args := flags{"rollback"}.with("--backup", backup).on("--yes", yes).on("--take-ownership", takeOwnership)
	return c.run(ctx, args, parallel, lockTimeout)
}
