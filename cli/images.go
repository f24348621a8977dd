package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/providers"
)

// fromRegistry says whether images come from a registry rather than a bundle:
// what a flag says wins over the environment, in which the lock wins.
func (t *target) fromRegistry() bool {
	return t.lock != "" && (t.flags.Changed("lock") || !t.flags.Changed("bundle"))
}

// pins checks that the command says where images come from, and is the lock that
// applies: the one given, else that of this program.
func (t *target) pins() (*lock.Lock, error) {
	if t.flags.Changed("lock") && t.flags.Changed("bundle") {
		return nil, errUsage{errors.New("give either --lock or --bundle")}
	}
	if t.fromRegistry() {
		pins, err := lock.Read(t.lock)
		if err != nil {
			return nil, err
		}
		switch {
		case t.registry != "":
			t.cfg.Advanced.Registry = t.registry
		case t.cfg.Advanced.Registry == "":
			t.cfg.Advanced.Registry = pins.Location
		}
		if t.cfg.Advanced.Registry == "" {
			return nil, &fault.Fault{Code: codeNoRegistry, Class: fault.Usage, Op: "choose the registry of the images",
				Fix: "give --registry host/path, or set advanced.registry in the configuration",
				Err: errors.New("neither the lock nor the configuration names one")}
		}
		return pins, nil
	}
	if t.registry != "" {
		return nil, &fault.Fault{Code: codeNoLockFile, Class: fault.Usage, Op: "choose where images come from",
			Fix: "give --lock FILE too: slipway bundle push DIR --to host/path --lock-out slipway.lock.json",
			Err: errors.New("--registry goes with --lock FILE, which slipway bundle push writes")}
	}
	if t.bundle == "" && t.bundleID == "" {
		return nil, &fault.Fault{Code: codeNoImages, Class: fault.Usage, Op: "choose where images come from",
			Fix: "give --bundle DIR (make bundle builds one; env SLIPWAY_BUNDLE), or --lock FILE for images in a registry (slipway bundle push writes it; env SLIPWAY_LOCK)",
			Err: errors.New("neither a bundle nor a lock was given")}
	}
	if t.bundleID == "" { // else the engine has it
		if _, err := bundle.Read(t.bundle); err != nil {
			return nil, err
		}
	}
	return lock.Load()
}

// images opens the images of the run, from the registry or the bundle.
func (t *target) images(ctx context.Context, client *dagger.Client, pins *lock.Lock, provider providers.Provider) (*containers.Images, error) {
	if !t.fromRegistry() {
		dir, err := t.directory(client, t.bundle, t.bundleID)
		if err != nil {
			return nil, err
		}
		return containers.FromBundle(ctx, client, dir)
	}
	platform, err := client.DefaultPlatform(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask the engine for its platform: %w", err)
	}
	registry := strings.TrimSuffix(t.cfg.Advanced.Registry, "/")
	images, err := containers.FromRegistry(ctx, client, pins, registry, string(platform))
	if err != nil {
		return nil, err
	}
	return images, t.reachable(images, provider, registry)
}

// reachable makes sure that the cluster's node, where Slipway runs one, has an
// address at which it reaches the registry.
func (t *target) reachable(images *containers.Images, provider providers.Provider, registry string) error {
	server, ok := provider.(providers.ClusterServer)
	if !ok {
		return nil
	}
	spec := server.Node(providers.Deployment{Name: t.cfg.Global.Name, Scale: t.cfg.Global.Scale, Section: t.cfg.Section(t.cfg.Provider)})
	if spec.Mirror != "" {
		images.Mirror = spec.Mirror
	}
	if images.Mirror == "" {
		return &fault.Fault{Code: codeNoMirror, Class: fault.Usage, Op: "choose where the cluster's node pulls images",
			Fix: "set the address of the registry's machine: " + t.cfg.Provider + ": {registryMirror: \"http://192.0.2.1:5000/slipway\"}",
			Err: fmt.Errorf("%s is the engine's own machine, which the node cannot reach under this address", registry)}
	}
	return nil
}
