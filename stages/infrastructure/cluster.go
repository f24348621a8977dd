package infrastructure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

const (
	// clusterLimit is how long the API and the nodes may take.
	clusterLimit = 5 * time.Minute
	// alive is how old a node's sign of life may be, which kubelets give every ten seconds: a node whose
	// machine was started again still says that it is Ready.
	alive = 15 * time.Second
)

// cluster waits until the API answers and every node is Ready.
func cluster(ctx context.Context, env *step.Env, in contract.ClusterInput) (contract.Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, clusterLimit)
	defer cancel()
	env.Progress("waiting for %s", in.APIEndpoint)
	var out contract.Cluster
	start := time.Now()
	what := fmt.Sprintf("the API at %s to answer with Ready nodes", in.APIEndpoint)
	wait := &kube.Client{Progress: env.Progress} // the cluster's own access file may not exist yet
	err := wait.WaitSuccess(ctx, what, func(ctx context.Context) (err error) {
		out, err = readCluster(ctx, env.Kubeconfig, in.Existing) // access file and certificates may still change
		return err
	})
	if err != nil {
		if f, ok := errors.AsType[*fault.Fault](err); ok {
			return out, &fault.Fault{
				Code: CodeAPI, Class: f.Class, Op: f.Op,
				Fix: "look at the last lines of the cluster's node, then run the same command again", Err: f.Err,
			}
		}
		return out, err
	}
	if err := errors.Join(env.RedactSecrets(), keep(ctx, env, in.Existing)); err != nil {
		return out, err
	}
	env.Progress("Kubernetes %s with %s after %s", out.Version, strings.Join(out.Nodes, ", "), time.Since(start).Round(100*time.Millisecond))
	return out, nil
}

// keep stores the access to the cluster or, for an existing cluster, which one it is.
func keep(ctx context.Context, env *step.Env, existing bool) error {
	if existing {
		c, err := env.Connect()
		if err != nil {
			return err
		}
		return keepCluster(ctx, env, c)
	}
	s, err := env.Store(ctx)
	if err != nil {
		return err
	}
	changed, err := env.Backend.SealKubeconfig(ctx, s, env.Generation(), env.Plan != nil) // where the store is a bucket
	if err == nil && changed {
		env.Plan.Change("keep the access to the cluster in %s", s.Location())
	}
	return err
}

// readCluster reads the cluster's state once. The error says what is missing. Of the nodes
// of a cluster that was there already, one must be ready; their owner looks after them.
func readCluster(ctx context.Context, kubeconfig string, existing bool) (contract.Cluster, error) {
	var out contract.Cluster
	if _, err := os.Stat(kubeconfig); err != nil {
		return out, fmt.Errorf("the cluster has not written its access file yet: %w", err)
	}
	c, err := kube.Connect(kubeconfig, nil)
	if err != nil {
		return out, err
	}
	if err := c.Kubernetes.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return out, fmt.Errorf("GET %s/readyz: %w", c.Endpoint(), err)
	}
	version, err := c.Kubernetes.Discovery().ServerVersion()
	if err != nil {
		return out, fmt.Errorf("GET %s/version: %w", c.Endpoint(), err)
	}
	nodes, err := c.Kubernetes.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return out, fmt.Errorf("list the nodes: %w", err)
	}
	if len(nodes.Items) == 0 {
		return out, errors.New("the API answers, but there is no node yet")
	}
	var away error
	for i := range nodes.Items {
		n := &nodes.Items[i]
		err := ready(n)
		switch {
		case err != nil && !existing:
			return out, err
		case err != nil:
			away = err
			continue
		case existing:
			out.Nodes = append(out.Nodes, n.Name)
			continue
		}
		lease, err := c.Kubernetes.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, n.Name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return out, fmt.Errorf("read the lease of node %s: %w", n.Name, err)
		}
		if err != nil || lease.Spec.RenewTime == nil {
			return out, fmt.Errorf("node %s has given no sign of life yet", n.Name)
		}
		if ago := time.Since(lease.Spec.RenewTime.Time); ago > alive {
			return out, fmt.Errorf("node %s last gave a sign of life %s ago", n.Name, ago.Round(time.Second))
		}
		out.Nodes = append(out.Nodes, n.Name)
	}
	if len(out.Nodes) == 0 {
		return out, away
	}
	slices.Sort(out.Nodes)
	out.Version = version.GitVersion
	return out, nil
}

func ready(n *corev1.Node) error {
	for _, cond := range n.Status.Conditions {
		if cond.Type == corev1.NodeReady {
			if cond.Status == corev1.ConditionTrue {
				return nil
			}
			return fmt.Errorf("node %s is not ready: %s: %s", n.Name, cond.Reason, cond.Message)
		}
	}
	return fmt.Errorf("node %s has not reported yet", n.Name)
}
