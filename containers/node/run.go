package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/grpclog"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

type node struct {
	settings
	logLine func(string) // prints a line with the time since the start
	self    string       // path of this program
	started time.Time
	address net.IP // of the container
	health  *health
	mutual  *tls.Config // of the health endpoint
	client  kubernetes.Interface
	runtime *grpc.ClientConn // containerd
	archive *archive         // nil with a mirror
	pulls   http.Handler     // the node's registry: of the archive's images, or of the mirror's
	served  imageNames       // what pulls answers to besides slipway.local

	mu        sync.Mutex
	processes map[string]*process
	stopping  bool
}

// runNode starts the node and returns when ctx has ended and everything has been
// stopped, or at once when the container cannot be prepared.
func runNode(ctx context.Context, s settings) (err error) {
	started := time.Now()
	logLine := func(line string) { printLine(fmt.Sprintf("%6.2fs %s", time.Since(started).Seconds(), line)) }
	lock, err := lockData(ctx, s.Data, s.LockWait, logLine)
	if err != nil {
		return err
	}
	defer release(lock)
	n := &node{settings: s, logLine: logLine, started: started, health: newHealth(started), processes: map[string]*process{}}
	if n.self, err = os.Executable(); err != nil {
		return fmt.Errorf("find its own program: %w", err)
	}
	logLibraries(newLog(filepath.Join(s.LogDir, "slipway-node.log")))

	work, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var group errgroup.Group
	err = n.prepare(work)
	if err == nil {
		defer release(n.runtime)
		group.Go(func() error {
			err := n.serveHealth(work, fmt.Sprintf("0.0.0.0:%d", healthPort))
			if err != nil {
				stop(err)
			}
			return err
		})
		n.start(work, &group)
		<-work.Done()
		if cause := context.Cause(work); !errors.Is(cause, context.Canceled) {
			logLine(cause.Error())
		}
		logLine("stops")
	}
	stop(nil)
	return errors.Join(err, n.stop(ctx), group.Wait())
}

// prepare does what must come before the first component.
func (n *node) prepare(ctx context.Context) error {
	if err := n.openImages(); err != nil {
		return err
	}
	if err := prepareContainer(ctx, n.settings, n.logLine); err != nil {
		return err
	}
	if err := takeAway(n.RegistryAuth); err != nil {
		return err
	}
	network, err := prepareNetwork(ctx)
	if err != nil {
		return err
	}
	n.address = network.address
	names := []string{
		"cluster", "localhost", "127.0.0.1", nodeName, nodeAddress, apiServiceIP, n.address.String(),
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc." + clusterDomain,
	}
	if host, err := os.Hostname(); err == nil {
		names = append(names, host)
	}
	keys, err := ensurePKI(n.pki(""), names, time.Now())
	if err != nil {
		return err
	}
	if n.mutual, err = keys.mutual("apiserver"); err != nil {
		return err
	}
	if err := keys.writeKubeconfigs(n.settings); err != nil {
		return err
	}
	if err := writeComponentConfigs(n.settings); err != nil {
		return err
	}
	if err := writeContainerdConfig(n.settings, network.mtu); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", n.pki("admin.kubeconfig"))
	if err != nil {
		return fmt.Errorf("read its own kubeconfig: %w", err)
	}
	config.QPS, config.Burst, config.Timeout = -1, -1, 0
	if n.client, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("make a client of the API server: %w", err)
	}
	n.runtime, err = dialContainerd()
	return err
}

// logLibraries sends to log what libraries in this process say; the container's
// output is for the node's own lines.
func logLibraries(log *logFile) {
	klog.LogToStderr(false)
	klog.SetOutput(log)
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, log))
}

func (n *node) openImages() error {
	if n.PauseImage == "" {
		return fmt.Errorf("%w: --pause-image is required", errUsage)
	}
	overrides, err := readOverrides(n.Overrides)
	if err != nil {
		return err
	}
	if n.RegistryMirror != "" {
		login, err := readAccount(n.RegistryAuth, n.RegistryMirror)
		if err != nil {
			return err
		}
		f, err := newForwarder(n.RegistryMirror, login, overrides)
		if err != nil {
			return err
		}
		n.pulls, n.served, n.OwnNames = f.handler(), f.names(), len(overrides) > 0
		return nil
	}
	if n.archive, err = openArchive(n.Images...); err != nil {
		return err
	}
	images, err := n.archive.images()
	if err == nil {
		images, err = withOverrides(images, overrides)
	}
	if err != nil {
		return err
	}
	g := newImageServer(n.archive, images)
	n.pulls, n.served, n.OwnNames = g.handler(), g.names(), true
	return nil
}

// start begins everything, each part as soon as what it needs is there. The
// group's functions end with ctx; none returns an error, they report to the
// health endpoint.
func (n *node) start(ctx context.Context, group *errgroup.Group) {
	n.supervise(ctx, "etcd")
	n.supervise(ctx, "kube-apiserver")
	n.supervise(ctx, "containerd")

	group.Go(func() error { n.serveImages(ctx, ownRegistry); return nil })
	runtimeReady := make(chan struct{})
	group.Go(func() error {
		n.retry(ctx, partNode, func() error { return awaitContainerd(ctx, n.runtime) })
		if err := removeSandboxes(ctx, n.runtime); err != nil && ctx.Err() == nil {
			n.logLine(err.Error()) // the kubelet will try as well
		}
		n.retry(ctx, partNode, func() error { return n.forgetReplaced(ctx) })
		n.logLine("containerd is ready")
		close(runtimeReady)
		return nil
	})
	group.Go(func() error {
		if !n.awaitAPI(ctx, "/readyz", priorityClasses) {
			return nil
		}
		n.supervise(ctx, "kube-controller-manager")
		n.supervise(ctx, "kube-scheduler")
		n.supervise(ctx, "kube-proxy")
		group.Go(func() error {
			n.retry(ctx, partBalancer, func() error {
				return runBalancer(ctx, n.client, n.ClusterName, n.address, func() { n.health.set(partBalancer, "ready", "") })
			})
			return nil
		})
		n.watch(ctx, partAPI, "the API server", func(ctx context.Context) error { return n.requestAPI(ctx, "/readyz") })
		return nil
	})
	group.Go(func() error {
		select {
		case <-runtimeReady:
		case <-ctx.Done():
			return nil
		}
		if !n.awaitAPI(ctx, "/livez/ping") {
			return nil
		}
		n.logLine("the API server answers")
		n.retry(ctx, partNode, func() error { return makeNode(ctx, n.client) })
		n.supervise(ctx, "kubelet")
		were := map[types.UID]bool{}
		n.retry(ctx, partPods, func() error { return markPodsNotReady(ctx, n.client, were) })
		group.Go(func() error { n.watchPods(ctx, were); return nil })
		n.watch(ctx, partNode, "the node", n.nodeReady)
		return nil
	})
}

// serveImages is the node's own registry, until ctx ends.
func (n *node) serveImages(ctx context.Context, address string) {
	n.retry(ctx, partRegistry, func() error {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return fmt.Errorf("open the node's registry: %w", err)
		}
		n.health.set(partRegistry, "ready", "")
		return serve(ctx, listener, "the node's registry", &http.Server{Handler: n.pulls})
	})
}

// forgetReplaced makes containerd forget the names under which the node's registry has
// another image now.
func (n *node) forgetReplaced(ctx context.Context) error {
	gone, err := forgetReplaced(ctx, n.runtime, n.served)
	if len(gone) > 0 {
		n.logLine("replaced: " + strings.Join(gone, ", "))
	}
	return err
}

// supervise starts a component, except when the node stops.
func (n *node) supervise(ctx context.Context, component string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stopping {
		return
	}
	p := supervise(ctx, n.component(component, n.self), n.LogDir, n.logLine)
	n.processes[component] = p
	n.health.add(p)
}

// retry calls f until it succeeds or ctx ends; what went wrong shows in the part.
func (n *node) retry(ctx context.Context, part string, f func() error) {
	for ctx.Err() == nil {
		err := f()
		if err == nil || ctx.Err() != nil {
			return
		}
		n.logLine(err.Error())
		n.health.set(part, "failed", err.Error())
		sleep(ctx, 2*time.Second)
	}
}

// stop ends everything within ten seconds, even after ctx has ended: first what would start
// pods again, then the pods, then what they ran on, etcd last.
func (n *node) stop(ctx context.Context) error {
	n.mu.Lock()
	n.stopping = true
	n.mu.Unlock()
	n.end("kubelet", "kube-scheduler", "kube-controller-manager", "kube-proxy")
	if _, ok := n.processes["containerd"]; ok {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3500*time.Millisecond)
		if err := stopContainers(ctx, n.runtime, time.Second); err != nil {
			n.logLine(err.Error())
		}
		cancel()
	}
	n.end("kube-apiserver", "containerd")
	n.end("etcd")
	if n.archive != nil {
		release(n.archive)
	}
	return errors.Join(unmountBelow(n.Data), unmountBelow("/run/containerd"))
}

func (n *node) end(names ...string) {
	var all sync.WaitGroup
	for _, name := range names {
		if p, ok := n.processes[name]; ok {
			all.Go(p.end)
		}
	}
	all.Wait()
}
