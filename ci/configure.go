package main

import (
	"context"

	"github.com/slipway-sh/slipway/ci/internal/dagger"
)

// formFile is where the form writes, on a volume of the engine, and where Configure
// reads it with fromForm.
const formFile = "/slipway/form/slipway.yaml"

// Configure makes a configuration out of answers, and returns the file.
//
// `configure … export --path slipway.yaml` writes it; `form terminal` asks for it on
// this terminal. The error lists every field without an answer. Hooks around
// configuring run, but for those of a file to begin with.
//
// +cache="never"
func (m *Slipway) Configure(
	ctx context.Context,
	// Answers, field=value, such as global.name=staging.
	//
	// An answer with a comma in it goes in double quotes, as in CSV.
	// +optional
	set []string,
	// More answers, YAML as in a configuration, which need not be complete.
	// +optional
	answers *dagger.File,
	// A configuration to begin with, or a package of `save`.
	// +optional
	file *dagger.File,
	// Public key that such a package must be signed with, PEM.
	// +optional
	packageKey *dagger.File,
	// Begin with what `form terminal` wrote last.
	// +optional
	fromForm bool,
	// Name of that form; those who share an engine take one each.
	// +default="form"
	name string,
	// The platform release, if it is not the reference platform.
	// +optional
	platform *dagger.Directory,
) (*dagger.File, error) {
	c, err := m.configuring(ctx, name, platform)
	if err != nil {
		return nil, err
	}
	args := []string{"configure", "--non-interactive", "--output", "/slipway/out/slipway.yaml"}
	for _, answer := range set {
		args = append(args, "--set", answer)
	}
	if answers != nil {
		c.ctr = c.ctr.WithMountedFile("/slipway/in/answers.yaml", answers)
		args = append(args, "--answers", "/slipway/in/answers.yaml")
	}
	switch {
	case file != nil:
		name, err := file.Name(ctx) // whose end says what it is
		if err != nil {
			return nil, err
		}
		c.ctr = c.ctr.WithMountedFile("/slipway/in/file/"+name, file)
		args = append(args, "--file", "/slipway/in/file/"+name)
	case fromForm:
		args = append(args, "--file", formFile)
	}
	if packageKey != nil {
		c.ctr = c.ctr.WithMountedFile("/slipway/in/key.pub.pem", packageKey)
		args = append(args, "--package-key", "/slipway/in/key.pub.pem")
	}
	done, err := c.exec(args...).Sync(ctx)
	if err != nil {
		return nil, err
	}
	return done.File("/slipway/out/slipway.yaml"), nil
}

// Form is a container in which `terminal` opens the form of `slipway configure`.
//
// It begins with what it wrote the last time, on a volume of the engine, where
// `configure --from-form export --path slipway.yaml` fetches it.
//
// +cache="never"
func (m *Slipway) Form(
	ctx context.Context,
	// Name of the form; those who share an engine take one each.
	// +default="form"
	name string,
	// The platform release, if it is not the reference platform.
	// +optional
	platform *dagger.Directory,
	// Ask in plain lines, for screen readers.
	// +optional
	accessible bool,
) (*dagger.Container, error) {
	c, err := m.configuring(ctx, name, platform)
	if err != nil {
		return nil, err
	}
	args := append([]string{"slipway", "configure", "--output", formFile,
		"--next", "dagger call configure --from-form --name " + name + " export --path slipway.yaml"}, c.args...)
	if accessible {
		args = append(args, "--accessible")
	}
	return c.ctr.
		WithDefaultTerminalCmd(args, dagger.ContainerWithDefaultTerminalCmdOpts{ExperimentalPrivilegedNesting: true}), nil
}

// configuring is a conductor that can read the platform release and what the form
// wrote.
func (m *Slipway) configuring(ctx context.Context, name string, platform *dagger.Directory) (*conductor, error) {
	c, err := m.container(ctx)
	if err != nil {
		return nil, refuse(err)
	}
	c.secret("secrets", m.Secrets)
	c.ctr = c.ctr.WithMountedCache("/slipway/form", dag.CacheVolume("slipway-form-"+name))
	if platform != nil {
		c.ctr = c.ctr.WithMountedDirectory("/slipway/in/platform", platform)
		c.args = append(c.args, "--platform", "/slipway/in/platform")
	}
	return c, nil
}
