// Package containers is what Slipway runs on the Dagger engine: where the images of
// a run come from, the toolchain container, the execution of a step, the
// cluster service, and a deployment's volumes.
//
// Whatever touches the world is never cached: every execution of a step gets a
// fresh environment variable after the layers that may be cached.
package containers

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/containers/lock"
)

// Paths that every container of a deployment agrees on.
const (
	stateDir  = "/slipway/state"        // the state volume
	nodeDir   = "/var/lib/slipway-node" // the node's volume
	archive   = "/slipway/images/workloads.tar"
	addedDir  = "/slipway/images/added"  // archives of the images that were added to a bundle
	account   = "/slipway/registry.json" // the node's account of the registry
	binDir    = "/usr/local/bin"
	nonceName = "SLIPWAY_NONCE"
)

// Images is where the containers of a run come from. All of it is pinned by digest.
type Images struct {
	// Toolchain is the base of every step, with the pinned tools and the runner.
	Toolchain *dagger.Container
	// Node is the local cluster's node.
	Node *dagger.Container
	// Workloads is an OCI archive with the workload images; nil where the
	// cluster pulls them from a registry.
	Workloads *dagger.File
	// Added are OCI archives with the images that were added to a bundle, by file name.
	Added map[string]*dagger.File
	// Manifests is a directory with third-party manifests by project.
	Manifests *dagger.Directory
	// Refs maps the short name of an image to its reference by digest, as a cluster knows
	// it whose node Slipway runs.
	Refs map[string]string
	// Registry maps the short name of an image to its reference by digest in the registry,
	// as any other cluster knows it; nil from a bundle.
	Registry map[string]string
	// Overrides are the images that are used in place of others.
	Overrides []lock.Override
	// StandsFor maps an upstream reference, as imageref.Normal writes it, to the
	// reference by digest of the image that is used in its place: in the registry, or in
	// the bundle's archives.
	StandsFor map[string]string
	// Tools maps each tool of the toolchain to its digest, "sha256:<hex>"; where the
	// tools come within an image, that is the only entry.
	Tools map[string]string
	// Mirror is the URL of the registry, with the path before the images' names,
	// from which the node pulls; empty where it has Workloads.
	Mirror string
	// Pulls says that a node of Slipway's own pulls from Mirror.
	Pulls bool
	// Digest identifies all of the above, "sha256:<hex>".
	Digest string
	// PullSecret is a docker config.json with the account with which a cluster's nodes pull from
	// the registry; nil: they have none.
	PullSecret *dagger.Secret
	// PullSecretDigest tells accounts apart, and nothing of them; empty without one.
	PullSecretDigest string
	// Line is what `slipway lock verify` ends with, "sha256:<hex>"; empty with a lock file
	// that does not have it.
	Line string
	// Warning is what the record of a run says about these images; empty: nothing.
	Warning string

	check func(context.Context) error // nil where nothing is left to check
}

// Deployment is one named deployment on a Dagger engine. Its volumes are made
// when first used. Methods may be called concurrently.
type Deployment struct {
	name   string
	client *dagger.Client
	images *Images
	state  *dagger.CacheVolume
	data   *dagger.CacheVolume
	access Access
}

// Access is variables and files that a container gets, such as those with which it
// reaches the deployment's state where that is not in the state volume.
type Access struct {
	// Env are environment variables.
	Env map[string]string
	// Secrets are environment variables that the engine blanks out in the output.
	Secrets map[string]*dagger.Secret
	// Files are secrets mounted as files with mode 0400, by path.
	Files map[string]*dagger.Secret
}

func (a Access) into(ctr *dagger.Container) *dagger.Container {
	for _, name := range slices.Sorted(maps.Keys(a.Env)) {
		ctr = ctr.WithEnvVariable(name, a.Env[name])
	}
	for _, name := range slices.Sorted(maps.Keys(a.Secrets)) {
		ctr = ctr.WithSecretVariable(name, a.Secrets[name])
	}
	for _, path := range slices.Sorted(maps.Keys(a.Files)) {
		ctr = ctr.WithMountedSecret(path, a.Files[path], dagger.ContainerWithMountedSecretOpts{Mode: 0o400})
	}
	return ctr
}

// IndexVolume is the cache volume with the names of the deployments whose state is on the engine.
const IndexVolume = "slipway-deployments"

// StateVolume is the name of the cache volume with a deployment's state.
func StateVolume(deployment string) string { return "slipway-state-" + deployment }

// Open is the deployment of that name. Steps and state commands get access, and
// nobody else does.
func Open(client *dagger.Client, name string, images *Images, access Access) *Deployment {
	return &Deployment{
		name:   name,
		client: client,
		images: images,
		state:  client.CacheVolume(StateVolume(name)),
		data:   client.CacheVolume("slipway-node-" + name),
		access: access,
	}
}

// Toolchain is a container with the tools and the state volume; it is bound to
// cluster under the name "cluster" unless that is nil. What runs in it runs anew
// each time.
func (d *Deployment) Toolchain(cluster *dagger.Service) *dagger.Container {
	return fresh(d.toolchain(cluster))
}

func (d *Deployment) toolchain(cluster *dagger.Service) *dagger.Container {
	ctr := d.images.Toolchain.WithMountedCache(stateDir, d.state)
	if cluster != nil {
		ctr = ctr.WithServiceBinding("cluster", cluster)
	}
	return ctr
}

func (d *Deployment) runner(cluster *dagger.Service) *dagger.Container {
	return d.access.into(d.toolchain(cluster))
}

// fresh keeps the engine from answering what follows from its cache.
func fresh(ctr *dagger.Container) *dagger.Container {
	return ctr.WithEnvVariable(nonceName, rand.Text())
}
