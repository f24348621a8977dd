package preorchestrator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/gitserver"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

// gitServiceTimeout is how long the git server's Service may take to appear: the
// steps gitea and argocd run at the same time.
const gitServiceTimeout = 5 * time.Minute

func runArgoCD(ctx context.Context, env *step.Env, in contract.ArgoCDInput) (contract.ArgoCD, error) {
	r, c, err := open(env)
	if err != nil {
		return contract.ArgoCD{}, err
	}
	s := settings{
		proxy:   in.Proxy,
		labels:  map[string]string{kube.DeploymentLabel: env.Deployment},
		image:   func(short string) (string, error) { return image(in.Images, short) },
		gitHost: in.GitHost,
	}
	if s.gitHost != giteaHost {
		if s.gitIP, err = clusterIP(ctx, c, gitserver.Namespace, gitserver.Service); err != nil {
			return contract.ArgoCD{}, err
		}
	}
	objs, err := argoManifests(env, r, s)
	if err != nil {
		return contract.ArgoCD{}, err
	}
	set := kube.Set{Name: "argocd-objects", Deployment: env.Deployment}
	applied, deleted, err := c.ApplySet(ctx, set, objs, kube.ApplyOptions{Force: true})
	if err != nil {
		return contract.ArgoCD{}, err
	}
	up, err := c.ScaleUp(ctx, objs, argo.Namespace)
	if err != nil {
		return contract.ArgoCD{}, err
	}
	env.Progress("%s", kube.Count(applied))
	env.Logger.Info("argo cd's objects", "deleted", deleted, "scaledUp", up)
	out := contract.ArgoCD{Objects: len(applied), Changed: kube.Altered(applied) + len(deleted) + len(up)}
	out.Workloads, err = c.WaitRollouts(ctx, objs)
	return out, err
}

// argoManifests are the bundle's manifests, changed by the release and adapted.
func argoManifests(env *step.Env, r *platform.Release, s settings) ([]*unstructured.Unstructured, error) {
	i := slices.IndexFunc(r.Components, func(c platform.Component) bool {
		return c.Kind == platform.Bootstrap && c.Namespace == argo.Namespace && c.Bundle != ""
	})
	if i < 0 {
		return nil, badManifests(fixRelease, fmt.Errorf("the platform release has no bootstrap component in namespace %s that names a folder of the bundle", argo.Namespace))
	}
	component := r.Components[i]
	objs, err := readManifests(os.DirFS(env.BundleDir), path.Join("manifests", component.Bundle))
	if err != nil {
		return nil, badManifests(fixBundle, fmt.Errorf("the bundle: %w", err))
	}
	if component.Path != "" {
		overlay, err := readManifests(os.DirFS(env.PlatformDir), component.Path)
		if err != nil {
			return nil, badManifests(fixRelease, fmt.Errorf("the platform release: %w", err))
		}
		if objs, err = merge(objs, overlay); err != nil {
			return nil, badManifests(fixRelease, err)
		}
	}
	objs, err = adapt(objs, s)
	if err != nil {
		if f, ok := errors.AsType[*fault.Fault](err); ok {
			return nil, f
		}
		return nil, badManifests(fixBundle, err)
	}
	return objs, nil
}

const (
	fixBundle  = "build the bundle again: make bundle"
	fixRelease = "correct the platform release, then run again: slipway install"
)

func badManifests(fix string, err error) error {
	return &fault.Fault{Code: CodeManifests, Class: fault.Step, Op: "read Argo CD's manifests", Fix: fix, Err: err}
}

// clusterIP waits for the address of a Service in the cluster.
func clusterIP(ctx context.Context, c *kube.Client, namespace, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, gitServiceTimeout)
	defer cancel()
	ip := ""
	err := c.WaitFor(ctx, fmt.Sprintf("the Service %s/%s", namespace, name), kube.Poll, func(ctx context.Context) (bool, string, error) {
		o, err := c.Kubernetes.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		ip = o.Spec.ClusterIP
		return ip != "" && !strings.EqualFold(ip, "None"), "it has no address in the cluster", nil
	})
	return ip, err
}
