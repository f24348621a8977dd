package main

import (
	"context"
	"errors"

	"github.com/slipway-sh/slipway/ci/origin"
)

// fromRegistry is the conductor's container when images come from a registry:
// the toolchain by the digest that the lock has for the engine's platform.
func (m *Slipway) fromRegistry(ctx context.Context) (*conductor, error) {
	text, err := m.Lock.Contents(ctx)
	if err != nil {
		return nil, origin.NoLock(err)
	}
	if err := m.lockVouched(ctx, []byte(text)); err != nil {
		return nil, err
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
	if m.BundleKey != nil {
		const signature = "/slipway/in/lock.json.sigstore.json" // where a command looks for it
		c.ctr = c.ctr.WithMountedFile(signature, m.LockSignature)
		c.args = append(c.args, m.wanted(c)...)
	}
	return c, nil
}

// lockVouched fails if a key or a signature was given, and the lock with this text is not
// signed with the key.
func (m *Slipway) lockVouched(ctx context.Context, text []byte) error {
	switch {
	case m.BundleKey == nil && m.LockSignature == nil:
		return nil
	case m.BundleKey == nil:
		return origin.UnsignedLock(errors.New("there is a signature, and no key to verify it with"))
	case m.LockSignature == nil:
		return origin.UnsignedLock(errors.New("there is a key to verify with, and no signature"))
	}
	signature, err := m.LockSignature.Contents(ctx)
	if err != nil {
		return origin.UnsignedLock(err)
	}
	key, err := m.BundleKey.Contents(ctx)
	if err != nil {
		return err
	}
	return origin.SignedLock(text, []byte(signature), []byte(key))
}
