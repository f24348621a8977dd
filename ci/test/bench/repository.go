package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/ci/test/slipway"
	"github.com/slipway-sh/slipway/ci/test/tree"
)

// addonsSettings are those of the platform of addons, as its own example has them.
const addonsSettings = "{pathRouting: true, managedCluster: true, nodeAddresses: '', automaticCertificates: false, acme: {server: '', ca: ''}}"

// repository is the private one with the GitOps tree of a platform release, which this
// machine serves to the containers of the engine.
type repository struct {
	dir     string       // where its files are made
	release string       // the release's folder
	served  *tree.Server // nil until serve
}

// config is the file with the configuration of an install from the repository. It is there
// once that is served.
func (r *repository) config() string { return filepath.Join(r.dir, "repository.yaml") }

// serve begins to serve it, unless it is served already. The engine's network, where this
// machine has the address that containers reach, is there once a container has run.
func (r *repository) serve(ctx context.Context) error {
	if r.served != nil {
		return nil
	}
	address, err := slipway.Bridge()
	if err != nil {
		return fmt.Errorf("serve the GitOps tree: %w; name what can be measured here with --only", err)
	}
	return r.serveAt(ctx, address)
}

// serveAt serves it at an address of this machine.
func (r *repository) serveAt(ctx context.Context, address string) error {
	at := filepath.Join(r.dir, "repository")
	if err := os.Mkdir(at, 0o700); err != nil {
		return fmt.Errorf("serve the GitOps tree: %w", err)
	}
	served, err := tree.Serve(ctx, at, r.release, address)
	if err != nil {
		return err
	}
	r.served = served
	text := "apiVersion: slipway.sh/v1\n" + served.Section() + "platform: {settings: " + addonsSettings + "}\n"
	if err := os.WriteFile(r.config(), []byte(text), 0o600); err != nil {
		return fmt.Errorf("make a configuration: %w", err)
	}
	return nil
}

// within gives a script what it needs to read the repository; nothing before it is served.
func (r *repository) within(client *dagger.Client, ctr *dagger.Container) *dagger.Container {
	if r.served == nil {
		return ctr
	}
	return ctr.
		WithNewFile("/bench/git/ca.crt", r.served.CA).
		WithMountedSecret("/bench/git/token", client.SetSecret("bench-git-token", r.served.Token)).
		WithEnvVariable("GIT_URL", r.served.URL)
}

// Close ends the serving.
func (r *repository) Close() error {
	if r.served == nil {
		return nil
	}
	return r.served.Close()
}
