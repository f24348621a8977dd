package main

import (
	"context"

	"github.com/slipway-sh/slipway/ci/internal/dagger"
)

// Configure makes a configuration out of answers, and returns the file.
//
// `configure … export --path slipway.yaml` writes it. The error lists every field without an
// answer. Hooks after configuring run, except those of a file to begin with.
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
	// The platform release, if it is not the reference platform.
	// +optional
	platform *dagger.Directory,
) (*dagger.File, error) {
	c, err := m.container(ctx)
	if err != nil {
		return nil, refuse(err)
	}
	c.secret("secrets", m.Secrets)
	if platform != nil {
		c.ctr = c.ctr.WithMountedDirectory("/slipway/in/platform", platform)
		c.args = append(c.args, "--platform", "/slipway/in/platform")
	}
	args := flags{"configure", "--out", "/slipway/out/slipway.yaml"}.each("--set", set)
	if answers != nil {
		c.ctr = c.ctr.WithMountedFile("/slipway/in/answers.yaml", answers)
		args = args.with("--answers", "/slipway/in/answers.yaml")
	}
	if file != nil {
		name, err := file.Name(ctx) // whose end says what it is
		if err != nil {
			return nil, err
		}
		c.ctr = c.ctr.WithMountedFile("/slipway/in/file/"+name, file)
		args = args.with("--file", "/slipway/in/file/"+name)
	}
	args = c.verifying(args, packageKey)
	done, err := c.exec(args...).Sync(ctx)
	if err != nil {
		return nil, err
	}
	return done.File("/slipway/out/slipway.yaml"), nil
}
