package main

import (
	"context"
	"errors"

	"github.com/slipway-sh/slipway/ci/internal/dagger"
	"github.com/slipway-sh/slipway/ci/origin"
)

// bundleDir is where commands that start nothing find the bundle.
const bundleDir = "/slipway/in/bundle"

// BundleVerify compares the bundle with its digest, and its files with its index.
//
// +cache="never"
func (m *Slipway) BundleVerify(ctx context.Context) (string, error) {
	return m.onBundle(ctx, "bundle", "verify", bundleDir)
}

// LockVerify proves that the bundle is what the program's list of pins says.
//
// Its last line is the same wherever the same is used.
//
// +cache="never"
func (m *Slipway) LockVerify(ctx context.Context) (string, error) {
	return m.onBundle(ctx, "lock", "verify", "--bundle", bundleDir)
}

// starting is a container for a command that needs neither engine nor images.
func (m *Slipway) starting(ctx context.Context) (*conductor, error) {
	c, err := m.container(ctx)
	if err != nil {
		return nil, refuse(err)
	}
	c.args = nil
	return c, nil
}

// onBundle runs a command that compares the bundle with the one that is wanted, also where a
// lock takes its place.
func (m *Slipway) onBundle(ctx context.Context, args ...string) (string, error) {
	c, err := m.starting(ctx)
	if err != nil {
		return "", err
	}
	if m.BundleFiles == nil {
		return "", refuse(origin.NoBundle(errors.New("only a lock was given, and this looks at a bundle")))
	}
	c.ctr = c.ctr.WithMountedDirectory(bundleDir, m.BundleFiles)
	return c.stdout(ctx, append(args, "--bundle-digest", m.BundleDigest)...)
}

// Clients is a folder with the pinned kubectl, helm, terraform and slipway.
//
// `clients export --path DIR` writes it. They are for the system of the engine, Linux.
//
// +cache="never"
func (m *Slipway) Clients(ctx context.Context) (*dagger.Directory, error) {
	c, err := m.starting(ctx)
	if err != nil {
		return nil, err
	}
	if m.Lock != nil { // the image that it names by digest has them
		all := dag.Directory()
		for _, name := range []string{"slipway", "kubectl", "helm", "terraform"} {
			all = all.WithFile(name, c.ctr.File("/usr/local/bin/"+name))
		}
		return all, nil
	}
	c.ctr = c.ctr.WithMountedDirectory(bundleDir, m.BundleFiles)
	const out = "/slipway/out/clients"
	done, err := c.exec("clients", "--out", out, "--bundle", bundleDir, "--bundle-digest", m.BundleDigest).Sync(ctx)
	if err != nil {
		return nil, err
	}
	return done.Directory(out), nil
}
