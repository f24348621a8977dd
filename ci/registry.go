package main

import (
	"context"

	"github.com/slipway-sh/slipway/ci/origin"
)

// fromRegistry is the conductor's container when images come from a registry:
// the toolchain by the digest that the lock has for the engine's platform.
func (m *Slipway) fromRegistry(ctx context.Context) (*conductor, error) {
	text, err := m.Lock.Contents(ctx)
	if err != nil {
		return nil, origin.NoLock(err)
	}
	platform, err := dag.DefaultPlatform(ctx)
	if err != nil {
		return nil, err
	}
	ref, err := origin.Image([]byte(text), m.Registry, string(platform))
	if err != nil {
		return nil, err
	}
	base, err := dag.Container().From(ref).Sync(ctx)
	if err != nil {
		return nil, origin.NotPulled(ref, err)
	}
	c := &conductor{
		ctr: base.
			WithMountedFile("/slipway/in/lock.json", m.Lock).
			WithDirectory("/slipway/out", dag.Directory()),
		args: []string{"--lock", "/slipway/in/lock.json"},
	}
	if m.Registry != "" {
		c.args = append(c.args, "--registry", m.Registry)
	}
	c.secret("registry-auth", m.RegistryAuth)
	return c, nil
}
