package main

import (
	"context"

	"github.com/slipway-sh/slipway/ci/internal/dagger"
)

// Clients is a folder with the pinned kubectl, helm, terraform and slipway.
//
// `clients export --path DIR` writes it. They are for the system of the engine, Linux;
// `slipway clients` has those for others.
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
	done, err := c.exec(append([]string{"clients", "--out", out, "--bundle", bundleDir}, m.wanted(c)...)...).Sync(ctx)
	if err != nil {
		return nil, err
	}
	return done.Directory(out), nil
}
