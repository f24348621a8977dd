// Slipway's Dagger module. It installs and removes a Kubernetes-hosted platform.
//
// Every function runs Slipway's own program (the conductor) in a pinned
// container inside this Dagger session, so a laptop, a CI runner and the
// command line tool execute exactly the same pipeline on the same volumes. The
// exit code of a failed call is the class of the failure: 2 configuration,
// 3 preflight, 4 step failed, 5 timed out, 6 locked, 7 cancelled.
//
// A bundle (made by `make bundle`) replaces every registry and download site.
// Put its path into .env to leave the flag out: see docs/using.md. Without a bundle,
// a lock (made by `slipway bundle push`) names images in a registry by digest.
package main

import (
	"context"

	"github.com/slipway-sh/slipway/ci/internal/dagger"
)

// Slipway is the module's only object.
type Slipway struct {
	// +private
	BundleFiles *dagger.Directory
	// +private
	BundleDigest string
	// +private
	Lock *dagger.File
	// +private
	Registry string
	// +private
	RegistryAuth *dagger.Secret
	// +private
	State string
	// +private
	Secrets *dagger.Secret
}

// New sets what all functions share.
func New(
	// Where tools and images are, made by `make bundle`, which puts it into .env.
	// +optional
	bundle *dagger.Directory,
	// Digest of the bundle's index, sha256:…; no other bundle is used.
	//
	// `make bundle` puts it into .env, too. none takes any bundle.
	// +optional
	bundleDigest string,
	// Digests of the images in a registry, written by `slipway bundle push`.
	//
	// It takes the bundle's place, also where .env names one. Without either it is that of
	// the module's release, if it has one.
	// +optional
	lock *dagger.File,
	// The registry of these images, host[:port][/path]; replaces that of the lock.
	// +optional
	registry string,
	// Account with which nodes pull from it, such as file:~/.docker/config.json.
	//
	// As docker login writes it where no credsStore is set. The engine pulls with docker
	// login's account in any case.
	// +optional
	registryAuth *dagger.Secret,
	// URL of the bucket with the deployment's state; replaces state.url.
	// Such as s3://bucket?region=eu-central-1.
	// Without either it is a volume of the engine.
	// +optional
	state string,
	// Secrets that the configuration refers to as env:NAME.
	// NAME=value in each line; a value with several lines, $ or # in single quotes.
	// +optional
	secrets *dagger.Secret,
) *Slipway {
	return &Slipway{
		BundleFiles: bundle, BundleDigest: bundleDigest, Lock: lock, Registry: registry, RegistryAuth: registryAuth,
		State: state, Secrets: secrets,
	}
}

// Install installs the platform and returns a table of its applications.
//
// With no argument that is the reference platform, on a local Kubernetes that Slipway
// starts itself. Running it again changes only what differs.
//
// +cache="never"
func (m *Slipway) Install(
	ctx context.Context,
	// The deployment's configuration, YAML. Every setting has a default.
	// +optional
	config *dagger.File,
	// The platform release to install; the reference platform if not given.
	// +optional
	platform *dagger.Directory,
	// Name of the deployment; replaces the one in the configuration.
	// +optional
	name string,
	// How many steps may run at the same time; 0 is no limit.
	// +optional
	parallel int,
	// Run these steps, "stage" or "stage/step", and all that they need.
	// +optional
	until []string,
	// Take over what is in the cluster and somebody else's.
	//
	// Otherwise it ends the run. A destroy removes it, except namespaces. Also takes over
	// this deployment, where its state is lost.
	// +optional
	takeOwnership bool,
	// Install what is in this package of `save`; --package of the CLI.
	// +optional
	packageFile *dagger.File,
	// Public key that the package must be signed with, PEM.
	// +optional
	packageKey *dagger.File,
	// How long to wait for another run, such as 1m; then the exit code is 6.
	// +default="15s"
	lockTimeout string,
	// Digest of a plan: do what it says, or nothing if anything has changed since.
	// +optional
	approve string,
) (string, error) {
	c, err := m.conductor(ctx, config, platform, name)
	if err != nil {
		return "", err
	}
	args := flags{"install"}.on("--take-ownership", takeOwnership).each("--until", until).with("--approve", approve)
	if args, err = c.with(ctx, packageFile, packageKey, args); err != nil {
		return "", err
	}
	return c.run(ctx, args, parallel, lockTimeout)
}

// Upgrade brings an installed platform to another release.
//
// It goes through the releases between, if it must, and refuses the release that is
// installed and any that cannot be reached from it. What the release calls its data is
// backed up and proved before anything is changed. Returns a table of the applications.
//
// +cache="never"
func (m *Slipway) Upgrade(
	ctx context.Context,
	// Version of the release; the one that config or platform names if not given.
	// +optional
	to string,
	// Go on with the upgrade that is not finished.
	// +optional
	resume bool,
	// "graceful", the default, or "in-place", which stops what uses migrated data.
	// +optional
	style string,
	// The deployment's configuration, YAML. Every setting has a default.
	// +optional
	config *dagger.File,
	// The platform release to upgrade to, where it is one of your own.
	// +optional
	platform *dagger.Directory,
	// Name of the deployment; replaces the one in the configuration.
	// +optional
	name string,
	// How many steps may run at the same time; 0 is no limit.
	// +optional
	parallel int,
	// How long to wait for another run, such as 1m; then the exit code is 6.
	// +default="15s"
	lockTimeout string,
	// Digest of a plan: do what it says, or nothing if anything has changed since.
	// +optional
	approve string,
	// Take over what is in the cluster and somebody else's, as with install.
	// +optional
	takeOwnership bool,
) (string, error) {
	c, err := m.conductor(ctx, config, platform, name)
	if err != nil {
		return "", err
	}
	args := flags{"upgrade"}.with("--to", to).on("--resume", resume).with("--style", style).on("--take-ownership", takeOwnership).with("--approve", approve)
	return c.run(ctx, args, parallel, lockTimeout)
}

// Status shows the deployment's steps and applications, as the last run saw them.
//
// +cache="never"
func (m *Slipway) Status(
	ctx context.Context,
	// The deployment's configuration, YAML.
	// +optional
	config *dagger.File,
	// The platform release that is installed, whose gates --live checks.
	// +optional
	platform *dagger.Directory,
	// Name of the deployment; replaces the one in the configuration.
	// +optional
	name string,
	// "text" or "json"; --output of the CLI, a flag that dagger reserves.
	// +default="text"
	format string,
	// Check the applications and gates now, which starts the cluster.
	// +optional
	live bool,
) (string, error) {
	c, err := m.conductor(ctx, config, platform, name)
	if err != nil {
		return "", err
	}
	return c.stdout(ctx, flags{"status", "--output", format}.on("--live", live)...)
}

// Report is the directory with a run's report: report.html and more.
//
// It has report.html for people, report.json, junit.xml and summary.md for CI, the
// steps' logs and the runtime state, and no secrets. It is there after a failed run
// too.
//
// +cache="never"
func (m *Slipway) Report(
	ctx context.Context,
	// The deployment's configuration, YAML.
	// +optional
	config *dagger.File,
	// Name of the deployment; replaces the one in the configuration.
	// +optional
	name string,
	// Id of the run; the last one if not given.
	// +optional
	run string,
) (*dagger.Directory, error) {
	c, err := m.conductor(ctx, config, nil, name)
	if err != nil {
		return nil, err
	}
	done, err := c.exec(flags{"report", "--out", "/slipway/out"}.with("--run", run)...).Sync(ctx)
	if err != nil {
		return nil, err
	}
	return done.Directory("/slipway/out"), nil
}

// Destroy removes the platform and its cluster and checks that nothing is left.
//
// The records of its runs stay, for `runs` and `report`. A deployment that does not
// exist is no error.
//
// +cache="never"
func (m *Slipway) Destroy(
	ctx context.Context,
	// The deployment's configuration, YAML.
	// +optional
	config *dagger.File,
	// Name of the deployment; replaces the one in the configuration.
	// +optional
	name string,
	// Digest of a plan: do what it says, or nothing if anything has changed since.
	// +optional
	approve string,
	// How long to wait for another run, such as 1m; then the exit code is 6.
	// +default="15s"
	lockTimeout string,
	// Remove CustomResourceDefinitions that the release keeps, and all their objects.
	// +optional
	crds bool,
) (string, error) {
	args := flags{"destroy", "--yes", "--ignore-not-found", "--lock-timeout", lockTimeout}
	return m.command(ctx, config, name, args.on("--crds", crds).with("--approve", approve)...)
}
