// Package removal takes what a deployment has in a cluster out of it, and nothing else:
// components as a release said they go, objects by what shows whose they are, and what
// holds them up.
package removal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// CodeStuck: objects do not go, and the release says to report that.
const CodeStuck fault.Code = "INF-035"

// afterStrip is how long objects may take once they have no finalizers.
const afterStrip = 30 * time.Second

// Remover removes objects of one deployment.
type Remover struct {
	Client     *kube.Client
	Kubeconfig string // a path, for Helm
	Deployment string
	Argo       string // the namespace of Argo CD; empty: the platform has none
	Rules      platform.Remove
	Log        *slog.Logger
	Progress   func(format string, args ...any)

	// Stripped are the finalizers that were removed: "kind namespace/name: finalizer".
	Stripped []string
}

// Selector selects what Slipway made for the deployment.
func (r *Remover) Selector() string { return kube.DeploymentLabel + "=" + r.Deployment }

// Limit is how long objects may take to go.
func (r *Remover) Limit() time.Duration { return time.Duration(r.Rules.Finalizers.After) }

// Delete asks for the deletion of objects of a resource.
func (r *Remover) Delete(ctx context.Context, gvr schema.GroupVersionResource, objs []unstructured.Unstructured) error {
	for _, o := range objs {
		if err := r.Client.Delete(ctx, gvr, o.GetNamespace(), o.GetName(), metav1.DeletePropagationBackground); err != nil {
			return err
		}
	}
	return nil
}

// Look returns what is left of objects that were deleted.
type Look func(ctx context.Context) ([]unstructured.Unstructured, error)

// Gone waits for deleted objects to be gone. Those that are left after the limit lose their
// finalizers, or end the removal: see platform.Finalizers.
func (r *Remover) Gone(ctx context.Context, what string, look Look) error {
	return r.GoneAfter(ctx, r.Limit(), what, look)
}

// GoneAfter is Gone with a limit of its own.
func (r *Remover) GoneAfter(ctx context.Context, limit time.Duration, what string, look Look) error {
	wait := func(limit time.Duration) error {
		limited, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return r.Client.WaitFor(limited, what+" to be gone", kube.Poll, func(ctx context.Context) (bool, string, error) {
			left, err := look(ctx)
			return err == nil && len(left) == 0, kube.Left(left), err
		})
	}
	err := wait(limit)
	if err == nil || ctx.Err() != nil {
		return err
	}
	left, lookErr := look(ctx)
	if lookErr != nil {
		return errors.Join(err, lookErr)
	}
	r.Log.Warn("objects do not go by themselves", "error", err)
	stuck, lookErr := r.Client.Stuck(ctx, left)
	if lookErr != nil {
		return errors.Join(err, lookErr)
	}
	if err := r.Strip(ctx, stuck); err != nil {
		return err
	}
	return wait(afterStrip)
}

// Strip removes finalizers that nobody answers for any more, and notes them; where the
// release says to report them, it names them in an error.
func (r *Remover) Strip(ctx context.Context, stuck []kube.Stuck) error {
	if len(stuck) == 0 {
		return nil
	}
	if r.Rules.Finalizers.Then == platform.FinalizerReport {
		return reported(stuck)
	}
	for _, s := range stuck {
		r.Progress("removing the finalizers of %s", s)
		if err := r.Client.Strip(ctx, s); err != nil {
			return err
		}
		if !slices.Contains(r.Stripped, s.String()) {
			r.Stripped = append(r.Stripped, s.String())
		}
	}
	return nil
}

func reported(stuck []kube.Stuck) error {
	names := make([]string, len(stuck))
	for i, s := range stuck {
		names[i] = s.String()
	}
	return &fault.Fault{
		Code: CodeStuck, Class: fault.Step, Op: "remove objects",
		Fix: "do what these finalizers wait for, or remove them (kubectl edit), then run the same command again",
		Err: fmt.Errorf("nobody removes the finalizers of %s", strings.Join(names, "; ")),
	}
}
