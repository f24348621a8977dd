package conductor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/containers/tunnel"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
)

const runCluster = "run the cluster"

// Cluster is a deployment's cluster as far as Slipway runs it.
type Cluster struct {
	service    *containers.Cluster // nil: the provider runs none
	deployment *containers.Deployment
	records    *Records
	provider   string
	access     *clusterAccess // nil unless it is there already
}

// get is the cluster's service, or the fault of a provider that runs none.
func (c *Cluster) get() (*dagger.Service, error) {
	if c.service == nil {
		return nil, &fault.Fault{Code: codeNoCluster, Class: fault.Usage, Op: runCluster,
			Fix: "use slipway kubeconfig to reach the cluster of this provider",
			Err: fmt.Errorf("the cluster of provider %s is not a service of Slipway", c.provider)}
	}
	return c.service.Service(), nil
}

// installed returns a fault if no cluster was installed, or if it is a service whose volume is
// not on this engine.
func (c *Cluster) installed(ctx context.Context, what string) error {
	s, err := c.records.stored(ctx)
	switch {
	case err != nil:
		return err
	case s.Lost:
		return c.records.lost(what, s)
	case !s.Cluster:
		return c.records.notThere(what)
	}
	return nil
}

// up starts the cluster's service, which lives as long as the Dagger session, and waits up to two
// minutes for the pods that ran before. It reports pods that are not ready. It fails if nothing is installed.
func (c *Cluster) up(ctx context.Context, what string) (*dagger.Service, error) {
	s, err := c.get()
	if err != nil {
		return nil, err
	}
	if err := c.installed(ctx, what); err != nil {
		return nil, err
	}
	return s, c.start(ctx, s)
}

func (c *Cluster) start(ctx context.Context, s *dagger.Service) error {
	if err := c.service.Start(ctx); err != nil {
		return err
	}
	return c.awaitPods(ctx, s)
}

func (c *Cluster) awaitPods(ctx context.Context, s *dagger.Service) error {
	_, err := query(ctx, commands{c.deployment}, containers.Exec{Cluster: s}, contract.AwaitPods, contract.Nothing{})
	return err
}

// ClusterID is the Dagger id of the cluster's service, which runs.
func (c *Cluster) ClusterID(ctx context.Context) (string, error) {
	s, err := c.up(ctx, runCluster)
	if err != nil {
		return "", err
	}
	id, err := s.ID(ctx)
	return string(id), err
}

// ClusterPorts are the ports of this machine on which the cluster is published, the API's
// first, or the fault of a provider that runs no cluster.
func (c *Cluster) ClusterPorts() ([]int, error) {
	if _, err := c.get(); err != nil {
		return nil, err
	}
	return append([]int{c.service.APIPort()}, c.service.Ports()...), nil
}

// ClusterBind is the address of this machine on which the ports are published, 0.0.0.0 or ::
// for all of them; empty for a provider that runs no cluster.
func (c *Cluster) ClusterBind() string {
	if c.service == nil {
		return ""
	}
	return c.service.Bind()
}

// NodeID identifies what the cluster's service is started from; empty if the provider runs none.
func (c *Cluster) NodeID() string {
	if c.service == nil {
		return ""
	}
	return c.service.ID()
}

// NodeRuns reports whether the cluster's service was started, and not stopped, here.
func (c *Cluster) NodeRuns() bool { return c.service != nil && c.service.Running() }

// FreePorts returns a fault unless every port that Up needs on this machine is free.
func (c *Cluster) FreePorts(ctx context.Context) error {
	ports, err := c.ClusterPorts()
	if err != nil {
		return err
	}
	return freePorts(ctx, c.provider, c.service.Bind(), ports)
}

func freePorts(ctx context.Context, provider, bind string, ports []int) error {
	var taken []error
	for _, p := range ports {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(bind, strconv.Itoa(p)))
		if err == nil {
			err = listener.Close()
		}
		if err != nil {
			taken = append(taken, err)
		}
	}
	if len(taken) == 0 {
		return nil
	}
	return portsTaken(provider, errors.Join(taken...))
}

func portsTaken(provider string, err error) error {
	return &fault.Fault{
		Code: codePorts, Class: fault.Preflight, Op: runCluster, Err: err,
		Fix: "stop what listens there, such as the cluster of another deployment; or choose other ports, or another address of this machine, in section " + provider +
			" of the configuration; ports below 1024 may need root; an install without --keep-cluster, or with --unpublished, needs no port of this machine",
	}
}

// Up runs the cluster's service and, with publish, publishes its ports on this machine, until
// ctx ends. ready is called once they accept connections, or the service runs.
func (c *Cluster) Up(ctx context.Context, publish bool, ready func()) error {
	if publish {
		if err := c.FreePorts(ctx); err != nil {
			return err
		}
	}
	if _, err := c.up(ctx, runCluster); err != nil {
		return err
	}
	if !publish {
		ready()
		<-ctx.Done()
		return nil
	}
	err := c.service.Publish(ctx, ready)
	switch {
	case ctx.Err() != nil:
		return nil // that is how it ends
	case errors.Is(err, tunnel.ErrPort):
		return portsTaken(c.provider, err)
	}
	return err
}

// Down ends the cluster's service, whoever started it in this session, also after ctx has ended.
func (c *Cluster) Down(ctx context.Context) error {
	if c.service == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer cancel()
	return c.service.End(ctx)
}

// stopLimit is how long a service of the run, such as the cluster's or what holds the lock, may
// take to end; it does so in ten seconds.
const stopLimit = time.Minute

// while starts the cluster's service, calls do, and stops it again.
func (c *Cluster) while(ctx context.Context, do func(context.Context) error) error {
	if c.service == nil {
		return do(ctx)
	}
	if err := c.service.Start(ctx); err != nil {
		return err
	}
	return errors.Join(do(ctx), c.stop(ctx))
}

func (c *Cluster) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer cancel()
	return c.service.Stop(ctx)
}

// toolchain is the container in which every step runs, connected to the running cluster.
func (c *Cluster) toolchain(ctx context.Context) (*dagger.Container, error) {
	const what = "open the toolchain"
	var s *dagger.Service
	var err error
	if c.service != nil {
		s, err = c.up(ctx, what)
	} else {
		err = c.installed(ctx, what)
	}
	if err != nil {
		return nil, err
	}
	access, err := c.access.secret(ctx)
	if err != nil {
		return nil, err
	}
	ctr := c.deployment.Toolchain(s)
	if access == nil {
		return ctr.WithEnvVariable("KUBECONFIG", contract.KubeconfigFile), nil
	}
	return ctr.WithEnvVariable("KUBECONFIG", contract.AccessFile).
		WithMountedSecret(contract.AccessFile, access, dagger.ContainerWithMountedSecretOpts{Mode: 0o400}), nil
}

// ToolchainID is the Dagger id of the toolchain container. That of a cluster that was there
// already holds a secret, which the engine hands to no other client.
func (c *Cluster) ToolchainID(ctx context.Context) (string, error) {
	if c.access != nil {
		return "", &fault.Fault{Code: codeNoToolchain, Class: fault.Usage, Op: "hand over the toolchain",
			Fix: "use the command line tool: slipway toolchain -- COMMAND; or any kubectl with your own kubeconfig",
			Err: fmt.Errorf("on an existing cluster (provider %s) the container has the access to the cluster, which must stay with the process that read it", c.provider)}
	}
	ctr, err := c.toolchain(ctx)
	if err != nil {
		return "", err
	}
	id, err := ctr.ID(ctx)
	return string(id), err
}

// Shell runs a command in the toolchain and returns its exit code, once it has written
// what the command printed to out and errw.
func (c *Cluster) Shell(ctx context.Context, args []string, out, errw io.Writer) (int, error) {
	ctr, err := c.toolchain(ctx)
	if err != nil {
		return 0, err
	}
	return containers.Command(ctx, ctr, args, out, errw)
}
