// Package kube is the steps' Kubernetes client: server-side apply that writes only what
// differs, waits whose errors name a cause, logs, and deletions with a deadline. Every call
// tolerates an API server that is away for a while.
package kube

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/slipway-sh/slipway/config/kubeconfig"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/plan"
)

// The codes of this package's faults.
const (
	// CodeUnreachable: the API server did not answer in time.
	CodeUnreachable fault.Code = "KUB-002"
	// CodeWait: something did not happen in time; the error says what was seen
	// last.
	CodeWait fault.Code = "KUB-003"
	// CodeForeign: what is to be made is in the cluster already and somebody else's, or is to be
	// in a namespace of Kubernetes' own.
	CodeForeign fault.Code = "INF-034"
	// CodeRejected: the API server refuses an object.
	CodeRejected fault.Code = "KUB-005"
	// CodeFailed: what was waited for has failed for good.
	CodeFailed fault.Code = "KUB-006"
	// CodeNoBalancer: a Service that is to be reached through a load balancer is of another
	// type.
	CodeNoBalancer fault.Code = "KUB-007"
)

// outage is how long calls retry while the API server does not answer.
const outage = 2 * time.Minute

// Client talks to one cluster. It is safe for concurrent use.
type Client struct {
	Config     *rest.Config
	Kubernetes kubernetes.Interface
	Dynamic    dynamic.Interface

	// Progress gets a line when a wait has something new to say. Nil: nowhere.
	Progress func(format string, args ...any)
	// Plan is what the client finds out for a plan: it sends no write then. Nil: it writes.
	Plan *plan.Step
	// OnWait gets what is waited for, from when until when, and what was seen last, when a wait takes
	// longer than a moment, sees something else, or is over. It may be nil.
	OnWait func(what string, since, until time.Time, seen string, over bool)

	outage time.Duration
	asks   *Client      // see Asking; nil: itself
	plain  *rest.Config // that Config was made of

	kinds *kinds
}

// kinds are what the API server serves.
type kinds struct {
	sync.Mutex
	*restmapper.DeferredDiscoveryRESTMapper
}

// Connect reads kubeconfig, a path, and returns a client whose waits tell
// progress, which may be nil. It does not reach out to the cluster.
func Connect(kubeconfig string, progress func(format string, args ...any)) (*Client, error) {
	b, err := os.ReadFile(kubeconfig)
	if err != nil {
		return nil, badKubeconfig(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(b)
	if err != nil {
		return nil, badKubeconfig(fmt.Errorf("%s: %w", kubeconfig, err))
	}
	c, err := New(config)
	if err != nil {
		return nil, err
	}
	c.Progress = progress
	return c, nil
}

// New returns a client for config, which it copies.
func New(config *rest.Config) (*Client, error) { return newClient(config, nil) }

// Planned is c for a plan: it sends no write.
func (c *Client) Planned(p *plan.Step) (*Client, error) {
	out, err := newClient(c.plain, p)
	if err != nil {
		return nil, err
	}
	out.Progress, out.OnWait, out.outage, out.kinds, out.asks = c.Progress, c.OnWait, c.outage, c.kinds, c.Asking()
	return out, nil
}

// Asking is c for requests that ask for something and leave nothing behind, such as that a
// controller look again: a plan sends them, too.
func (c *Client) Asking() *Client { return cmp.Or(c.asks, c) }

func newClient(config *rest.Config, p *plan.Step) (*Client, error) {
	plain := rest.CopyConfig(config)
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 100, 200
	config.UserAgent = FieldManager
	config.WarningHandler = rest.NoWarnings{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return guarded{next, p} })
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, badKubeconfig(err)
	}
	typed, err := kubernetes.NewForConfigAndClient(config, transport)
	if err != nil {
		return nil, badKubeconfig(err)
	}
	dyn, err := dynamic.NewForConfigAndClient(config, transport)
	if err != nil {
		return nil, badKubeconfig(err)
	}
	return &Client{
		Config: config, Kubernetes: typed, Dynamic: dyn, Plan: p, outage: outage, plain: plain,
		kinds: &kinds{DeferredDiscoveryRESTMapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(typed.Discovery()))},
	}, nil
}

func badKubeconfig(err error) error {
	return &fault.Fault{
		Code: kubeconfig.CodeInvalid, Class: fault.Step, Op: "read the kubeconfig",
		Fix: "for an existing cluster, name a kubeconfig that works with kubectl; then run the same command again", Err: err,
	}
}

// Endpoint is the URL of the API server.
func (c *Client) Endpoint() string { return c.Config.Host }

// Report passes a line to Progress.
func (c *Client) Report(format string, args ...any) {
	if c.Progress != nil {
		c.Progress(format, args...)
	}
}

// Resource returns the dynamic interface for objects of a kind; namespace is
// ignored where the kind has none.
func (c *Client) Resource(ctx context.Context, gvk schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, error) {
	r, _, err := c.resource(ctx, gvk, namespace)
	return r, err
}

// ResourceOf is the name of the resource of a kind: "deployments".
func (c *Client) ResourceOf(ctx context.Context, gvk schema.GroupVersionKind) (string, error) {
	m, err := c.lookUp(ctx, gvk)
	if err != nil {
		return "", err
	}
	return m.Resource.Resource, nil
}

// lookUp finds the resource of a kind. A kind that is not known is looked up again at the server
// once: its definition may be new.
func (c *Client) lookUp(ctx context.Context, gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	return Retry(ctx, c, "look up "+gvk.Kind, func(context.Context) (*meta.RESTMapping, error) {
		c.kinds.Lock()
		defer c.kinds.Unlock()
		m, err := c.kinds.RESTMapping(gvk.GroupKind(), gvk.Version)
		if meta.IsNoMatchError(err) {
			c.kinds.Reset()
			m, err = c.kinds.RESTMapping(gvk.GroupKind(), gvk.Version)
		}
		return m, err
	})
}

// resource is Resource, and tells whether the kind has namespaces.
func (c *Client) resource(ctx context.Context, gvk schema.GroupVersionKind, namespace string) (r dynamic.ResourceInterface, namespaced bool, err error) {
	m, err := c.lookUp(ctx, gvk)
	if err != nil {
		return nil, false, err
	}
	if m.Scope.Name() == meta.RESTScopeNameNamespace {
		return c.Dynamic.Resource(m.Resource).Namespace(namespace), true, nil
	}
	return c.Dynamic.Resource(m.Resource), false, nil
}
