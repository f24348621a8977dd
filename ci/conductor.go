package main

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"

	"github.com/slipway-sh/slipway/ci/internal/dagger"
	"github.com/slipway-sh/slipway/ci/origin"
)

// conductor is a container in which Slipway's program drives this session.
//
// The program runs as a nested client, not inside this module's own process:
// Dagger gives every module cache volumes of its own, and a deployment must be
// the same one for `dagger call` and for the command line tool (see
// docs/decisions/0003-nested-conductor.md).
type conductor struct {
	ctr  *dagger.Container
	args flags // that every command gets
}

// conductor prepares the container. It fails only with what refuse makes of an
// error: nothing of Slipway's program has run yet.
func (m *Slipway) conductor(ctx context.Context, config *dagger.File, platform *dagger.Directory, name string) (*conductor, error) {
	c, err := m.prepare(ctx, config, platform, name)
	if err != nil {
		return nil, refuse(err)
	}
	return c, nil
}

// prepare is conductor with errors as they are. Objects of this session reach the
// nested client by their ids.
func (m *Slipway) prepare(ctx context.Context, config *dagger.File, platform *dagger.Directory, name string) (*conductor, error) {
	c, err := m.container(ctx)
	if err != nil {
		return nil, err
	}
	if platform != nil {
		id, err := platform.ID(ctx)
		if err != nil {
			return nil, err
		}
		c.ctr = c.ctr.WithNewFile("/slipway/in/platform.id", string(id))
		c.args = append(c.args, "--platform-id", "/slipway/in/platform.id")
	}
	if err := c.configuration(ctx, config); err != nil {
		return nil, err
	}
	c.args = c.args.with("--name", name).with("--state", m.State)
	c.secret("secrets", m.Secrets)
	return c, nil
}

// configuration hands a configuration to every command; nil is none.
func (c *conductor) configuration(ctx context.Context, config *dagger.File) error {
	if config == nil {
		return nil
	}
	file, err := config.Name(ctx) // errors and remedies name it as the caller knows it
	if err != nil {
		return err
	}
	c.ctr = c.ctr.WithMountedFile("/slipway/in/config/"+file, config).WithWorkdir("/slipway/in/config")
	c.args = append(c.args, "--config", file)
	return nil
}

// secret hands a secret to every command, in a file that a flag names; nil is none.
func (c *conductor) secret(flag string, secret *dagger.Secret) {
	if secret != nil {
		c.ctr = c.ctr.WithMountedSecret("/slipway/in/"+flag, secret)
		c.args = append(c.args, "--"+flag, "/slipway/in/"+flag)
	}
}

// container is the conductor's container, from the registry or the bundle, with
// the flags that say which.
func (m *Slipway) container(ctx context.Context) (*conductor, error) {
	if err := m.released(ctx); err != nil {
		return nil, err
	}
	if m.Lock != nil {
		return m.fromRegistry(ctx)
	}
	if m.Registry != "" || m.RegistryAuth != nil {
		return nil, origin.RegistryAlone()
	}
	if m.BundleFiles == nil {
		return nil, origin.Nowhere()
	}
	program, err := m.verified(ctx)
	if err != nil {
		return nil, err
	}
	base, err := dag.Container().Import(m.BundleFiles.File(origin.Toolchain)).Sync(ctx)
	if err != nil {
		return nil, origin.Damaged(origin.Toolchain, err)
	}
	id, err := m.BundleFiles.ID(ctx)
	if err != nil {
		return nil, err
	}
	c := &conductor{
		ctr: base.
			WithMountedFile("/usr/local/bin/slipway", program). // copied, it would be a layer for each session
			WithNewFile("/slipway/in/bundle.id", string(id)).
			WithDirectory("/slipway/out", dag.Directory()),
	}
	c.args = []string{"--bundle-id", "/slipway/in/bundle.id", "--bundle-digest", m.BundleDigest}
	return c, nil
}

// released takes, where neither a lock nor a bundle was given, the lock file that a release of
// this module has beside its sources, if there is one.
func (m *Slipway) released(ctx context.Context) error {
	if m.Lock != nil || m.BundleFiles != nil {
		return nil
	}
	source := dag.CurrentModule().Source()
	there, err := source.Glob(ctx, origin.LockFile)
	if len(there) > 0 {
		m.Lock = source.File(origin.LockFile)
	}
	return err
}

// exec runs one command, uncached.
func (c *conductor) exec(args ...string) *dagger.Container {
	return c.ctr.
		WithEnvVariable("SLIPWAY_NONCE", rand.Text()).
		WithEnvVariable("SLIPWAY_MODULE", "1"). // env: and file: are not those of who calls
		WithExec(append(append([]string{"slipway"}, args...), c.args...),
			dagger.ContainerWithExecOpts{ExperimentalPrivilegedNesting: true})
}

// id runs one command that writes the id of an object of Dagger, and returns that.
func (c *conductor) id(ctx context.Context, args ...string) (string, error) {
	const out = "/slipway/out/id"
	return c.exec(append(args, "--id", out)...).File(out).Contents(ctx)
}

// stdout runs one command and returns what it prints. Its error is the exec's:
// the dagger CLI then exits with the command's own exit code.
func (c *conductor) stdout(ctx context.Context, args ...string) (string, error) {
	return c.exec(args...).Stdout(ctx)
}

// run runs a command that installs, and returns what it prints, as stdout does.
func (c *conductor) run(ctx context.Context, args flags, parallel int, lockTimeout string) (string, error) {
	return c.stdout(ctx, args.with("--lock-timeout", lockTimeout).with("--parallel", strconv.Itoa(parallel))...)
}

// flags are a command and its flags.
type flags []string

// with adds a flag that has a value; empty is none.
func (f flags) with(name, value string) flags {
	if value == "" {
		return f
	}
	return append(f, name, value)
}

// each adds a flag once for each value.
func (f flags) each(name string, values []string) flags {
	for _, v := range values {
		f = append(f, name, v)
	}
	return f
}

// on adds a switch.
func (f flags) on(name string, on bool) flags {
	if !on {
		return f
	}
	return append(f, name)
}

// command runs one command about a deployment and returns what it prints, as stdout
// does.
func (m *Slipway) command(ctx context.Context, config *dagger.File, name string, args ...string) (string, error) {
	c, err := m.conductor(ctx, config, nil, name)
	if err != nil {
		return "", err
	}
	return c.stdout(ctx, args...)
}

// verified is Slipway's own program out of the bundle, after the bundle was found to be the
// one that is wanted, and every file of it the one that its index names: the program by the
// engine, the rest by the program, alone in its container. Package containers does the same,
// and the engine answers that from what was done here.
func (m *Slipway) verified(ctx context.Context) (*dagger.File, error) {
	bundle := m.BundleFiles
	index, err := bundle.File(origin.Index).Contents(ctx)
	if err != nil {
		return nil, origin.NoBundle(err)
	}
	if err := origin.Vouched([]byte(index), m.BundleDigest); err != nil {
		return nil, err
	}
	platform, err := dag.DefaultPlatform(ctx)
	if err != nil {
		return nil, err
	}
	want, err := origin.ProgramDigest([]byte(index), string(platform))
	if err != nil {
		return nil, err
	}
	file := bundle.File(origin.Program)
	got, err := file.Digest(ctx, dagger.FileDigestOpts{ExcludeMetadata: true})
	if err == nil && got != want {
		err = errors.New("it is not the file that " + origin.Index + " names")
	}
	if err != nil {
		return nil, origin.Damaged(origin.Program, err)
	}
	done := dag.Container().
		WithRootfs(dag.Directory().WithNewDirectory("bundle")).
		WithMountedFile("/slipway", file).
		WithMountedDirectory("/bundle", bundle).
		WithExec([]string{"/slipway", "bundle", "verify", "/bundle"}, dagger.ContainerWithExecOpts{Expect: dagger.ReturnTypeAny})
	code, err := done.ExitCode(ctx)
	if err != nil { // it is not executable
		return nil, origin.Damaged(origin.Program, err)
	}
	if code == 0 {
		return file, nil
	}
	said, err := done.Stderr(ctx)
	if err != nil {
		return nil, err
	}
	return nil, origin.NotVerified(said)
}
