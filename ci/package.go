package main

import (
	"context"

	"github.com/slipway-sh/slipway/ci/internal/dagger"
)

// Save packs a run into one archive, for others to install or to look at.
//
// It has the configuration, the platform release, the report with its logs, the
// digests of tools and images, and an index with the sha256 of each file; no
// secrets. `save export --path run.tar.zst` writes it, after a failed run too.
//
// +cache="never"
func (m *Slipway) Save(
	ctx context.Context,
	// The deployment's configuration, YAML.
	// +optional
	config *dagger.File,
	// The platform release of the run, where that was one of your own.
	// +optional
	platform *dagger.Directory,
	// Name of the deployment; replaces the one in the configuration.
	// +optional
	name string,
	// Id of the run; the last one if not given.
	// +optional
	run string,
	// Private key to sign with, PEM: ECDSA P-256 or Ed25519.
	// +optional
	key *dagger.Secret,
) (*dagger.File, error) {
	c, err := m.conductor(ctx, config, platform, name)
	if err != nil {
		return nil, err
	}
	const out = "/slipway/out/run.tar.zst"
	args := flags{"save", "--out", out}.with("--run", run)
	if key != nil {
		c.ctr = c.ctr.WithMountedSecret("/slipway/in/key.pem", key)
		args = append(args, "--key", "/slipway/in/key.pem")
	}
	done, err := c.exec(args...).Sync(ctx)
	if err != nil {
		return nil, err
	}
	return done.File(out), nil
}

// VerifyPackage tells whether a package is as it was written, and by whom.
//
// It is `slipway save --verify FILE`. The error names each file that was altered, is
// missing or was added.
func (m *Slipway) VerifyPackage(
	ctx context.Context,
	// The package, as `save` made it.
	packageFile *dagger.File,
	// Public key that it must be signed with, PEM.
	// +optional
	packageKey *dagger.File,
) (string, error) {
	c, err := m.starting(ctx)
	if err != nil {
		return "", err
	}
	name, err := packageFile.Name(ctx) // errors name it as the caller knows it
	if err != nil {
		return "", err
	}
	c.ctr = c.ctr.WithMountedFile("/slipway/in/package/"+name, packageFile).WithWorkdir("/slipway/in/package")
	return c.stdout(ctx, c.verifying(flags{"save", "--verify", name}, packageKey)...)
}

// verifying adds the key that a package must be signed with to a command; nil is none.
func (c *conductor) verifying(args flags, key *dagger.File) flags {
	if key == nil {
		return args
	}
	c.ctr = c.ctr.WithMountedFile("/slipway/in/key.pub.pem", key)
	return args.with("--package-key", "/slipway/in/key.pub.pem")
}

// with hands a package, and the key that it must be signed with, to a command that begins
// with one; nil is none.
func (c *conductor) with(ctx context.Context, packageFile, key *dagger.File, args flags) (flags, error) {
	if packageFile != nil {
		name, err := packageFile.Name(ctx)
		if err != nil {
			return nil, err
		}
		c.ctr = c.ctr.WithMountedFile("/slipway/in/package/"+name, packageFile)
		args = args.with("--package", "/slipway/in/package/"+name)
	}
	return c.verifying(args, key), nil
}

// Reproduce runs what is in a package on a fresh local deployment, and compares.
//
// It runs up to the step that failed in the original, and says what is substituted, whether
// the same fault came back, and what differs. It fails unless the run ended as the original.
// The deployment is removed at the end.
//
// +cache="never"
func (m *Slipway) Reproduce(
	ctx context.Context,
	// The package, as `save` made it.
	packageFile *dagger.File,
	// Public key that it must be signed with, PEM.
	// +optional
	packageKey *dagger.File,
	// Run up to this step; the one that failed in the original if not given.
	// +optional
	until string,
	// Name of the deployment, under which there was none yet.
	// +optional
	name string,
	// Leave the deployment for `status`, `report` and `toolchain`.
	// +optional
	keep bool,
	// How many steps may run at the same time; 0 is no limit.
	// +optional
	parallel int,
	// How long to wait for another run, such as 1m; then the exit code is 6.
	// +default="15s"
	lockTimeout string,
) (string, error) {
	c, args, err := m.reproducing(ctx, packageFile, packageKey, until, name)
	if err != nil {
		return "", err
	}
	return c.run(ctx, args.on("--keep", keep), parallel, lockTimeout)
}

// ReproduceShell is the container of a step of a run that is reproduced.
//
// It is that of the step that failed in the original, connected to the cluster, with the
// step's request in place: `reproduce-shell … terminal` opens a shell. The deployment stays.
//
// +cache="never"
func (m *Slipway) ReproduceShell(
	ctx context.Context,
	// The package, as `save` made it.
	packageFile *dagger.File,
	// Public key that it must be signed with, PEM.
	// +optional
	packageKey *dagger.File,
	// Run up to this step; the one that failed in the original if not given.
	// +optional
	until string,
	// Name of the deployment, under which there was none yet.
	// +optional
	name string,
) (*dagger.Container, error) {
	c, args, err := m.reproducing(ctx, packageFile, packageKey, until, name)
	if err != nil {
		return nil, err
	}
	id, err := c.id(ctx, args...)
	return dag.LoadContainerFromID(dagger.ContainerID(id)), err
}

// reproducing is a conductor and the command that reproduces a run.
func (m *Slipway) reproducing(ctx context.Context, packageFile, packageKey *dagger.File, until, name string) (*conductor, flags, error) {
	c, err := m.conductor(ctx, nil, nil, name)
	if err != nil {
		return nil, nil, err
	}
	args, err := c.with(ctx, packageFile, packageKey, flags{"reproduce"}.with("--until", until))
	return c, args, err
}
