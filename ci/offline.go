package main

import (
	"context"
	"errors"

	"github.com/slipway-sh/slipway/ci/internal/dagger"
	"github.com/slipway-sh/slipway/ci/origin"
)

// Where commands that start nothing find the bundle and what they are to change.
const (
	bundleDir = "/slipway/in/bundle"
	changed   = "/slipway/changed"
)

// Validate checks a configuration and the platform release that it installs.
//
// It starts nothing. With a bundle or a lock it also makes sure that every image that
// the platform release runs is there.
//
// +cache="never"
func (m *Slipway) Validate(
	ctx context.Context,
	// The deployment's configuration, YAML. Every setting has a default.
	// +optional
	config *dagger.File,
	// Name of the deployment; replaces the one in the configuration.
	// +optional
	name string,
	// The platform release, if it is not the reference platform.
	// +optional
	platform *dagger.Directory,
) (string, error) {
	c, err := m.reading(ctx, config, platform, name)
	if err != nil {
		return "", err
	}
	c.secret("secrets", m.Secrets)
	return c.stdout(ctx, "validate")
}

// ConfigExplain shows every value in effect and where it comes from.
//
// +cache="never"
func (m *Slipway) ConfigExplain(
	ctx context.Context,
	// The deployment's configuration, YAML. Every setting has a default.
	// +optional
	config *dagger.File,
	// Name of the deployment; replaces the one in the configuration.
	// +optional
	name string,
	// The platform release, if it is not the reference platform.
	// +optional
	platform *dagger.Directory,
	// "text" or "json"; --output of the CLI, a flag that dagger reserves.
	// +default="text"
	format string,
) (string, error) {
	c, err := m.starting(ctx, config, platform, name)
	if err != nil {
		return "", err
	}
	args := []string{"config", "explain", "--output", format}
	if m.State != "" {
		args = append(args, "--state", m.State)
	}
	return c.stdout(ctx, args...)
}

// ConfigMigrate is a configuration as the current version of the schema has it.
//
// `config-migrate --config slipway.yaml export --path slipway.yaml` writes it. The
// changes are shown; one of the current version comes back as it is.
//
// +cache="never"
func (m *Slipway) ConfigMigrate(
	ctx context.Context,
	// The configuration, YAML.
	config *dagger.File,
	// Version of the platform release that it is to be for.
	// +optional
	to string,
	// Version of the one that it was written for; as it says itself if not given.
	// +optional
	from string,
) (*dagger.File, error) {
	args := []string{"config", "migrate"}
	if to != "" {
		args = append(args, "--to", to)
	}
	if from != "" {
		args = append(args, "--from", from)
	}
	return m.change(ctx, config, args...)
}

// Schema is the configuration's JSON schema.
//
// +cache="never"
func (m *Slipway) Schema(ctx context.Context) (string, error) {
	return m.print(ctx, "schema")
}

// BundleList lists the tools, manifests and images of the bundle.
//
// It says which references the images stand for.
//
// +cache="never"
func (m *Slipway) BundleList(
	ctx context.Context,
	// "text" or "json"; --output of the CLI, a flag that dagger reserves.
	// +default="text"
	format string,
) (string, error) {
	return m.onBundle(ctx, false, "bundle", "list", bundleDir, "--output", format)
}

// BundleVerify compares the bundle with its digest, and its files with its index.
//
// +cache="never"
func (m *Slipway) BundleVerify(ctx context.Context) (string, error) {
	return m.onBundle(ctx, true, "bundle", "verify", bundleDir)
}

// LockVerify proves that the bundle is what the program's list of pins says.
//
// Its last line is the same wherever the same is used.
//
// +cache="never"
func (m *Slipway) LockVerify(ctx context.Context) (string, error) {
	return m.onBundle(ctx, true, "lock", "verify", "--bundle", bundleDir)
}

// PlatformInit is a platform release to begin with, which installs as it is.
//
// `platform-init --name mine export --path mine` writes it.
//
// +cache="never"
func (m *Slipway) PlatformInit(
	ctx context.Context,
	// Name of the platform and of its namespace.
	name string,
) (*dagger.Directory, error) {
	c, err := m.starting(ctx, nil, nil, "")
	if err != nil {
		return nil, err
	}
	done, err := c.exec("platform", "init", changed, "--name", name).Sync(ctx)
	if err != nil {
		return nil, err
	}
	return done.Directory(changed), nil
}

// PlatformRender prints the objects that an install would apply, as YAML.
//
// It starts nothing. Secrets are without values.
//
// +cache="never"
func (m *Slipway) PlatformRender(
	ctx context.Context,
	// The deployment's configuration, YAML. Every setting has a default.
	// +optional
	config *dagger.File,
	// Name of the deployment; replaces the one in the configuration.
	// +optional
	name string,
	// The platform release, if it is not the reference platform.
	// +optional
	platform *dagger.Directory,
	// Print these components only.
	// +optional
	component []string,
) (string, error) {
	c, err := m.reading(ctx, config, platform, name)
	if err != nil {
		return "", err
	}
	args := []string{"platform", "render"}
	for _, only := range component {
		args = append(args, "--component", only)
	}
	return c.stdout(ctx, args...)
}

// PlatformSchema is the JSON schema of platform.yaml.
//
// +cache="never"
func (m *Slipway) PlatformSchema(ctx context.Context) (string, error) {
	return m.print(ctx, "platform", "schema")
}

// Explain shows what an error code means and what to do.
//
// +cache="never"
func (m *Slipway) Explain(
	ctx context.Context,
	// The code, as an error shows it.
	code string,
) (string, error) {
	return m.print(ctx, "explain", code)
}

// Version is that of the program in the bundle or the registry.
//
// It says what that program is made of and pins.
//
// +cache="never"
func (m *Slipway) Version(
	ctx context.Context,
	// "text" or "json"; --output of the CLI, a flag that dagger reserves.
	// +default="text"
	format string,
) (string, error) {
	return m.print(ctx, "version", "--output", format)
}

// starting is a container for a command that needs neither engine nor images, with a
// configuration, a platform release and the deployment's name where they are given.
func (m *Slipway) starting(ctx context.Context, config *dagger.File, platform *dagger.Directory, name string) (*conductor, error) {
	c, err := m.container(ctx)
	if err != nil {
		return nil, refuse(err)
	}
	c.args = nil
	if err := c.configuration(ctx, config); err != nil {
		return nil, refuse(err)
	}
	if platform != nil {
		c.ctr = c.ctr.WithMountedDirectory("/slipway/in/platform", platform)
		c.args = append(c.args, "--platform", "/slipway/in/platform")
	}
	if name != "" {
		c.args = append(c.args, "--name", name)
	}
	return c, nil
}

// reading is starting for a command that looks images up in the bundle or the lock.
func (m *Slipway) reading(ctx context.Context, config *dagger.File, platform *dagger.Directory, name string) (*conductor, error) {
	c, err := m.starting(ctx, config, platform, name)
	switch {
	case err != nil:
		return nil, err
	case m.Lock == nil:
		c.ctr = c.ctr.WithMountedDirectory(bundleDir, m.BundleFiles)
		c.args = append(append(c.args, "--bundle", bundleDir), m.wanted(c)...)
		return c, nil
	}
	c.args = append(c.args, "--lock", "/slipway/in/lock.json")
	if m.Registry != "" {
		c.args = append(c.args, "--registry", m.Registry)
	}
	return c, nil
}

// print runs a command that prints what the program has in it.
func (m *Slipway) print(ctx context.Context, args ...string) (string, error) {
	c, err := m.starting(ctx, nil, nil, "")
	if err != nil {
		return "", err
	}
	return c.stdout(ctx, args...)
}

// onBundle runs a command on the bundle, also where a lock takes its place; with compare one
// that asks which bundle is wanted.
func (m *Slipway) onBundle(ctx context.Context, compare bool, args ...string) (string, error) {
	c, err := m.starting(ctx, nil, nil, "")
	if err != nil {
		return "", err
	}
	if m.BundleFiles == nil {
		return "", refuse(origin.NoBundle(errors.New("only a lock was given, and this looks at a bundle")))
	}
	c.ctr = c.ctr.WithMountedDirectory(bundleDir, m.BundleFiles)
	if compare {
		args = append(args, m.wanted(c)...)
	}
	return c.stdout(ctx, args...)
}

// change runs a command that rewrites a configuration, and returns it.
func (m *Slipway) change(ctx context.Context, config *dagger.File, args ...string) (*dagger.File, error) {
	c, err := m.starting(ctx, nil, nil, "")
	if err != nil {
		return nil, err
	}
	name, err := config.Name(ctx) // errors and remedies name it as the caller knows it
	if err != nil {
		return nil, refuse(err)
	}
	c.ctr = c.ctr.WithFile(changed+"/"+name, config).WithWorkdir(changed)
	done, err := c.exec(append(args, "--config", name)...).Sync(ctx)
	if err != nil {
		return nil, err
	}
	return done.File(changed + "/" + name), nil
}
