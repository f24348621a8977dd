package main

import (
	"context"

	"github.com/slipway-sh/slipway/ci/internal/dagger"
)

// Kubeconfig is the administrator's access to the cluster.
//
// For a local cluster it names the address on which `cluster up` publishes the API.
//
// `kubeconfig export --path FILE` writes it. What `contents` prints, a collector of
// the engine's telemetry gets, too.
//
// +cache="never"
func (m *Slipway) Kubeconfig(
	ctx context.Context,
	// The deployment's configuration, YAML.
	// +optional
	config *dagger.File,
	// Name of the deployment; replaces the one in the configuration.
	// +optional
	name string,
) (*dagger.File, error) {
	c, err := m.conductor(ctx, config, nil, name)
	if err != nil {
		return nil, err
	}
	done, err := c.exec("kubeconfig", "--out", "/slipway/out/kubeconfig").Sync(ctx)
	if err != nil {
		return nil, err
	}
	return done.File("/slipway/out/kubeconfig"), nil
}

// Cluster is the deployment's local Kubernetes, as a service.
//
// `cluster up` publishes its API on port 6443 of this machine, and local.ports, on all addresses.
//
// +cache="never"
func (m *Slipway) Cluster(
	ctx context.Context,
	// The deployment's configuration, YAML.
	// +optional
	config *dagger.File,
	// Name of the deployment; replaces the one in the configuration.
	// +optional
	name string,
) (*dagger.Service, error) {
	c, err := m.conductor(ctx, config, nil, name)
	if err != nil {
		return nil, err
	}
	id, err := c.id(ctx, "cluster")
	return dag.LoadServiceFromID(dagger.ServiceID(id)), err
}

// Toolchain is the container of the steps, with kubectl, helm and terraform.
//
// It is connected to the deployment's cluster: `toolchain terminal` opens a shell.
//
// +cache="never"
func (m *Slipway) Toolchain(
	ctx context.Context,
	// The deployment's configuration, YAML.
	// +optional
	config *dagger.File,
	// Name of the deployment; replaces the one in the configuration.
	// +optional
	name string,
) (*dagger.Container, error) {
	c, err := m.conductor(ctx, config, nil, name)
	if err != nil {
		return nil, err
	}
	id, err := c.id(ctx, "toolchain")
	return dag.LoadContainerFromID(dagger.ContainerID(id)), err
}
