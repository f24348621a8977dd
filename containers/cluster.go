package containers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/fault"
)

const (
	// codeNoStart: the cluster's node did not start or end in good order, or its volume could not
	// be emptied; the class is locked when a node of another session uses that.
	codeNoStart fault.Code = "CTR-002"
	// codeOther: the background cluster was started from other images, pulls with another
	// account of the registry, or publishes other ports or on another address than this run
	// wants.
	codeOther fault.Code = "CTR-007"
)

// Ports of the cluster service.
const (
	APIPort    = 6443 // Kubernetes API, HTTPS
	HealthPort = 6444 // /readyz of the node, HTTPS for who has a certificate of the cluster
)

// Cluster is the service that runs the deployment's local Kubernetes node. Its
// state lives on the deployment's node volume; starting it a second time while
// it runs elsewhere is refused by the node itself.
type Cluster struct {
	name    string // of the deployment
	service *dagger.Service
	life    lifecycle // of the service
	id      string
	kept    string // ID of the background cluster in this session; empty for none
	bind    string // address of this machine for the ports
	api     int    // port of this machine for the API
	ports   []int  // others

	client    *dagger.Client
	toolchain *dagger.Container

	mu      sync.Mutex
	running bool
}

type lifecycle interface {
	Start(context.Context) (*dagger.Service, error)
	Stop(context.Context, ...dagger.ServiceStopOpts) (*dagger.Service, error)
}

// Cluster describes the node; nothing starts before Start. ports are exposed besides the
// API's; api is the port of this machine on which Publish publishes the API, and bind the
// address: 127.0.0.1 if it is empty, 0.0.0.0 or :: for all.
func (d *Deployment) Cluster(bind string, api int, ports ...int) *Cluster {
	bind = cmp.Or(bind, "127.0.0.1")
	ctr := d.images.Node.
		WithMountedCache(nodeDir, d.data).
		WithMountedCache(stateDir, d.state).
		WithMountedTemp("/run").
		WithExposedPort(APIPort)
	for _, p := range ports {
		ctr = ctr.WithExposedPort(p, dagger.ContainerWithExposedPortOpts{ExperimentalSkipHealthcheck: true})
	}
	args := []string{"run", "--cluster-name", d.name}
	if d.images.Workloads != nil {
		ctr = ctr.WithMountedFile(archive, d.images.Workloads)
		args = append(args, "--images", archive)
	}
	for _, name := range slices.Sorted(maps.Keys(d.images.Added)) {
		file := addedDir + "/" + name
		ctr = ctr.WithMountedFile(file, d.images.Added[name])
		args = append(args, "--images", file)
	}
	if len(d.images.Overrides) > 0 {
		ctr = ctr.WithNewFile(overridesFile, d.images.overridesText())
		args = append(args, "--overrides", overridesFile)
	}
	if d.images.Mirror != "" {
		args = append(args, "--registry-mirror", d.images.Mirror)
		if d.images.PullSecret != nil {
			ctr = ctr.WithMountedSecret(account, d.images.PullSecret, dagger.ContainerWithMountedSecretOpts{Mode: 0o400})
			args = append(args, "--registry-auth", account)
		}
	}
	if ref := d.images.Refs["pause"]; ref != "" {
		args = append(args, "--pause-image", ref)
	}
	service := ctr.AsService(dagger.ContainerAsServiceOpts{
		Args:                     append([]string{binDir + "/slipway-node"}, args...),
		InsecureRootCapabilities: true,
	})
	id := sha256.Sum256([]byte(fmt.Sprintf("%q %s %d %v %s", args, bind, api, ports, d.images.Digest+d.images.PullSecretDigest)))
	return &Cluster{
		name: d.name, service: service, life: service, id: hex.EncodeToString(id[:8]), bind: bind, api: api, ports: ports,
		client: d.client, toolchain: d.images.Toolchain,
	}
}

// ID identifies what the service is started from: two clusters with the same one
// are the same service in a Dagger session.
func (c *Cluster) ID() string { return c.id }

// Keep declares that another process runs the service of the cluster with that ID in
// this session, so that Stop leaves it running. Call it before Start.
func (c *Cluster) Keep(id string) { c.kept = id }

// other is the fault of a background cluster that differs from this one.
func (c *Cluster) other() error {
	if c.kept == "" || c.kept == c.id {
		return nil
	}
	return &fault.Fault{Code: codeOther, Class: fault.Preflight, Op: "join the running cluster",
		Fix: "give the configuration with which it was started (--config), or stop it, then run the same command again: slipway cluster --stop",
		Err: fmt.Errorf("the running cluster of deployment %s was started from other images, with another account of the registry, or with other ports or another address to publish", c.name)}
}

// Bind is the address of this machine on which Publish publishes.
func (c *Cluster) Bind() string { return c.bind }

// APIPort is the port of this machine on which Publish publishes the API.
func (c *Cluster) APIPort() int { return c.api }

// Ports are the ports that Publish publishes besides the API's, each as the same port of
// this machine.
func (c *Cluster) Ports() []int { return c.ports }

// Service is what steps bind to.
func (c *Cluster) Service() *dagger.Service { return c.service }

// startLimit is how long the node may take to open the API's port: two seconds on an
// idle machine, and half a minute more while another session holds its volume.
const startLimit = 3 * time.Minute

// Start starts the node and returns once the API's port is open; the service then
// runs until Stop or the end of the Dagger session.
func (c *Cluster) Start(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running {
		return nil
	}
	if err := c.other(); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if _, err := c.life.Start(limited); err != nil {
		err = withStderr(err)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		f := &fault.Fault{
			Code:  codeNoStart,
			Class: fault.Step,
			Op:    "start the cluster's node",
			Fix:   "see the node's last lines above: another run may hold the deployment; the engine must allow privileged services (--allow-insecure-entitlement security.insecure)",
			Err:   err,
		}
		switch {
		case limited.Err() != nil:
			f.Class = fault.Timeout
			f.Err = fmt.Errorf("waited %s for port %d of the node of deployment %s to open; last seen: %w", startLimit, APIPort, c.name, err)
		case strings.Contains(err.Error(), heldElsewhere):
			f.Class = fault.Locked
			f.Fix = "wait until the other run has ended, or stop the background cluster (slipway cluster --stop), then run the same command again"
		}
		return f
	}
	c.running = true
	return nil
}

// Running tells whether the node was started here and not stopped.
func (c *Cluster) Running() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running
}

// Stop shuts the node down cleanly, within about ten seconds, and gives up when ctx ends;
// a node that does not run is no error. It leaves a background cluster running.
func (c *Cluster) Stop(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running || c.kept != "" {
		return nil
	}
	c.running = false
	return c.stop(ctx)
}

// End shuts the node down cleanly, whichever process of this session started it; a node
// that does not run is no error.
func (c *Cluster) End(ctx context.Context) error {
	if err := c.other(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = false
	return c.stop(ctx)
}

// stop ends the service. The caller has the lock.
func (c *Cluster) stop(ctx context.Context) error {
	begun := time.Now()
	_, err := c.life.Stop(ctx)
	if err == nil {
		return nil
	}
	f := &fault.Fault{
		Code: codeNoStart, Class: fault.Step, Op: "stop the cluster's node",
		Fix: "check that the cluster is healthy: slipway status --live", Err: err,
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		f.Class = fault.Timeout
		f.Err = fmt.Errorf("waited %s for the node of deployment %s to end; last seen: %w", time.Since(begun).Round(time.Second), c.name, err)
	}
	return f
}

// wipeLimit is how long emptying the node's volume may take, the wait for
// another session that holds it included.
const wipeLimit = 5 * time.Minute

// Wipe empties the node's volume. The cluster must not run: a volume that a node
// of another session uses is a fault of class Locked. by is the command line of a
// program that runs the command behind it as long as it may, and tells a fault if that ends.
func (d *Deployment) Wipe(ctx context.Context, by ...string) error {
	limited, cancel := context.WithTimeout(ctx, wipeLimit)
	defer cancel()
	const program = binDir + "/slipway-node"
	ctr := d.runner(nil).WithMountedCache(nodeDir, d.data).WithMountedFile(program, d.images.Node.File(program))
	_, err := fresh(ctr).
		WithExec(append(by, program, "wipe", "--data", nodeDir), dagger.ContainerWithExecOpts{InsecureRootCapabilities: true}).
		Sync(limited)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	if limited.Err() != nil {
		err = fmt.Errorf("waited %s for the node's volume of deployment %s; last seen: %w: %w", wipeLimit, d.name, limited.Err(), err)
	}
	return notWiped(err)
}

// heldElsewhere is what slipway-node says of a volume that another node has.
const heldElsewhere = "another node uses this volume"

func notWiped(err error) error {
	f := &fault.Fault{
		Code: codeNoStart, Class: fault.Step, Op: "empty the node's volume",
		Fix: "run again: slipway destroy", Err: err,
	}
	if x, ok := errors.AsType[*dagger.ExecError](err); ok {
		if told := ParseFault(x.Stderr); told != nil {
			return told
		}
		f.Err = fmt.Errorf("exit status %d: %s", x.ExitCode, tail(strings.TrimSpace(x.Stderr), 400))
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		f.Class = fault.Timeout
	case strings.Contains(f.Err.Error(), heldElsewhere):
		f.Class = fault.Locked
		f.Fix = "end the session that runs the deployment's cluster, then run again: slipway destroy"
	}
	return f
}
